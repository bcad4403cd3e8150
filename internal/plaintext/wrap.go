package plaintext

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks a text between words into lines of at most so many characters. A
// longer word has a line of its own.
func Wrap(text string, room int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > room {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
