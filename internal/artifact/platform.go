package artifact

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Platform is an operating system and processor that a plugin runs on, in the
// words of the OCI image index (image-spec v1.1.1, image-index.md, "platform").
// Only ParsePlatform, PlatformFromOCI and HostPlatform make one, so a non-zero
// Platform is always well formed and normalised. It is comparable.
type Platform struct {
	os, arch, variant, osVersion string
}

// platformWord is what may stand between the slashes: it also becomes a folder
// name, so it can be neither empty nor lead out of one.
var platformWord = regexp.MustCompile(`^[a-z0-9][a-z0-9_.]*$`)

// ParsePlatform reads "os/arch", "os/arch/variant" or the folder form
// "os/archvariant" ("linux/armv7"). Names that other tools use are understood:
// x86_64, aarch64, armhf, armel. It returns ErrPlatform for anything else.
func ParsePlatform(s string) (Platform, error) {
	parts := strings.Split(strings.ToLower(s), "/")
	if len(parts) < 2 || len(parts) > 3 {
		return Platform{}, fmt.Errorf("%w: %.80q is not os/arch[/variant]", ErrPlatform, s)
	}
	p := ocispec.Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	if p.Variant == "" {
		p.Architecture, p.Variant = splitVariant(p.Architecture)
	}
	return PlatformFromOCI(p)
}

// ReadPlatform reads what [Platform.String] writes, an os.version included.
func ReadPlatform(s string) (Platform, error) {
	name, osVersion, _ := strings.Cut(s, ":")
	p, err := ParsePlatform(name)
	if err != nil {
		return Platform{}, err
	}
	return p.WithOSVersion(osVersion), nil
}

// splitVariant takes the folder form apart: "armv7" is arm, v7.
func splitVariant(arch string) (base, variant string) {
	for _, base := range []string{"arm64", "arm", "amd64"} {
		if v, ok := strings.CutPrefix(arch, base); ok && len(v) == 2 && v[0] == 'v' {
			return base, v
		}
	}
	return arch, ""
}

// PlatformFromOCI reads the platform of an index entry or an image config. It
// returns ErrPlatform when os or architecture is missing or malformed.
func PlatformFromOCI(in ocispec.Platform) (Platform, error) {
	p := Platform{
		os:        strings.ToLower(in.OS),
		arch:      strings.ToLower(in.Architecture),
		variant:   strings.ToLower(in.Variant),
		osVersion: in.OSVersion,
	}
	for _, w := range []string{p.os, p.arch, cmp.Or(p.variant, "x"), cmp.Or(strings.ToLower(p.osVersion), "x")} {
		if !platformWord.MatchString(w) {
			return Platform{}, fmt.Errorf("%w: %.80q", ErrPlatform, in.OS+"/"+in.Architecture+"/"+in.Variant)
		}
	}
	return p.normalised(), nil
}

// normalised folds spellings of one platform into one value: arm64 is always
// v8, amd64 without a variant is v1.
func (p Platform) normalised() Platform {
	switch p.arch {
	case "x86_64", "x86-64":
		p.arch = "amd64"
	case "i386", "i686":
		p.arch = "386"
	case "aarch64":
		p.arch = "arm64"
	case "armhf":
		p.arch, p.variant = "arm", cmp.Or(p.variant, "v7")
	case "armel":
		p.arch, p.variant = "arm", cmp.Or(p.variant, "v6")
	}
	switch {
	case p.arch == "arm64" && p.variant == "v8", p.arch == "amd64" && p.variant == "v1":
		p.variant = ""
	case p.arch == "arm" && len(p.variant) == 1:
		p.variant = "v" + p.variant
	}
	return p
}

// OS is the operating system, a GOOS value.
func (p Platform) OS() string { return p.os }

// Arch is the processor architecture, a GOARCH value.
func (p Platform) Arch() string { return p.arch }

// Variant is the variant of the architecture, such as "v7", or empty.
func (p Platform) Variant() string { return p.variant }

// OSVersion is the version of the operating system that an index entry asks
// for, such as "10.0.20348" for Windows, or empty.
func (p Platform) OSVersion() string { return p.osVersion }

// WithOSVersion returns the platform with another os.version.
func (p Platform) WithOSVersion(v string) Platform {
	p.osVersion = v
	return p
}

// IsZero reports whether p is the zero value, which is no platform.
func (p Platform) IsZero() bool { return p == Platform{} }

// OCI returns the platform as an index entry carries it.
func (p Platform) OCI() ocispec.Platform {
	return ocispec.Platform{OS: p.os, Architecture: p.arch, Variant: p.variant, OSVersion: p.osVersion}
}

// String returns "os/arch[/variant][:os.version]".
func (p Platform) String() string {
	s := p.os + "/" + p.arch
	if p.variant != "" {
		s += "/" + p.variant
	}
	if p.osVersion != "" {
		s += ":" + p.osVersion
	}
	return s
}

// MarshalText makes a Platform a string in JSON.
func (p Platform) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Dir is the folder of the platform below dist, with slashes: "linux/armv7".
func (p Platform) Dir() string { return p.os + "/" + p.arch + p.variant }

// Executable is the name of the plugin's executable on the platform.
func (p Platform) Executable() string {
	if p.os == "windows" {
		return "plugin.exe"
	}
	return "plugin"
}

// Compare orders platforms by os, architecture, variant and os.version; it is
// the order of an index's entries.
func (p Platform) Compare(q Platform) int {
	return cmp.Or(
		cmp.Compare(p.os, q.os),
		cmp.Compare(p.arch, q.arch),
		cmp.Compare(p.variant, q.variant),
		cmp.Compare(p.osVersion, q.osVersion),
	)
}
