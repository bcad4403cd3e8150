//go:build unix

package plugin_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	fleetingplugin "gitlab.com/gitlab-org/fleeting/fleeting/plugin"

	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// The environment that turns TestLibraryBootstrap into fleeting's library.
const (
	asLibrary      = "TEST_AS_LIBRARY"
	libraryVersion = "TEST_LIBRARY_VERSION"
)

// TestLibraryBootstrap is no test of its own: TestBootstrapNamesFoldersLikeTheLibrary
// starts this executable with it, to have the library's own bootstrap run.
func TestLibraryBootstrap(t *testing.T) {
	if os.Getenv(asLibrary) == "" {
		return // not started for that
	}
	fleetingplugin.Main(nil, fleetingplugin.VersionInfo{Version: os.Getenv(libraryVersion), Revision: "0123456789ab", BuiltAt: "2026-11-30T10:00:00Z"})
}

func TestBootstrapNamesFoldersLikeTheLibrary(t *testing.T) {
	t.Parallel()
	library := filepath.Join(t.TempDir(), "library.test")
	copyFile(t, executable(t), library)
	for _, test := range []struct{ name, repository, version, packaged string }{
		{"plain", "registry.example.com/plugins/openstack", "1.2.3", "1.2.3"},
		{"leading v", "registry.example.com/plugins/openstack", "v1.2.3", ""},
		{"prerelease", "registry.example.com/plugins/openstack", "1.2.3-rc.1", "1.2.3-rc.1"},
		{"tag taken off", "registry.example.com/plugins/openstack:1.2", "1.2.3", ""},
		{"capitals", "registry.example.com/Plugins/OpenStack", "1.2.3-RC1", ""},
		{"no registry", "plugins/openstack", "1.2.3", ""},
		{"one name", "openstack", "1.2.3", ""},
		{"versions differ", "openstack", "1.2.4", "1.2.3"},
		{"version of the image", "openstack", "dev", "1.2.3"},
		{"short version", "openstack", "7", ""},
		{"no version at all", "openstack", "dev", ""},
		{"image says dev", "openstack", "dev", "dev"},
		{"pseudo-version", "openstack", "v0.0.0-20261130100000-0123456789ab", "dev"},
		{"registry with a port", "registry.example.com:5050/plugins/openstack", "1.2.3", ""},
		{"device name", "registry.example.com/plugins/con", "1.2.3", ""},
		{"nothing", "", "1.2.3", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			theirs, ours := t.TempDir(), t.TempDir()
			cmd := exec.CommandContext(t.Context(), library, "-test.run=^TestLibraryBootstrap$", "bootstrap", test.repository)
			cmd.Env = []string{asLibrary + "=1", libraryVersion + "=" + test.version, "FLEETING_PLUGIN_PATH=" + theirs, "FLEETING_PLUGIN_PKG_VERSION=" + test.packaged}
			out, err := cmd.CombinedOutput()
			failed := err != nil
			done, err := plugin.Bootstrap(plugin.BootstrapOptions{
				Repository: test.repository, Source: pluginFolder(t), Target: ours, PackageVersion: test.packaged,
				Version: fleetingplugin.VersionInfo{Version: test.version, Revision: "0123456789ab", BuiltAt: "2026-11-30T10:00:00Z"},
			})
			if failed != errors.Is(err, plugin.ErrBootstrap) {
				t.Fatalf("library failed: %v (%s); ours: %v", failed, out, err)
			}
			if diff := cmp.Diff(folders(t, theirs), folders(t, ours)); diff != "" {
				t.Errorf("folders (-library +ours):\n%s", diff)
			}
			if warned := strings.Contains(string(out), "warn:"); warned != (done.Warning != "") {
				t.Errorf("library warned: %v, ours: %q", warned, done.Warning)
			}
		})
	}
}

func TestBootstrapLetsOthersRead(t *testing.T) {
	t.Parallel()
	done := bootstrapInto(t, t.TempDir())
	for path, want := range map[string]fs.FileMode{".": 0o755, "..": 0o755, "../..": 0o755, "plugin": 0o755, "NOTICE": 0o644} {
		if got := stat(t, filepath.Join(done.Dir, path)).Mode().Perm(); got != want {
			t.Errorf("mode of %s: got %v, want %v", path, got, want)
		}
	}
}

