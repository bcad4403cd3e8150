package dist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ldflags"
)

const (
	// versionTimeout bounds how long an executable may take to tell its version.
	versionTimeout = 20 * time.Second
	// versionLimit bounds what it may write.
	versionLimit = 64 << 10
)

// CompareVersion runs the executable for this machine's platform, if there is
// one, as "plugin -version", which every fleeting plugin answers. It returns an
// [*InputError] if the executable tells another version than the one that it is
// published as: the plugin's own bootstrap would install it under the wrong
// name. A version that is none, such as "dev", only gives a warning.
//
// The executables of other platforms do not run here. Where the one that does has
// the version as text in it, those that do not are of another build and an
// [*InputError]; where none runs here, that gives a warning.
func (d *Dist) CompareVersion(ctx context.Context, want version.Version) ([]Warning, error) {
	for _, p := range artifact.Candidates(artifact.HostPlatform()) {
		if i := slices.IndexFunc(d.inputs, func(in Input) bool { return in.platform == p }); i >= 0 {
			return d.compareWith(ctx, i, want)
		}
	}
	warnings, err := d.SearchVersion(ctx, want)
	return append([]Warning{{d.dir, "no executable runs on this machine, so no version was compared"}}, warnings...), err
}

// SearchVersion looks for the version in the executables and starts none of them:
// an executable reads the environment of whoever started it, with the keys and
// tokens in there. If only some have the version in them, the others are of another
// build and an [*InputError]. If none has it, that gives a warning.
func (d *Dist) SearchVersion(ctx context.Context, want version.Version) ([]Warning, error) {
	without, err := d.otherVersions(ctx, want, -1)
	if err != nil {
		return nil, err
	}
	var warnings []Warning
	if len(without) == len(d.inputs) {
		for _, path := range without {
			warnings = append(warnings, Warning{path, fmt.Sprintf("%s is not in it, so it may be another version", want)})
		}
		return warnings, nil
	}
	i := slices.IndexFunc(d.inputs, func(in Input) bool { return !slices.Contains(without, in.Executable().path) })
	return nil, otherBuilds(without, d.inputs[i], want)
}

// otherBuilds is the error of executables without the version that one has.
func otherBuilds(without []string, one Input, want version.Version) error {
	var problems []error
	for _, path := range without {
		problems = append(problems, &InputError{
			Path: path, Problem: fmt.Sprintf("does not have the version %s in it, as %s has: it is of another build", want, one.Executable().path),
			Remedy: fmt.Sprintf("build the executables of all platforms again, as %s", want),
		})
	}
	return errors.Join(problems...)
}

// compareWith asks the executable that runs here, and compares the others with
// it.
func (d *Dist) compareWith(ctx context.Context, asked int, want version.Version) ([]Warning, error) {
	one := d.inputs[asked]
	warnings, err := compareVersion(ctx, one, want)
	if err != nil || len(warnings) > 0 {
		return warnings, err
	}
	if written, err := one.tells(ctx, want); err != nil || !written {
		return nil, err // it puts its version together, and so do the others
	}
	without, err := d.otherVersions(ctx, want, asked)
	if err != nil {
		return nil, err
	}
	return nil, otherBuilds(without, one, want)
}

func compareVersion(ctx context.Context, in Input, want version.Version) ([]Warning, error) {
	bin := in.Executable()
	output, err := run(ctx, bin.path, versionTimeout)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	told := toldVersion(output)
	without := in.ineffective(want)
	switch {
	case err != nil && told == "":
		return []Warning{{bin.path, fmt.Sprintf("it does not answer -version (%v), so its version was not compared", err)}}, nil
	case told == "":
		return []Warning{{bin.path, "its answer to -version names no version, so it was not compared" + without.problem()}}, nil
	}
	v, err := parseVersion(told)
	if err != nil {
		return []Warning{{bin.path, fmt.Sprintf("it reports version %q; build it with its version, or the runner's list of plugins will be wrong", told) + without.problem()}}, nil //nolint:nilerr // an unknown version is no error
	}
	if v.Compare(want) != 0 {
		return nil, &InputError{
			Path: bin.path, Problem: fmt.Sprintf("reports version %s, but would be published as %s", v, want) + without.problem(),
			Remedy: cmp.Or(without.remedy(), fmt.Sprintf("publish it as %s, or build it as %s", v, want)),
		}
	}
	return nil, nil
}

// ineffective is the flag of the linker that set a variable to a version that
// the executable does not tell. The linker passes over what is not a string
// variable without a word.
type ineffective string

// ineffective finds such a flag, where the executable says how it was linked.
func (in Input) ineffective(want version.Version) ineffective {
	if in.info == nil {
		return ""
	}
	variables, err := ldflags.Variables(settingOf(in.info, "-ldflags"))
	if err != nil {
		return ""
	}
	for _, v := range variables {
		if strings.TrimPrefix(v.Value, "v") == want.String() {
			return ineffective(v.Name)
		}
	}
	return ""
}

func (name ineffective) problem() string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(", although the linker was told to set %s", string(name))
}

func (name ineffective) remedy() string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("declare %s as a string variable without a value, and print it: the linker sets neither constants nor variables that a function initialises", string(name))
}

// run starts the executable with nothing of our environment, which may hold
// keys and tokens.
func run(ctx context.Context, path string, timeout time.Duration) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, errs := &limitedBuffer{}, &limitedBuffer{}
	cmd := exec.CommandContext(ctx, path, "-version")
	cmd.Env = []string{"HOME=/nonexistent"}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.WaitDelay = time.Second
	ownGroup(cmd)
	err = cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		_ = cmd.Cancel() // it has ended, and left a child behind
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("it ran for more than %s", timeout)
	}
	if err == nil && len(out.content) == 0 {
		return string(errs.content), nil // Go's own println, and some loggers
	}
	return string(out.content), err
}

// toldVersion finds the version in an answer: in the line that fleeting's library
// writes, else the first word that is a version, else the only word.
func toldVersion(output string) string {
	for line := range strings.Lines(output) {
		if value, ok := strings.CutPrefix(line, "Version:"); ok {
			return strings.TrimSpace(value)
		}
	}
	words := strings.Fields(output)
	for i, word := range words {
		word = strings.Trim(word, `,;:()[]"'`)
		_, err := parseVersion(word)
		// Go's own version is not the plugin's.
		if err == nil && (i == 0 || !slices.Contains([]string{"go", "golang"}, strings.ToLower(strings.Trim(words[i-1], ":")))) {
			return word
		}
	}
	if len(words) == 1 {
		return words[0]
	}
	return ""
}

var errTooMuch = errors.New("too much output")

type limitedBuffer struct{ content []byte }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if len(b.content)+len(p) > versionLimit {
		return 0, errTooMuch
	}
	b.content = append(b.content, p...)
	return len(p), nil
}

// parseVersion reads a version as an executable tells it, with or without a "v".
func parseVersion(text string) (version.Version, error) {
	v, err := version.Parse(strings.TrimPrefix(text, "v"))
	if err == nil && v.Build() != "" {
		err = fmt.Errorf("%q has build metadata", text)
	}
	return v, err
}
