package rebuild_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

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
	if commit, different, err := rebuild.Head(t.Context(), dir); commit == "" || len(different) > 0 || err != nil {
		t.Errorf("commit %q, different %v, %v; want a commit and no modification", commit, different, err)
	}
	if content, err := os.ReadFile(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ran: %s (%v)", content, err)
	}
}

// TestHeadOfBrokenCheckout: that the files cannot be compared is no file.
func TestHeadOfBrokenCheckout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"init", "-q"},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "--allow-empty", "-m", "first"},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".git", "index"), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if commit, different, err := rebuild.Head(t.Context(), dir); commit == "" || len(different) > 0 || err == nil {
		t.Errorf("commit %q, different %v, %v; want a commit and an error", commit, different, err)
	}
}
