package siglab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// GHVersion is the release of GitHub's command line tool that is asked. Its
// module's go.sum pins what it is built of.
const GHVersion = "v2.83.2"

// OpenGH builds gh on first use; the log shows that. It takes some minutes.
func (l *Lab) OpenGH(ctx context.Context, log io.Writer) error {
	lock := flock.New(l.state + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("locking the lab: %w", err)
	}
	defer func() { _ = lock.Close() }()
	folder := l.Path("bin", "gh-"+GHVersion)
	if _, err := os.Stat(filepath.Join(folder, "gh")); err == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", "github.com/cli/cli/v2/cmd/gh@"+GHVersion) // #nosec G204 -- a constant
	cmd.Env = append(os.Environ(), "GOBIN="+folder, "CGO_ENABLED=0", "GOFLAGS=")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building gh %s: %w", GHVersion, err)
	}
	return nil
}

// GH runs gh, cut off from the caller's own settings and from every host but
// this one, and returns what it printed. An error holds that too. Its token is
// none: it insists on having one for what it fetches from a registry.
func (l *Lab) GH(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, l.Path("bin", "gh-"+GHVersion, "gh"), args...) // #nosec G204 -- built by OpenGH
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
