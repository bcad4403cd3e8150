package siglab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// GHVersion is the release of GitHub's command line tool that is asked, ghSum the
// checksum of its module, whose own go.sum pins the rest.
const (
	GHVersion = "v2.83.2"
	ghModule  = "github.com/cli/cli/v2"
	ghSum     = "h1:sWn3WQH2sK9sYdN5G+P7j49DYwIIg9p0pS/7sRDCvGI="
)

// OpenGH builds gh on first use; the log shows that. It takes some minutes.
func (l *Lab) OpenGH(ctx context.Context, log io.Writer) error {
	lock := flock.New(l.state + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("locking the lab: %w", err)
	}
	defer func() { _ = lock.Close() }()
	if _, err := os.Stat(l.gh()); err == nil {
		return nil
	}
	var module struct{ Dir, Sum string }
	out, err := goCommand(ctx, os.TempDir(), log, "mod", "download", "-json", ghModule+"@"+GHVersion)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, &module); err != nil || module.Sum != ghSum {
		return errors.Join(fmt.Errorf("gh %s has the checksum %q, want %q", GHVersion, module.Sum, ghSum), err)
	}
	_, err = goCommand(ctx, module.Dir, log, "build", "-mod=readonly", "-trimpath", "-o", l.gh(),
		"-ldflags", "-s -w -X "+ghModule+"/internal/build.Version="+GHVersion, "./cmd/gh")
	return err
}

// GHPath is the program that [Lab.OpenGH] builds.
func (l *Lab) GHPath() string { return l.gh() }

func (l *Lab) gh() string { return l.Path("bin", "gh-"+GHVersion) }

func goCommand(ctx context.Context, dir string, log io.Writer, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...) // #nosec G204 -- arguments of this file
	cmd.Dir, cmd.Stderr = dir, log
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return out, nil
}

// GH runs gh, cut off from the caller's own settings and from every host but
// this one, and returns what it printed. An error holds that too. Its token is
// none: it insists on having one for what it fetches from a registry.
func (l *Lab) GH(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, l.gh(), args...) // #nosec G204 -- built by OpenGH
	cmd.Env = []string{
		"HOME=" + l.Path("home"), "DOCKER_CONFIG=" + l.Path("home", ".docker"), "GH_CONFIG_DIR=" + l.Path("home", "gh"),
		"GH_TOKEN=none", "GH_NO_UPDATE_NOTIFIER=1",
		"HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1",
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("gh %s: %w\n%s", strings.Join(args, " "), err, out.String())
	}
	return out.String(), nil
}

// TrustedRootLines writes the lab's trusted root as gh takes it, one root a line,
// each with its end, and returns the file.
func (l *Lab) TrustedRootLines(dir string) (string, error) {
	content, err := os.ReadFile(l.Path("trust", "trusted_root.json"))
	if err != nil {
		return "", err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, content); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "trusted_root.jsonl")
	return path, os.WriteFile(path, append(line.Bytes(), '\n'), 0o600)
}
