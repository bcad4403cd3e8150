// Package roff escapes text for manual pages. It knows no macro package, and it
// writes no page.
package roff

import "strings"

// Escape keeps text from being read as macros: dashes stay what can be typed,
// and no line starts with a control character. Reference: groff(7), "Escape
// sequences" and "Control characters".
func Escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
