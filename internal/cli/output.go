package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

// Format is how a command writes its result.
type Format string

// The formats.
const (
	// Text is for people. It may change between versions.
	Text Format = "text"
	// JSON is for programs: one value, indented. Fields are added, but not
	// renamed or removed.
	JSON Format = "json"
)

// String returns the name of the format.
func (f *Format) String() string { return string(*f) }

// Type is how help names the value.
func (*Format) Type() string { return "text|json" }

// Set parses the name of a format.
func (f *Format) Set(name string) error {
	switch Format(name) {
	case Text, JSON:
		*f = Format(name)
		return nil
	default:
		return fmt.Errorf("unknown format %q: use %q or %q", name, Text, JSON)
	}
}

// Print writes the result of a command to Out: value in JSON, or what text
// writes. A nil value is an empty list.
func (a *App) Print(value any, text func(p *Page)) error {
	a.endProgress()
	if a.Output == JSON {
		return writeJSON(a.Out, value)
	}
	page := a.page()
	text(page)
	return page.close()
}

// PrintTable writes the result of a command to Out: value in JSON, or a table
// of rows below header. A text result without rows is empty, so that scripts
// can count lines; people read on Err that it is, as none says, if that is not
// empty.
func (a *App) PrintTable(value any, header []string, rows [][]string, none string) error {
	return a.Print(value, func(p *Page) {
		p.Table(header, rows)
		if len(rows) == 0 && none != "" {
			a.Statusf("%s", none)
		}
	})
}

func (a *App) page() *Page { return &Page{text: a.Out, raw: a.rawOut, terminal: a.OutTerminal} }

// errPage is a page on Err, for what people are told while work goes on.
func (a *App) errPage() *Page { return &Page{text: a.Err, raw: a.rawErr, terminal: a.ErrTerminal} }

// Statusf tells people what goes on, on Err; nothing with --quiet or --output
// json. The line end is added; arguments are fields of the line, see
// [plaintext.Fprintf].
func (a *App) Statusf(format string, args ...any) {
	if a.Quiet || a.Output == JSON {
		return
	}
	page := a.errPage()
	page.Printf(format, args...)
	_ = page.close()
}

// Warnf tells people, on Err, what they have to know although the command goes
// on. --quiet does not silence it: that is for what goes well. The line end is
// added.
func (a *App) Warnf(format string, args ...any) {
	a.warn(plaintext.Redact(plaintext.Sprintf(format, args...)))
}

func (a *App) warn(text string) {
	if a.Output == JSON {
		writeLine(a.Err, warningReport{text})
		return
	}
	a.say("warning", yellow, text)
}

// say writes a labelled text to Err: its lines below the first are indented.
func (a *App) say(label string, s style, text string) {
	page := a.errPage()
	first, rest, more := strings.Cut(text, "\n")
	page.labelled(s, label+":", " ", first, 2)
	if more {
		page.Print(rest)
	}
	_ = page.close()
}

// writeLine writes a value as one line of JSON: Err has a line for each warning
// and for the error.
func writeLine(w io.Writer, value any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value)
}

// writeJSON writes a value, and a list that is nil as one that is empty: who
// counts its entries need not know which it is.
func writeJSON(w io.Writer, value any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	text := b.Bytes()
	if string(text) == "null\n" {
		text = []byte("[]\n")
	}
	_, err := w.Write(text)
	return err
}
