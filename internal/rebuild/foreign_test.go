package rebuild_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/rebuild"
)

// TestForeignConfiguration: a checkout that somebody else made may be packed
// with a .git/config; looking at it runs none of the programs named there.
func TestForeignConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ran := filepath.Join(t.TempDir(), "ran")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "--quiet")
	for name, content := range map[string]string{"file": "one", ".gitattributes": "file filter=a.b\nother filter=c\n", "other": "one"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("add", ".")
	git("commit", "--quiet", "-m", "one")
	git("config", "filter.a.b.clean", "echo clean >> "+ran+"; cat")
	git("config", "filter.c.process", "echo process >> "+ran)
	git("config", "filter.c.required", "true")
	git("config", "core.fsmonitor", "echo fsmonitor >> "+ran)
	later := time.Now().Add(time.Hour)
	for _, name := range []string{"file", "other"} {
		if err := os.Chtimes(filepath.Join(dir, name), later, later); err != nil {
			t.Fatal(err)
		}
	}
	if _, changed, unknown, err := rebuild.Copy(t.Context(), dir, filepath.Join(t.TempDir(), "copy")); len(changed) > 0 || unknown != nil || err != nil {
		t.Errorf("changed %v, %v, %v; want a commit and no modification", changed, unknown, err)
	}
	if content, err := os.ReadFile(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ran: %s (%v)", content, err)
	}
}

// TestBrokenCheckout: that the files cannot be compared is no file.
func TestBrokenCheckout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	if err := os.RemoveAll(filepath.Join(dir, ".git", "objects")); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if _, changed, unknown, err := rebuild.Copy(t.Context(), dir, copied); len(changed) > 0 || unknown == nil || err != nil {
		t.Errorf("changed %v, %v, %v; want a commit and an error", changed, unknown, err)
	}
	if _, err := os.Stat(filepath.Join(copied, ".git")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a repository is left: %v", err)
	}
}

// TestCopy: what differs is named, links that lead out are left out, and so are
// repositories; tags are there to be described by.
func TestCopy(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	git(t, dir, "init", "-q")
	for _, name := range []string{"same", "changed", "deep/er/file", "gone"} {
		writeFile(t, filepath.Join(dir, name), "one")
	}
	for from, to := range map[string]string{
		"in": "same", "deep/up": "../same", "deep/loop": "loop", "dangling": "nowhere",
		"out": outside, "climbs": "../" + filepath.Base(outside), "deep/er/top": "../..", "by-way": "deep/er/top/..", "absolute": filepath.Join(dir, "same"),
	} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "first")
	git(t, dir, "tag", "v1.2.3")
	git(t, dir, "tag", "-a", "-m", "x", "v1.2.4")
	git(t, dir, "pack-refs", "--all")
	git(t, dir, "tag", "v1.2.5")
	writeFile(t, filepath.Join(dir, "changed"), "two")
	writeFile(t, filepath.Join(dir, "new"), "two")
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	for _, nested := range []string{"child", "deep/.GIT"} {
		git(t, dir, "init", "-q", nested)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	source, changed, unknown, err := rebuild.Copy(t.Context(), dir, copied)
	if err != nil || unknown != nil {
		t.Fatal(unknown, err)
	}
	slices.Sort(source.LeftOut)
	if diff := cmp.Diff([]string{"absolute", "by-way", "climbs", "deep/loop", "out"}, source.LeftOut); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"changed", "gone", "new", "out"} {
		if !slices.Contains(changed, name) {
			t.Errorf("%s is not among %v", name, changed)
		}
	}
	if slices.Contains(changed, "same") || slices.Contains(changed, "deep/er/file") {
		t.Errorf("unchanged files are among %v", changed)
	}
	for _, name := range []string{"child/.git", "deep/.GIT"} {
		if _, err := os.Lstat(filepath.Join(copied, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was copied: %v", name, err)
		}
	}
	if tags := git(t, copied, "tag", "--points-at", "HEAD"); tags != "v1.2.3\nv1.2.4\nv1.2.5" {
		t.Errorf("tags %q", tags)
	}
	if head := git(t, copied, "rev-parse", "HEAD"); head != git(t, dir, "rev-parse", "HEAD") {
		t.Errorf("the copy is at %s", head)
	}
	// A folder below the top, a further work tree, and no repository at all.
	below, _, unknown, err := rebuild.Copy(t.Context(), filepath.Join(dir, "deep"), filepath.Join(t.TempDir(), "copy"))
	if err != nil || unknown != nil || filepath.Base(below.Dir) != "deep" {
		t.Errorf("%+v, %v, %v", below, unknown, err)
	}
	git(t, dir, "worktree", "add", "-q", filepath.Join(outside, "tree"), "v1.2.3")
	if _, changed, unknown, err := rebuild.Copy(t.Context(), filepath.Join(outside, "tree"), filepath.Join(t.TempDir(), "copy")); err != nil || unknown != nil || slices.Contains(changed, "same") {
		t.Errorf("%v, %v, %v", changed, unknown, err)
	}
	plain, changed, unknown, err := rebuild.Copy(t.Context(), module(t, map[string]string{"file": "x"}), filepath.Join(t.TempDir(), "copy"))
	if err != nil || unknown != nil || changed != nil || readAll(t, filepath.Join(plain.Dir, "file")) != "x" {
		t.Errorf("%v, %v, %v", changed, unknown, err)
	}
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
