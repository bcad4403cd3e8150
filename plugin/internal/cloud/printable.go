package cloud

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns text that came from outside in a form that a terminal shows
// and does not obey: control characters, those that change the direction of
// writing, and bytes that are no UTF-8 are escaped as Go escapes them.
func Printable(text string) string {
	if strings.IndexFunc(text, unprintable) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(escape('x', rune(text[i]), 2))
		case !unprintable(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x10000:
			b.WriteString(escape('u', r, 4))
		default:
			b.WriteString(escape('U', r, 8))
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// escape writes a number as a backslash, a letter and hexadecimal digits.
func escape(letter byte, r rune, digits int) string {
	const hexadecimal = "0123456789abcdef"
	text := []byte{'\\', letter}
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		text = append(text, hexadecimal[r>>shift&0xf])
	}
	return string(text)
}

// oneLine replaces each run of white space by a blank, and cuts what is longer
// than most runes.
func oneLine(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	seen := 0
	for i := range text {
		if seen++; seen > most {
			return text[:i] + "…"
		}
	}
	return text
}
