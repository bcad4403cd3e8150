package dist

import (
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// check compares the executable with the platform that it is published for.
func (in *Input) check() ([]Warning, error) {
	bin := in.Executable()
	if bin.size == 0 {
		return nil, &InputError{Path: bin.path, Problem: "is empty", Remedy: "build it again"}
	}
	f, err := os.Open(bin.path)
	if err != nil {
		return nil, &InputError{Path: bin.path, Problem: "cannot be read", Err: errors.Unwrap(err)}
	}
	defer f.Close() //nolint:errcheck // read only
	var found header
	switch in.platform.OS() {
	case "darwin":
		found, err = readMachO(f)
	case "windows":
		found, err = readPE(f)
	case "zos":
		return []Warning{{bin.path, "the format of z/OS executables is not known here, so nothing was checked"}}, nil
	default:
		found, err = readELF(f)
	}
	if err != nil {
		return nil, &InputError{
			Path:    bin.path,
			Problem: fmt.Sprintf("is not an executable for %s: it %s", in.platform, what(f)),
			Remedy:  rebuild(in.platform),
		}
	}
	if err := in.compare(bin, found); err != nil {
		return nil, err
	}
	var warnings []Warning
	if found.dynamic != "" {
		warnings = append(warnings, Warning{bin.path, found.dynamic})
	}
	more, err := in.compareBuild(bin)
	return append(warnings, more...), err
}

// looksExecutable reports whether a file is an executable of a format that is known
// here.
func looksExecutable(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // read only
	for _, read := range []func(*os.File) (header, error){readELF, readPE, readMachO} {
		if _, err := read(f); err == nil {
			return true
		}
	}
	return false
}

// header is what an executable says about itself.
type header struct {
	system string // empty if the format does not tell
	arch   string
	// dynamic explains which libraries will be missing, or is empty.
	dynamic string
}

// compare refuses an executable for another platform.
func (in *Input) compare(bin File, found header) error {
	if found.arch == in.platform.Arch() && (found.system == "" || found.system == in.platform.OS()) {
		return nil
	}
	system := found.system
	if system == "" {
		system = in.platform.OS()
	}
	return &InputError{
		Path:    bin.path,
		Problem: fmt.Sprintf("is an executable for %s/%s, but would be published for %s", system, found.arch, in.platform),
		Remedy:  rebuild(in.platform) + ", or move it to the folder of its platform",
	}
}

func rebuild(p artifact.Platform) string {
	env := "GOOS=" + p.OS() + " GOARCH=" + p.Arch()
	if p.Arch() == "arm" {
		env += " GOARM=" + strings.TrimPrefix(p.Variant(), "v")
	}
	return "build it with CGO_ENABLED=0 " + env
}

// compareBuild looks at Go's build information, where there is any.
func (in *Input) compareBuild(bin File) ([]Warning, error) {
	info, err := buildinfo.ReadFile(bin.path)
	if err != nil {
		return []Warning{{bin.path, "it has no Go build information, so its bill of materials cannot list what it is made of"}}, nil //nolint:nilerr // not all plugins are written in Go
	}
	in.info = info
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	// Headers do not tell all systems apart, Android and Linux for instance.
	if set["GOOS"] != "" && (set["GOOS"] != in.platform.OS() || set["GOARCH"] != in.platform.Arch()) {
		return nil, in.compare(bin, header{system: set["GOOS"], arch: set["GOARCH"]})
	}
	var warnings []Warning
	switch in.platform.Arch() {
	case "arm":
		built, _, _ := strings.Cut(set["GOARM"], ",")
		want := strings.TrimPrefix(in.platform.Variant(), "v")
		if built > want {
			return nil, &InputError{
				Path: bin.path, Problem: fmt.Sprintf("was built with GOARM=%s and would crash on %s", built, in.platform),
				Remedy: rebuild(in.platform),
			}
		}
	case "amd64":
		if level := set["GOAMD64"]; level > "v1" {
			warnings = append(warnings, Warning{bin.path, "it was built with GOAMD64=" + level + " and stops at once on older processors"})
		}
	}
	if info.Path == "" || info.Main.Path == "" {
		warnings = append(warnings, Warning{bin.path, "it was built without a main module, so its origin cannot be told"})
	}
	return warnings, nil
}

func readELF(f *os.File) (header, error) {
	e, err := elf.NewFile(f)
	if err != nil {
		return header{}, err
	}
	machines := map[elf.Machine]string{
		elf.EM_386: "386", elf.EM_X86_64: "amd64", elf.EM_ARM: "arm", elf.EM_AARCH64: "arm64", elf.EM_LOONGARCH: "loong64",
		elf.EM_PPC64: "ppc64", elf.EM_RISCV: "riscv64", elf.EM_S390: "s390x", elf.EM_MIPS: "mips",
	}
	h := header{arch: machines[e.Machine]}
	little, wide := e.Data == elf.ELFDATA2LSB, e.Class == elf.ELFCLASS64
	if h.arch == "mips" && wide {
		h.arch += "64"
	}
	if little && (strings.HasPrefix(h.arch, "mips") || h.arch == "ppc64") {
		h.arch += "le"
	}
	// x32, 32-bit RISC-V and the like, for which Go does not build.
	narrow := slices.Contains([]string{"386", "arm", "mips"}, strings.TrimSuffix(h.arch, "le"))
	if narrow == wide || !little && !slices.Contains([]string{"mips", "mips64", "ppc64", "s390x"}, h.arch) {
		h.arch = ""
	}
	if h.arch == "" || (e.Type != elf.ET_EXEC && e.Type != elf.ET_DYN) {
		return header{}, fmt.Errorf("machine %s, type %s", e.Machine, e.Type)
	}
	switch e.OSABI {
	case elf.ELFOSABI_NONE, elf.ELFOSABI_LINUX:
		h.system = "linux"
	default: // such as "freebsd"
		h.system = strings.ToLower(strings.TrimPrefix(e.OSABI.String(), "ELFOSABI_"))
	}
	h.dynamic = dynamic(e)
	return h, nil
}

// dynamic explains what an executable needs beside itself; "" if nothing.
func dynamic(e *elf.File) string {
	if !slices.ContainsFunc(e.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return ""
	}
	text := "it is linked dynamically and starts only where its loader is"
	if libs, err := e.ImportedLibraries(); err == nil && len(libs) > 0 {
		text += " and " + strings.Join(libs, ", ") + " are"
	}
	return text + ": not in the artifact's own image, so it cannot run as a container nor copy itself to the runner, nor on Alpine; build it with CGO_ENABLED=0"
}

func readMachO(f *os.File) (header, error) {
	m, err := macho.NewFile(f)
	if err != nil {
		return header{}, err
	}
	archs := map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64", macho.Cpu386: "386", macho.CpuArm: "arm"}
	if m.Type != macho.TypeExec || archs[m.Cpu] == "" {
		return header{}, fmt.Errorf("processor %s, type %s", m.Cpu, m.Type)
	}
	return header{system: "darwin", arch: archs[m.Cpu]}, nil
}

func readPE(f *os.File) (header, error) {
	p, err := pe.NewFile(f)
	if err != nil {
		return header{}, err
	}
	archs := map[uint16]string{
		pe.IMAGE_FILE_MACHINE_I386: "386", pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64",
	}
	if archs[p.Machine] == "" || p.Characteristics&pe.IMAGE_FILE_EXECUTABLE_IMAGE == 0 || p.Characteristics&pe.IMAGE_FILE_DLL != 0 {
		return header{}, fmt.Errorf("machine %#x, characteristics %#x", p.Machine, p.Characteristics)
	}
	return header{system: "windows", arch: archs[p.Machine]}, nil
}

// what names the format that a file has instead of the wanted one.
func what(f *os.File) string {
	if h, err := readELF(f); err == nil {
		return "is one for " + strings.TrimPrefix(h.system+"/", "/") + h.arch + " (ELF)"
	}
	if h, err := readMachO(f); err == nil {
		return "is one for darwin/" + h.arch + " (Mach-O)"
	}
	if h, err := readPE(f); err == nil {
		return "is one for windows/" + h.arch + " (PE)"
	}
	start := make([]byte, 4)
	n, _ := f.ReadAt(start, 0)
	switch s := string(start[:n]); {
	case strings.HasPrefix(s, "#!"):
		return "is a script"
	case s == "\x7fELF":
		return "is a damaged ELF file, or one for another processor"
	case s == "\xca\xfe\xba\xbe":
		return "is a universal macOS binary; publish one executable for each architecture"
	case strings.HasPrefix(s, "PK"):
		return "is a zip archive"
	case strings.HasPrefix(s, "\x1f\x8b"):
		return "is a gzip archive"
	}
	return "has an unknown format"
}
