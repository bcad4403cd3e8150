// Package reducedrunner builds what can be had of GitLab Runner: the command in
// internal/test/e2e/runner, with a copy of its scaling library that has what the runner
// asks of later ones.
//
// It is for tests only. It downloads modules, and does not say how far it is.
package reducedrunner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	runnerModule     = "gitlab.com/gitlab-org/gitlab-runner"
	taskscalerModule = "gitlab.com/gitlab-org/fleeting/taskscaler"
)

// Environment has everything of these modules built alike, so that what one has
// compiled is in the cache for the next. The runner's module asks for a later Go
// than ours does, which CI may have to fetch.
func Environment() []string {
	return []string{"CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOTOOLCHAIN=auto"}
}

// Prepare writes what a build needs into the folder work, which it makes, and
// returns the arguments of go build. module is the folder internal/test/e2e/runner, in
// which go build is to run.
func Prepare(ctx context.Context, module, work string) ([]string, error) {
	from, err := downloaded(ctx, module, taskscalerModule)
	if err != nil {
		return nil, err
	}
	scaler, mod := filepath.Join(work, "taskscaler"), filepath.Join(work, "go.mod")
	const interfaces, defaults, added = "type Taskscaler interface {\n", "\tif options.capacityPerInstance <= 0 {\n", "later.go"
	err = os.CopyFS(scaler, os.DirFS(from))
	for _, step := range []func() error{
		func() error {
			return substitute(filepath.Join(scaler, "taskscaler.go"), interfaces, interfaces+"\tlater\n")
		},
		func() error {
			return substitute(filepath.Join(scaler, "options.go"), defaults, "\toptions.complete()\n"+defaults)
		},
		func() error {
			return copyFile(filepath.Join(module, "absent", "taskscaler", added), filepath.Join(scaler, added))
		},
		func() error { return copyFile(filepath.Join(module, "go.mod"), mod) },
		func() error { return copyFile(filepath.Join(module, "go.sum"), filepath.Join(work, "go.sum")) },
		func() error {
			_, err := goCommand(ctx, module, "mod", "edit", "-replace="+taskscalerModule+"="+scaler, mod)
			return err
		},
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return nil, err
	}
	version, err := Version(ctx, module)
	if err != nil {
		return nil, err
	}
	return []string{
		"-trimpath", "-tags", "e2erunner", "-modfile", mod,
		"-ldflags=-s -w -X " + runnerModule + "/common.VERSION=" + version, "./gitlab-runner",
	}, nil
}

// Version is what the runner's module says of itself.
func Version(ctx context.Context, module string) (string, error) {
	dir, err := downloaded(ctx, module, runnerModule)
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(filepath.Join(dir, "VERSION"))
	return strings.TrimSpace(string(content)), err
}

// downloaded is the folder of a module that the runner's module requires.
func downloaded(ctx context.Context, module, name string) (string, error) {
	out, err := goCommand(ctx, module, "mod", "download", "-json", name)
	var found struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &found)
	}
	return found.Dir, err
}

func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the arguments are ours
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), Environment()...)
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("go %s: %w\n%s%s", strings.Join(args, " "), err, out, failed.Stderr)
	}
	return out, err
}

// substitute replaces the only occurrence of a text in a file.
func substitute(file, old, instead string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if n := strings.Count(string(content), old); n != 1 {
		return fmt.Errorf("%s has %q %d times, not once", file, old, n)
	}
	return os.WriteFile(file, []byte(strings.Replace(string(content), old, instead, 1)), 0o600) //nolint:gosec // a file of the test's own copy
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600) //nolint:gosec // a file of the test's own copy
}
