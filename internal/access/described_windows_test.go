package access

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

// TestDescribed reads access lists as Windows writes them
// (https://learn.microsoft.com/en-us/windows/win32/secauthz/ace-strings), without
// a file system that keeps them.
func TestDescribed(t *testing.T) {
	t.Parallel()
	const admins = "O:BAG:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
	for name, test := range map[string]struct {
		sddl        string
		write, read string // the last part of a SID, or a name
	}{
		"administrators only":                   {admins, "", ""},
		"a profile, with its creator's entry":   {admins + "(A;OICIIO;GA;;;CO)(A;OICI;FA;;;OW)", "", ""},
		"TrustedInstaller":                      {"O:S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464D:P(A;;FA;;;SY)", "", ""},
		"users read":                            {admins + "(A;OICI;0x1200a9;;;BU)", "", "users"},
		"ProgramData: users may make folders":   {admins + "(A;OICI;0x1200a9;;;BU)(A;CI;DCLCSWRPLO;;;BU)", "users", "users"},
		"only for what is made inside":          {admins + "(A;OICIIO;FA;;;BU)", "", ""},
		"the drive: authenticated users modify": {admins + "(A;OICI;0x1301bf;;;AU)", "authenticated", "authenticated"},
		"everyone may append":                   {admins + "(A;;0x4;;;WD)", "everyone", ""},
		"everyone may delete what is inside":    {admins + "(A;;0x40;;;WD)", "everyone", ""},
		"everyone may make it a junction":       {admins + "(A;;0x100;;;WD)", "everyone", ""},
		"everyone may change the list":          {admins + "(A;;WD;;;WD)", "everyone", ""},
		"everyone may take it":                  {admins + "(A;;WO;;;WD)", "everyone", ""},
		"everyone, generic":                     {admins + "(A;;GW;;;WD)", "everyone", ""},
		"another user owns it":                  {"O:S-1-5-21-1-2-3-1005D:P(A;;FA;;;SY)", "its owner", ""},
		"the machine's administrator":           {"O:S-1-5-21-1-2-3-500D:P(A;;FA;;;S-1-5-21-1-2-3-512)", "", ""},
		"denied, and so not allowed":            {admins + "(D;;FA;;;WD)", "", ""},
		"an empty access list":                  {"O:BAG:BAD:P", "", ""},
		"a service account of its own":          {admins + "(A;OICI;FA;;;S-1-5-80-1-2-3-4-5)", "s-1-5-80-1-2-3-4-5", "s-1-5-80-1-2-3-4-5"},
	} {
		descriptor, err := windows.SecurityDescriptorFromString(test.sddl)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := described(descriptor)
		if err != nil || !says(got.Write, test.write) || !says(got.Read, test.read) {
			t.Errorf("%s: got %+v, %v; want write %q, read %q", name, got, err, test.write, test.read)
		}
	}
}

// TestNoAccessList: then everyone may do everything.
func TestNoAccessList(t *testing.T) {
	t.Parallel()
	descriptor, err := windows.NewSecurityDescriptor()
	if err != nil {
		t.Fatal(err)
	}
	owner, err := windows.StringToSid("S-1-5-32-544")
	if err := errors.Join(err, descriptor.SetOwner(owner, false), descriptor.SetDACL(nil, true, false)); err != nil {
		t.Fatal(err)
	}
	if got, err := described(descriptor); err != nil || !says(got.Write, "everyone") || !says(got.Read, "everyone") {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestUnknownEntries: what an entry of another kind allows is not known, and so it
// counts.
func TestUnknownEntries(t *testing.T) {
	t.Parallel()
	for kind, counts := range map[uint8]bool{0: false, 1: false, 2: false, 4: true, 5: true, 6: false, 9: false, 11: true, 17: false, 20: false, 21: true} {
		descriptor, err := windows.SecurityDescriptorFromString("O:BAG:BAD:P(A;OICI;FA;;;BA)")
		if err != nil {
			t.Fatal(err)
		}
		entries, _, err := descriptor.DACL()
		var entry *windows.ACCESS_ALLOWED_ACE
		if err := errors.Join(err, windows.GetAce(entries, 0, &entry)); err != nil {
			t.Fatal(err)
		}
		entry.Header.AceType = kind
		if got, err := described(descriptor); err != nil || (got.Write != "") != counts || (got.Read != "") != counts || (got.replace != "") != counts {
			t.Errorf("kind %d: %+v, %v", kind, got, err)
		}
	}
}

// TestReplacing: on the way to a file it does not matter that users may make
// folders, as they may in that of a drive.
func TestReplacing(t *testing.T) {
	t.Parallel()
	for sddl, want := range map[string]string{
		"O:BAG:BAD:P(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;CI;LC;;;BU)(A;CIIO;DC;;;BU)(A;OICIIO;0x1301bf;;;AU)(A;;LC;;;AU)": "",
		"O:BAG:BAD:P(A;OICI;FA;;;BA)(A;OICI;0x1301bf;;;AU)":                                                                   "authenticated",
		"O:BAG:BAD:P(A;OICI;FA;;;BA)(A;;0x40;;;WD)":                                                                           "everyone",
	} {
		descriptor, err := windows.SecurityDescriptorFromString(sddl)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := described(descriptor); err != nil || !says(got.replace, want) {
			t.Errorf("%s: %+v, %v; want %q", sddl, got, err, want)
		}
	}
}

func says(got, want string) bool {
	return (got == "") == (want == "") && strings.Contains(strings.ToLower(got), want)
}
