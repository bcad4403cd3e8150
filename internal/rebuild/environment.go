package rebuild

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// environment is what programs that work on a source see of this process's
// environment: where programs, temporary files and caches are, and how to reach the
// network. Secrets are not among it, nor what names another repository.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		name = strings.ToUpper(name)
		return !slices.Contains(passed(), name) && !strings.HasPrefix(name, "LC_")
	})
}

func passed() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TZ", "TMPDIR", "XDG_CACHE_HOME", "SOURCE_DATE_EPOCH",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"GOCACHE", "GOMODCACHE", "GOPATH", "GOROOT", "GOTMPDIR",
		// Windows does not start programs without some of these.
		"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "USERNAME", "APPDATA",
		"LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
	}
}

// goSettings are the user's settings of the go command that say where modules are
// fetched from and kept. Others, such as GOFLAGS, are the recipe's.
func goSettings(ctx context.Context, dir string) ([]string, error) {
	names := []string{
		"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GONOPROXY", "GOINSECURE", "GOVCS", "GOAUTH",
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"env", "-json"}, names...)...) //nolint:gosec // the names are the constants above
	// There, no go.mod chooses another toolchain.
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	values := map[string]string{}
	if err := json.Unmarshal(out, &values); err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	settings := []string{"GOENV=off"}
	for _, name := range names {
		if values[name] != "" {
			settings = append(settings, name+"="+values[name])
		}
	}
	return settings, nil
}
