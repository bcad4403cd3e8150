package dist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/contextio"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ldflags"
)

// oneBuild compares what the executables say about their builds: those of one
// version come from one source. Two commits, or two versions of the main module,
// are an [*InputError]; other Go or module versions give a warning, as they may
// come from machines that differ.
func (d *Dist) oneBuild() ([]Warning, error) {
	var first *Input
	var warnings []Warning
	var problems []error
	var modified []string
	for i := range d.inputs {
		in := &d.inputs[i]
		if in.info == nil {
			continue
		}
		if settingOf(in.info, "vcs.modified") == "true" {
			modified = append(modified, in.Executable().path)
		}
		if first == nil {
			first = in
			continue
		}
		if difference := otherSource(first.info, in.info); difference != "" {
			problems = append(problems, &InputError{
				Path: in.Executable().path, Problem: fmt.Sprintf("is not of the same build as %s: %s", first.Executable().path, difference),
				Remedy: "build the executables of all platforms again, from one commit",
			})
			continue
		}
		if difference := otherParts(first.info, in.info); difference != "" {
			warnings = append(warnings, Warning{in.Executable().path, fmt.Sprintf("it may not be of the same build as %s: %s", first.Executable().path, difference)})
		}
	}
	if len(modified) > 0 {
		warnings = append(warnings, Warning{
			strings.Join(modified, ", "),
			"built from a checkout with changes that are not committed, so the commit does not say what it was built from; commit them, or ignore files that the build writes",
		})
	}
	return warnings, errors.Join(problems...)
}

// otherSource names what says that two executables are of different commits.
func otherSource(a, b *debug.BuildInfo) string {
	if x, y := settingOf(a, "vcs.revision"), settingOf(b, "vcs.revision"); x != "" && y != "" && x != y {
		return fmt.Sprintf("commit %s, and commit %s there", y, x)
	}
	x, y := mainVersion(a), mainVersion(b)
	if a.Main.Path == b.Main.Path && x != "" && y != "" && x != y {
		return fmt.Sprintf("version %s of %s, and %s there", y, a.Main.Path, x)
	}
	return ""
}

// mainVersion is that of the main module, "" where it is not known. That it is
// dirty does not count: a build that leaves files in the checkout makes the next
// one so.
func mainVersion(info *debug.BuildInfo) string {
	if info.Main.Version == "(devel)" {
		return ""
	}
	return strings.TrimSuffix(info.Main.Version, "+dirty")
}

// otherParts names the first thing that two executables are made of, and that is
// not the same.
func otherParts(a, b *debug.BuildInfo) string {
	if a.GoVersion != b.GoVersion {
		return fmt.Sprintf("built with %s, and with %s there", b.GoVersion, a.GoVersion)
	}
	if a.Path != b.Path {
		return fmt.Sprintf("package %s, and %s there", b.Path, a.Path)
	}
	versions := map[string]string{}
	for _, m := range a.Deps {
		versions[m.Path] = moduleVersion(m)
	}
	for _, m := range b.Deps {
		// Not all platforms need the same modules.
		if version, ok := versions[m.Path]; ok && version != moduleVersion(m) {
			return fmt.Sprintf("module %s %s, and %s there", m.Path, moduleVersion(m), version)
		}
	}
	return ""
}

func moduleVersion(m *debug.Module) string {
	if m.Replace != nil {
		return m.Version + " => " + m.Replace.Path + " " + m.Replace.Version
	}
	return m.Version
}

func settingOf(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// CompareLDFlags looks in every executable for the values that flags of the
// linker set variables to. Who builds it again with flags that are not those of
// the build gets something else. That one is missing gives a warning: the linker
// also drops what nothing uses. The error is of flags that cannot be read.
func (d *Dist) CompareLDFlags(ctx context.Context, flags string) ([]Warning, error) {
	variables, err := ldflags.Variables(flags)
	if err != nil {
		return nil, &InputError{Path: "--ldflags", Problem: "cannot be read", Err: err}
	}
	var warnings []Warning
	for _, variable := range variables {
		var missing []string
		for i := range d.inputs {
			there, err := holds(ctx, d.inputs[i].Executable().path, variable.Value)
			if err != nil {
				return nil, err
			}
			if !there {
				missing = append(missing, d.inputs[i].Executable().path)
			}
		}
		if len(missing) > 0 {
			warnings = append(warnings, Warning{
				strings.Join(missing, ", "),
				fmt.Sprintf("%q is not in it, to which the -ldflags set %s: they may be those of another build, and then nobody can build it again", variable.Value, variable.Name),
			})
		}
	}
	return warnings, nil
}

// otherVersions names the executables that do not have the version in them, as
// those of an earlier build that was not repeated do not.
func (d *Dist) otherVersions(ctx context.Context, want version.Version, asked int) (without []string, err error) {
	for i := range d.inputs {
		if i == asked {
			continue
		}
		there, err := d.inputs[i].tells(ctx, want)
		if err != nil {
			return nil, err
		}
		if !there {
			without = append(without, d.inputs[i].Executable().path)
		}
	}
	return without, nil
}

// tells says whether an executable has the version in it, by its build
// information or as text.
func (in *Input) tells(ctx context.Context, want version.Version) (bool, error) {
	if in.info != nil && strings.TrimPrefix(in.info.Main.Version, "v") == want.String() {
		return true, nil
	}
	return holds(ctx, in.Executable().path, want.String())
}

// holds says whether a file has a text in it, other than as the version of a
// module: "\tv1.2.3" in build information, "@v1.2.3/" in the paths of sources.
func holds(ctx context.Context, path, text string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, &InputError{Path: path, Problem: "cannot be read", Err: errors.Unwrap(err)}
	}
	defer f.Close() //nolint:errcheck // read only
	// As much as may stand before and belong to it is read again.
	kept := len(text) + len("@v")
	buffer := make([]byte, copyBuffer+kept)
	n := 0
	for in := contextio.Reader(ctx, f); ; {
		more, err := io.ReadFull(in, buffer[n:])
		n += more
		if found(buffer[:n], text) {
			return true, nil
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return false, nil
		case err != nil:
			return false, err
		}
		n = copy(buffer, buffer[n-kept:n])
	}
}

func found(content []byte, text string) bool {
	for at := 0; ; {
		i := bytes.Index(content[at:], []byte(text))
		if i < 0 {
			return false
		}
		before := content[:at+i]
		if !bytes.HasSuffix(before, []byte("@v")) && !bytes.HasSuffix(before, []byte("\tv")) {
			return true
		}
		at += i + 1
	}
}
