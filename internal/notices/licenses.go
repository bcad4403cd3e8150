package notices

import (
	"bufio"
	"bytes"
	"strings"
)

// unknown is SPDX's word for a licence that was not recognised.
const unknown = "NOASSERTION"

// Licenses knows what a text says of modules. It implements [sbom.Licenses].
type Licenses map[string]string

// License returns the SPDX expression of a module version, or "" if the text says
// nothing of it.
func (l Licenses) License(path, version string) string { return l[path+"@"+version] }

// ParseLicenses reads the table of a text that [Collect] made. A text of another
// form knows nothing.
func ParseLicenses(text []byte) Licenses {
	found := Licenses{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxLine)
	inTable := false
	for lines.Scan() {
		line := strings.TrimSuffix(lines.Text(), "\r")
		switch {
		case !inTable:
			inTable = line == tableHead
		case line == "":
			return found
		default:
			path, rest, _ := strings.Cut(line, " ")
			version, expression, ok := strings.Cut(rest, " ")
			if ok && expression != unknown && isExpression(expression) {
				found[path+"@"+version] = expression
			}
		}
	}
	return Licenses{}
}

// maxLine bounds a line, in bytes. A module's path has 500 at most.
const maxLine = 4096

// isExpression reports whether an expression is in the characters of SPDX 2.3,
// annex D. The text may be from anywhere.
func isExpression(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.+:() ", r)
	})
}
