package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
)

// TestConfigPlace holds that the lock is looked for beside the configuration
// that is read, also when nobody names either: prune deletes what neither names.
func TestConfigPlace(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	own := filepath.Join(home, ".gitlab-runner", "config.toml")
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		flag, variable, home string
		root                 bool
		config, lock         string
	}{
		"named":       {"/a/config.toml", "/b/config.toml", home, true, "/a/config.toml", "/a/" + lockName},
		"environment": {"", "/b/config.toml", home, true, "/b/config.toml", "/b/" + lockName},
		"user":        {"", "", home, false, own, filepath.Join(filepath.Dir(own), lockName)},
		"user without one": {
			"", "", filepath.Join(home, "none"), false,
			filepath.Join(home, "none", ".gitlab-runner", "config.toml"), lockName,
		},
		"no home": {"", "", "", false, "config.toml", lockName},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := configPlace{places: unixHome(test.home), variable: test.variable, flag: test.flag, root: test.root}
			got := []string{filepath.ToSlash(c.path()), filepath.ToSlash(c.lock(""))}
			if diff := cmp.Diff([]string{filepath.ToSlash(test.config), filepath.ToSlash(test.lock)}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := c.lock("x.lock"); got != "x.lock" {
				t.Errorf("named lock: %s", got)
			}
		})
	}
	if got, want := (configPlace{places: unixHome(""), root: true}).path(), "/etc/gitlab-runner/config.toml"; got != want {
		t.Errorf("root's is %s; want %s", got, want)
	}
}

// unixHome are the places of a user of Linux, with slashes on every system.
func unixHome(home string) places.Places {
	return places.On("linux", func(name string) (string, bool) { return filepath.ToSlash(home), name == "HOME" })
}
