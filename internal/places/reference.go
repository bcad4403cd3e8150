package places

import "strings"

// IsPath tells a path of this machine from a reference to a plugin, where either
// may be given. It goes by the text alone, for the paths of all systems on each of
// them: /x, ./x, ../x, ~/x, C:/x, C:\x, .\x and \\server\share are paths. A name
// with slashes in it is a reference; write ./x for the path.
//
// No reference is a path: the elements of its repository are lower-case letters
// and digits, and its registry has at least two characters.
func IsPath(text string) bool {
	switch {
	case text == "":
		return false
	case strings.ContainsAny(text[:1], "/.~"), strings.Contains(text, `\`):
		return true
	}
	return hasDrive(text)
}

// hasDrive reports whether a text begins with the letter of a drive. In c:1.2 it
// is the name of a plugin.
func hasDrive(text string) bool {
	if len(text) < 2 || text[1] != ':' {
		return false
	}
	upper := text[0] >= 'A' && text[0] <= 'Z'
	lower := text[0] >= 'a' && text[0] <= 'z'
	return upper || lower && (len(text) == 2 || text[2] == '/')
}