func TestBootstrapRepairsHalfACopy(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(t *testing.T, dir string){
		"empty folder":   func(t *testing.T, dir string) { t.Helper(); remove(t, dir, "plugin", "NOTICE") },
		"file missing":   func(t *testing.T, dir string) { t.Helper(); remove(t, dir, "NOTICE") },
		"file cut short": func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "plugin"), "#!/bin", 0o755) },
		"other content": func(t *testing.T, dir string) {
			t.Helper()
			write(t, filepath.Join(dir, "plugin"), "#!/bin/flase\n", 0o755)
		},
		"longer": func(t *testing.T, dir string) {
			t.Helper()
			write(t, filepath.Join(dir, "plugin"), pluginContent+"x", 0o755)
		},
		"not executable": func(t *testing.T, dir string) { t.Helper(); chmod(t, filepath.Join(dir, "plugin"), 0o644) },
		"folder closed":  func(t *testing.T, dir string) { t.Helper(); chmod(t, dir, 0o700) },
		"link in its place": func(t *testing.T, dir string) {
			t.Helper()
			remove(t, dir, "plugin")
			if err := os.Symlink("/bin/true", filepath.Join(dir, "plugin")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := t.TempDir()
			dir := bootstrapInto(t, target).Dir
			breakIt(t, dir)
			bootstrapInto(t, target)
			if diff := cmp.Diff(pluginContent, read(t, filepath.Join(dir, "plugin"))); diff != "" {
				t.Error(diff)
			}
			if got := stat(t, filepath.Join(dir, "plugin")).Mode(); got != 0o755 {
				t.Errorf("plugin has mode %v", got)
			}
			if got := stat(t, dir).Mode().Perm(); got != 0o755 {
				t.Errorf("folder has mode %v", got)
			}
			if diff := cmp.Diff([]string{"registry.example.com"}, entriesOf(t, target)); diff != "" {
				t.Errorf("something was left behind:\n%s", diff)
			}
			if again := bootstrapInto(t, target); again.Repaired || len(again.Written) > 0 {
				t.Errorf("not repaired for good: %+v", again)
			}
		})
	}
}

func TestBootstrapLeavesACompleteCopyAlone(t *testing.T) {
	t.Parallel()
	target := t.TempDir()
	first := bootstrapInto(t, target)
	before := stat(t, filepath.Join(first.Dir, "plugin"))
	second := bootstrapInto(t, target)
	if diff := cmp.Diff(plugin.Bootstrapped{Dir: first.Dir}, second); diff != "" {
		t.Error(diff)
	}
	if after := stat(t, filepath.Join(first.Dir, "plugin")); !os.SameFile(before, after) {
		t.Error("the file was written again")
	}
}

func TestBootstrapRefuses(t *testing.T) {
	t.Parallel()
	inTheWay := t.TempDir()
	write(t, filepath.Join(inTheWay, "registry.example.com"), "", 0o644)
	deeper := pluginFolder(t)
	if err := os.Mkdir(filepath.Join(deeper, "lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string]plugin.BootstrapOptions{
		"no plugin folder":    {Repository: "openstack", Source: pluginFolder(t), Target: filepath.Join(t.TempDir(), "none")},
		"a file in the way":   {Repository: "registry.example.com/openstack", Source: pluginFolder(t), Target: inTheWay},
		"folder in the image": {Repository: "openstack", Source: deeper, Target: t.TempDir()},
		"no such source":      {Repository: "openstack", Source: filepath.Join(t.TempDir(), "none"), Target: t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts.Version.Version = "1.2.3"
			if done, err := plugin.Bootstrap(opts); err == nil {
				t.Errorf("got no error, but %+v", done)
			}
			if found, err := filepath.Glob(filepath.Join(opts.Target, ".bootstrap-*")); err != nil || found != nil {
				t.Errorf("left behind: %v, %v", found, err)
			}
		})
	}
}

func TestBootstrapsAtOnce(t *testing.T) {
	t.Parallel()
	target := t.TempDir()
	source := pluginFolder(t)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := plugin.Bootstrap(options(source, target)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if last := bootstrapInto(t, target); last.Repaired {
		t.Errorf("incomplete after all: %+v", last)
	}
	if diff := cmp.Diff([]string{"registry.example.com"}, entriesOf(t, target)); diff != "" {
		t.Errorf("something was left behind:\n%s", diff)
	}
}

func TestBootstrapSweepsWhatAKilledOneLeft(t *testing.T) {
	t.Parallel()
	target := t.TempDir()
	for name, age := range map[string]time.Duration{".bootstrap-old": 2 * time.Hour, ".bootstrap-new": 0} {
		dir := filepath.Join(target, name)
		write(t, filepath.Join(dir, "plugin"), "half", 0o755)
		then := time.Now().Add(-age)
		if err := os.Chtimes(dir, then, then); err != nil {
			t.Fatal(err)
		}
	}
	bootstrapInto(t, target)
	if diff := cmp.Diff([]string{".bootstrap-new", "registry.example.com"}, entriesOf(t, target)); diff != "" {
		t.Error(diff)
	}
}

const pluginContent = "#!/bin/false\n"

func pluginFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plugin"), pluginContent, 0o755)
	write(t, filepath.Join(dir, "NOTICE"), "notice", 0o600)
	return dir
}

func options(source, target string) plugin.BootstrapOptions {
	return plugin.BootstrapOptions{
		Repository: "registry.example.com/plugins/openstack", Source: source, Target: target,
		Version: fleetingplugin.VersionInfo{Version: "1.2.3"}, PackageVersion: "1.2.3",
	}
}

func bootstrapInto(t *testing.T, target string) plugin.Bootstrapped {
	t.Helper()
	done, err := plugin.Bootstrap(options(pluginFolder(t), target))
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// folders returns the version folders below dir, as the runner would see them.
func folders(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			relative, _ := filepath.Rel(dir, filepath.Dir(path))
			if len(found) == 0 || found[len(found)-1] != relative {
				found = append(found, relative)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func entriesOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	write(t, to, read(t, from), 0o755)
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func write(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, name := range files {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func stat(t *testing.T, path string) fs.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
