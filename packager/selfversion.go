package packager

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
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
func (d *Dist) CompareVersion(ctx context.Context, want Version) ([]Warning, error) {
	candidates := artifact.Candidates(artifact.HostPlatform())
	for _, p := range candidates {
		i := slices.IndexFunc(d.inputs, func(in input) bool { return in.platform == p })
		if i < 0 {
			continue
		}
		return compareVersion(ctx, d.inputs[i].binary(), want)
	}
	return []Warning{{d.dir, "no executable is for this machine, so none was asked for its version"}}, nil
}

func compareVersion(ctx context.Context, bin file, want Version) ([]Warning, error) {
	output, err := run(ctx, bin.path, versionTimeout)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	told := toldVersion(output)
	switch {
	case err != nil && told == "":
		return []Warning{{bin.path, fmt.Sprintf("it does not answer -version (%v), so its version was not compared", err)}}, nil
	case told == "":
		return []Warning{{bin.path, "its answer to -version names no version, so it was not compared"}}, nil
	}
	v, err := ParseVersion(told)
	if err != nil {
		return []Warning{{bin.path, fmt.Sprintf("it calls itself version %q; build it with its version, or the runner's list of plugins will be wrong", told)}}, nil //nolint:nilerr // an unknown version is no error
	}
	if v.Compare(want) != 0 {
		return nil, &InputError{
			Path: bin.path, Problem: fmt.Sprintf("calls itself version %s and is to be published as %s", v, want),
			Remedy: fmt.Sprintf("publish it as %s, or build it as %s", v, want),
		}
	}
	return nil, nil
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
	out := &limitedBuffer{}
	cmd := exec.CommandContext(ctx, path, "-version")
	cmd.Env = []string{"HOME=/nonexistent"}
	cmd.Stdout = out
	cmd.WaitDelay = time.Second
	ownGroup(cmd)
	err = cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		_ = cmd.Cancel() // it has ended, and left a child behind
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("it ran for more than %s", timeout)
	}
	return string(out.content), err
}

// toldVersion finds the line that fleeting's library writes.
func toldVersion(output string) string {
	for line := range strings.Lines(output) {
		if value, ok := strings.CutPrefix(line, "Version:"); ok {
			return strings.TrimSpace(value)
		}
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
