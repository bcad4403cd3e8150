package access_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/radome-io/fleeting-plugin-openstack/internal/access"
)

// letIn replaces the access list: the user, administrators and the system may do
// everything, all users what is asked for.
func letIn(t *testing.T, path string, write, read bool) {
	t.Helper()
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		t.Fatal(err)
	}
	sddl := "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;" + user.User.Sid.String() + ")"
	rights := ""
	if write {
		rights += "FW"
	}
	if read {
		rights += "FR"
	}
	if rights != "" {
		sddl += "(A;OICI;" + rights + ";;;WD)"
	}
	setList(t, path, sddl)
}

func setList(t *testing.T, path, sddl string) {
	t.Helper()
	descriptor, err := windows.SecurityDescriptorFromString(sddl)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := descriptor.DACL()
	if err != nil {
		t.Fatal(err)
	}
	const what = windows.DACL_SECURITY_INFORMATION | windows.PROTECTED_DACL_SECURITY_INFORMATION
	if err := windows.SetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, what, nil, nil, list, nil); err != nil {
		t.Fatal(err)
	}
}

// TestJunction: a junction does not count as a folder, wherever it leads.
func TestJunction(t *testing.T) {
	t.Parallel()
	junction := filepath.Join(t.TempDir(), "junction")
	if out, err := exec.CommandContext(t.Context(), "cmd", "/c", "mklink", "/J", junction, t.TempDir()).CombinedOutput(); err != nil {
		t.Fatalf("mklink: %v: %s", err, out)
	}
	if err := access.Guarded(junction); err == nil {
		t.Error("a junction is taken for a folder")
	}
}

// TestSharedByUsers names who may write a folder with the access list that every
// folder in ProgramData inherits: users may make folders.
func TestSharedByUsers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "docker")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	setList(t, dir, "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICIIO;GA;;;CO)(A;OICI;FR;;;BU)(A;CI;DCLCSWRPLO;;;BU)")
	got, err := access.Of(dir)
	if err != nil || !strings.Contains(strings.ToLower(got.Write), "users") {
		t.Errorf("%+v, %v; want the users", got, err)
	}
}
