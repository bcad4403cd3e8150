// Package plaintext makes text from outside safe to show: to people on a
// terminal, in logs, and in JSON.
//
// Publishers, registries, clouds and files that other users can write put text
// into messages. A terminal obeys some of it: escape sequences move the cursor
// and rewrite lines, a line break forges a line, and marks of the bidirectional
// algorithm reorder what is read. [Escape] and [Writer] make such characters
// visible; [Line] also keeps a field in its line; [Redact] removes the parts of
// web addresses that can be secrets.
//
// The package decides nothing about what a text means, and it does not quote
// for shells.
package plaintext

import (
	"fmt"
	"io"
	"reflect" //nolint:depguard // finds text whatever its type
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// shown reports whether a terminal shows r and does nothing else with it.
func shown(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return r >= ' ' && r != 0x7f
	case r == '\ufe0e' || r == '\ufe0f':
		return true // choose between the two pictures of a symbol
	}
	return unicode.IsGraphic(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// escape appends a visible form of r, in JSON's notation, so that a JSON text
// stays one with the same value. It is two escapes for what is beyond U+FFFF.
func escape(b []byte, r rune) []byte {
	switch r {
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	}
	if r < 0x10000 {
		return fmt.Appendf(b, `\u%04x`, r)
	}
	r -= 0x10000
	return fmt.Appendf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
}

// appendEscaped appends text; line breaks and tabs are escaped unless they are
// kept.
func appendEscaped(b []byte, text string, keep string) []byte {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b = fmt.Appendf(b, `\x%02x`, text[i])
		case shown(r) || strings.ContainsRune(keep, r):
			b = append(b, text[i:i+n]...)
		default:
			b = escape(b, r)
		}
		i += n
	}
	return b
}

// Escape returns text in which everything that is not shown as itself is
// escaped: control characters, marks that reorder text, invisible characters
// and broken UTF-8. Line breaks (\n) and tabs stay.
func Escape(text string) string { return string(appendEscaped(nil, text, "\n\t")) }

// Line is [Escape] for one field of a line: line breaks and tabs are escaped,
// too, so that the field can neither begin a line nor move a column.
func Line(text string) string { return string(appendEscaped(nil, text, "")) }

// Writer escapes what is written through it, as [Escape] does. It suits text
// and JSON: an escaped character has the same value in a JSON string. It is safe
// for concurrent use.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
	// tail is the beginning of a character whose rest has not come yet.
	tail []byte
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write implements [io.Writer]. The number returned is len(p) or 0: what is
// written may be longer than p.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	whole := append(w.tail, p...)
	end := len(whole)
	for i := max(0, end-utf8.UTFMax+1); i < end; i++ {
		if utf8.RuneStart(whole[i]) && !utf8.FullRune(whole[i:]) {
			end = i
			break
		}
	}
	w.tail = append([]byte(nil), whole[end:]...)
	if _, err := w.w.Write(appendEscaped(nil, string(whole[:end]), "\n\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Fprintf is [fmt.Fprintf] in which every argument that is text is a field of
// its line, as [Line] makes it: strings, lists of them, errors and whatever has
// a String method. Line breaks come from the format only.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	return io.WriteString(w, Sprintf(format, args...))
}

// Sprintf is [fmt.Sprintf] under the rule of [Fprintf].
func Sprintf(format string, args ...any) string {
	fields := make([]any, len(args))
	for i, arg := range args {
		fields[i] = field(arg)
	}
	return fmt.Sprintf(format, fields...)
}

func field(arg any) any {
	switch arg := arg.(type) {
	case string:
		return Line(arg)
	case error:
		return Line(arg.Error())
	case fmt.Stringer:
		return Line(arg.String())
	case []string:
		lines := make([]string, len(arg))
		for i, one := range arg {
			lines[i] = Line(one)
		}
		return lines
	}
	if v := reflect.ValueOf(arg); v.Kind() == reflect.String { // of a type of its own
		return Line(v.String())
	}
	return arg
}

// address is a web address in a text.
var address = regexp.MustCompile(`(?i)\b(https?|wss?)://[^\s"'<>\\]+`)

// Redact removes from the web addresses in a text what can be a secret: user
// name and password, the query, and the fragment. Registries and clouds sign
// addresses of their storage in the query.
func Redact(text string) string {
	return address.ReplaceAllStringFunc(text, func(found string) string {
		scheme, rest, _ := strings.Cut(found, "://")
		if cut := strings.IndexAny(rest, "?#"); cut >= 0 {
			// What follows an address in a sentence is not part of it.
			rest = rest[:cut] + rest[cut:cut+1] + "…" + trailing(rest[cut:])
		}
		host := rest
		if slash := strings.IndexByte(rest, '/'); slash >= 0 {
			host = rest[:slash]
		}
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			rest = "…@" + rest[at+1:]
		}
		return scheme + "://" + rest
	})
}

// trailing is the punctuation that ends a text.
func trailing(text string) string {
	return text[len(strings.TrimRight(text, `.,:;!)]}`)):]
}
