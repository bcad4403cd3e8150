//go:build unix

package dist

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// TestExecutableThatNeverAnswers also leaves a child with the output open, which
// must not outlive it.
func TestExecutableThatNeverAnswers(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"hangs":           "#!/bin/sh\nexec 3<>\"$0.pipe\"\nsleep 50 &\nsleep 50\n",
		"leaves a child":  "#!/bin/sh\nexec 3<>\"$0.pipe\"\nsleep 50 &\n",
		"writes for ever": "#!/bin/sh\nexec yes\n",
	} {
		path := filepath.Join(t.TempDir(), "plugin")
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path+".pipe", 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := run(t.Context(), path, 5*time.Second)
		if err == nil || len(out) > versionLimit {
			t.Errorf("%s: %d bytes, error %v", name, len(out), err)
		}
		if name == "hangs" && !strings.Contains(err.Error(), "more than 5s") {
			t.Errorf("%s: error %v", name, err)
		}
		nobodyHolds(t, path+".pipe")
	}
}

// nobodyHolds waits until no process has a named pipe open any more, each of
// which writes to it as well as reads from it.
func nobodyHolds(t *testing.T, pipe string) {
	t.Helper()
	for range 1000 {
		// Without a reader, a pipe cannot be opened for writing alone.
		fd, err := syscall.Open(pipe, syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return
		}
		_ = syscall.Close(fd)
		select {
		case <-t.Context().Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("a child outlived the executable")
}

// TestToldVersion: executables answer -version as they like.
func TestToldVersion(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"Name: x\nVersion: 1.2.3\nGO version: go1.26.0\n": "1.2.3",
		"v0.1.0\n":                            "v0.1.0",
		"1.0.0":                               "1.0.0",
		"fleeting-plugin-x 1.0.0-rc.1\n":      "1.0.0-rc.1",
		"plugin version v1.0.0 (go1.26.0)\n":  "v1.0.0",
		"plugin, built with Go 1.26.0, 2.0.0": "2.0.0",
		"x version=\"1.0.0\"":                 "",
		"x: \"1.0.0\", commit 4711\n":         "1.0.0",
		"dev\n":                               "dev",
		"usage: x [flags]\n":                  "",
		"1.0\n":                               "1.0",
		"":                                    "",
	} {
		if got := toldVersion(answer); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}

// TestVersionOfAPlainAnswer: what an executable says counts, wherever it says it,
// and a linker flag that did nothing is named.
func TestVersionOfAPlainAnswer(t *testing.T) {
	t.Parallel()
	linked := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "-ldflags", Value: "-s -w -X main.version=1.1.0"}}}
	for name, c := range map[string]struct {
		script  string
		info    *debug.BuildInfo
		problem string
		warning string
	}{
		"the same":            {"echo v1.1.0", nil, "", ""},
		"another":             {"echo 1.0.0", nil, "reports version 1.0.0, but would be published as 1.1.0", ""},
		"on standard error":   {"echo 1.0.0 >&2", nil, "reports version 1.0.0", ""},
		"a constant":          {"echo 1.0.0", linked, "published as 1.1.0, although the linker was told to set main.version", ""},
		"a constant dev":      {"echo dev", linked, "", "although the linker was told to set main.version"},
		"nothing, and a flag": {"echo", linked, "", "although the linker was told to set main.version"},
		"set, and told":       {"echo 1.1.0", linked, "", ""},
		"words without any":   {"echo a plugin", nil, "", "names no version"},
		"usage and an error":  {"echo unknown flag 9.9.9 >&2; exit 2", nil, "", "does not answer -version"},
	} {
		path := filepath.Join(t.TempDir(), "plugin")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		want, err := version.Parse("1.1.0")
		if err != nil {
			t.Fatal(err)
		}
		in := Input{platform: artifact.HostPlatform(), files: []File{{name: artifact.HostPlatform().Executable(), path: path}}, info: c.info}
		warnings, err := compareVersion(t.Context(), in, want)
		if (c.problem == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v, want %q", name, err, c.problem)
		}
		refused, ok := errors.AsType[*InputError](err)
		if ok && c.info != nil && !strings.Contains(refused.Remedy, "declare main.version as a string variable") {
			t.Errorf("%s: remedy %q", name, refused.Remedy)
		}
		if (c.warning == "") != (len(warnings) == 0) || len(warnings) > 0 && !strings.Contains(warnings[0].String(), c.warning) {
			t.Errorf("%s: %v, want %q", name, warnings, c.warning)
		}
	}
}
