package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUserDataWithMark: cloud-init and cloudbase-init go by the first bytes, in
// front of which an editor's mark must not stand.
func TestUserDataWithMark(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "windows.ps1")
	for content, want := range map[string]string{
		"\ufeff#ps1_sysnative\r\n": "#ps1_sysnative\r\n", "\x1f\x8b\x00\xff": "\x1f\x8b\x00\xff", "\xff\xfe#\x00": "",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, problem := (&ServerConfig{UserDataFile: path}).loadUserData()
		if want == "" && (problem == nil || !strings.Contains(problem.Text, "UTF-16")) || want != "" && (problem != nil || string(got) != want) {
			t.Errorf("%q: got %q, %v", content, got, problem)
		}
	}
}
