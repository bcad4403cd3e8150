package dist

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// TestModes: a system without modes makes the same layer as one with them, or none.
func TestModes(t *testing.T) {
	t.Parallel()
	linux, windows := []string{"plugin", "helper", "NOTICE"}, []string{"plugin.exe", "helper.EXE", "lib.dll", "NOTICE"}
	for name, test := range map[string]struct {
		platform    string
		files       []string
		marked      []string // by their modes
		modes       bool
		executables []string
		want        []string
		refused     string
	}{
		"by their modes":               {"linux/amd64", linux, []string{"helper"}, true, nil, []string{"plugin", "helper"}, ""},
		"named, with modes":            {"linux/amd64", linux, []string{"NOTICE"}, true, []string{"helper"}, []string{"plugin", "helper"}, ""},
		"named, without modes":         {"linux/amd64", linux, nil, false, []string{"helper"}, []string{"plugin", "helper"}, ""},
		"none, without modes":          {"linux/amd64", linux, nil, false, []string{""}, []string{"plugin"}, ""},
		"not named, without modes":     {"linux/amd64", linux, nil, false, nil, nil, "does not tell"},
		"no companions, without modes": {"darwin/arm64", linux[:1], nil, false, nil, []string{"plugin"}, ""},
		"for Windows, with modes":      {"windows/amd64", windows, []string{"NOTICE"}, true, nil, []string{"plugin.exe", "helper.EXE", "lib.dll"}, ""},
		"for Windows, without modes":   {"windows/amd64", windows, nil, false, nil, []string{"plugin.exe", "helper.EXE", "lib.dll"}, ""},
		"for Windows, others named":    {"windows/amd64", windows, nil, false, []string{"NOTICE"}, []string{"plugin.exe", "helper.EXE", "lib.dll"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := artifact.ParsePlatform(test.platform)
			if err != nil {
				t.Fatal(err)
			}
			in := Input{platform: p}
			for i, name := range test.files {
				marked := i == 0
				for _, m := range test.marked {
					marked = marked || m == name
				}
				in.files = append(in.files, File{name: name, path: name, executable: marked})
			}
			err = in.settleModes(test.executables, test.modes)
			if test.refused != "" {
				if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("error %v; want one with %q", err, test.refused)
				}
				return
			}
			var got []string
			for _, f := range in.files {
				if f.executable {
					got = append(got, f.name)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestLooksExecutable: what has no mode is told by its content.
func TestLooksExecutable(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if !looksExecutable(self) {
		t.Errorf("%s does not look like an executable", self)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"text": "#!/bin/sh\n", "empty": "", "cut off": "\x7fELF", "library": "!<arch>\n"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if looksExecutable(path) {
			t.Errorf("%s looks like an executable", name)
		}
	}
	if looksExecutable(filepath.Join(dir, "nothing")) || looksExecutable(dir) {
		t.Error("what is no file looks like an executable")
	}
}
