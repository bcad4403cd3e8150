package access

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

const (
	// writing are the rights with which a file, or what is in a folder, can be
	// changed or replaced. With FILE_WRITE_ATTRIBUTES a folder can be made a
	// junction.
	writing = windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | windows.FILE_WRITE_ATTRIBUTES | deleteChild |
		windows.DELETE | windows.WRITE_DAC | windows.WRITE_OWNER | windows.GENERIC_WRITE | windows.GENERIC_ALL
	replacing   = deleteChild | windows.DELETE | windows.WRITE_DAC | windows.WRITE_OWNER | windows.GENERIC_ALL
	reading     = windows.FILE_READ_DATA | windows.GENERIC_READ | windows.GENERIC_ALL
	deleteChild = 0x40

	// Kinds of entries, winnt.h. Those of conditional entries count as if their
	// condition held.
	allowed, allowedCallback = 0, 9
	// Entries that allow something and are written in another way. No system makes
	// them for files.
	allowedCompound, allowedObject, allowedCallbackObject = 4, 5, 11
	lastKind                                              = 20
	inheritOnly                                           = 0x8
)

func of(path string) (Access, error) {
	found, err := listOf(path)
	return found.Access, err
}

// list is what an access list says.
type list struct {
	Access
	// replace is who may put another file or folder in the place of one that is in
	// the folder, or of the folder itself: less than to write it, which everyone may
	// do with the folder of a drive.
	replace string
}

func listOf(path string) (list, error) {
	const what = windows.OWNER_SECURITY_INFORMATION | windows.DACL_SECURITY_INFORMATION
	found := list{}
	descriptor, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, what)
	if err == nil {
		found, err = described(descriptor)
	}
	if err != nil {
		return list{}, fmt.Errorf("reading the access list of %s: %w", path, err)
	}
	return found, nil
}

// described goes by the owner and the entries that allow something. Entries that
// deny are passed over: they are rare, and to name a user too many is safe.
func described(descriptor *windows.SECURITY_DESCRIPTOR) (list, error) {
	trusted, err := administrators()
	if err != nil {
		return list{}, err
	}
	owner, _, err := descriptor.Owner()
	if err != nil {
		return list{}, err
	}
	entries, _, err := descriptor.DACL()
	if err != nil && !errors.Is(err, windows.ERROR_OBJECT_NOT_FOUND) {
		return list{}, err
	}
	if entries == nil {
		const everyone = "everyone: it has no access list"
		return list{Access{Write: everyone, Read: everyone}, everyone}, nil
	}
	var found grants
	if !trusted.has(owner) {
		found.add("its owner "+nameOf(owner), windows.DELETE)
	}
	for i := range uint32(entries.AceCount) {
		var entry *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(entries, i, &entry); err != nil {
			return list{}, err
		}
		found.entry(entry, trusted)
	}
	return list{Access{Write: joined(found.write), Read: joined(found.read)}, joined(found.replace)}, nil
}

// grants are the names of those who may do something.
type grants struct{ write, read, replace []string }

func (g *grants) add(name string, mask windows.ACCESS_MASK) {
	if mask&writing != 0 {
		g.write = append(g.write, name)
	}
	if mask&reading != 0 {
		g.read = append(g.read, name)
	}
	if mask&replacing != 0 {
		g.replace = append(g.replace, name)
	}
}

func (g *grants) entry(entry *windows.ACCESS_ALLOWED_ACE, trusted accounts) {
	kind := entry.Header.AceType
	switch {
	case entry.Header.AceFlags&inheritOnly != 0:
	case unknown(kind):
		g.add(fmt.Sprintf("an entry of kind %d", kind), windows.GENERIC_ALL)
	case kind == allowed || kind == allowedCallback:
		sid := (*windows.SID)(unsafe.Pointer(&entry.SidStart)) // #nosec G103 -- the entry ends with the SID
		if !trusted.has(sid) {
			g.add(nameOf(sid), entry.Mask)
		}
	}
}

// unknown reports whether an entry may allow something to someone whom it is not
// known where to read.
func unknown(kind uint8) bool {
	return slices.Contains([]uint8{allowedCompound, allowedObject, allowedCallbackObject}, kind) || kind > lastKind
}

func joined(names []string) string {
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// accounts are those that may do everything in any case.
type accounts []*windows.SID

// administrators returns the accounts that may take every file, and the user of
// this process.
func administrators() (accounts, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, fmt.Errorf("finding the user of this process: %w", err)
	}
	found := accounts{user.User.Sid}
	for _, text := range []string{
		"S-1-5-18",     // the system
		"S-1-5-32-544", // Administrators
		"S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464", // TrustedInstaller
		"S-1-3-0", // the creator, in entries for what is made inside
		"S-1-3-4", // the owner, who is looked at
	} {
		sid, err := windows.StringToSid(text)
		if err != nil {
			return nil, err
		}
		found = append(found, sid)
	}
	return found, nil
}

func (a accounts) has(sid *windows.SID) bool {
	return slices.ContainsFunc(a, sid.Equals) || isDomainAdministrator(sid.String())
}

// isDomainAdministrator knows the administrator of a machine or domain, and the
// administrators of a domain and of the forest, by the last part of their SID.
func isDomainAdministrator(sid string) bool {
	return strings.HasPrefix(sid, "S-1-5-21-") &&
		(strings.HasSuffix(sid, "-500") || strings.HasSuffix(sid, "-512") || strings.HasSuffix(sid, "-519"))
}

func nameOf(sid *windows.SID) string {
	account, domain, _, err := sid.LookupAccount("")
	switch {
	case err != nil:
		return sid.String()
	case domain == "":
		return account
	}
	return domain + `\` + account
}

// replaces says who may put something else at a path. In a folder on the way others
// may make files and folders, as in that of a drive.
func replaces(path string, info fs.FileInfo, last bool) (string, error) {
	found, err := listOf(path)
	if info.IsDir() && !last {
		return found.replace, err
	}
	return found.Write, err
}
