package cli

import (
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

// Terminal is what people see a stream on. The zero value is no terminal: a file,
// a pipe, or a test.
type Terminal struct {
	// Columns is the width, 0 for no limit: nothing is wrapped then.
	Columns int
	// Colour says whether colours are shown.
	Colour bool
}

// Page is what the text of a result is written to. Text from outside is escaped,
// lines are wrapped to the terminal between words, and nothing is ever cut: names,
// digests and commands are there to be copied. Errors of the stream are
// remembered, so that only the caller of [App.Print] sees them.
type Page struct {
	text     io.Writer // through the filter
	raw      io.Writer // past it, for colours
	terminal Terminal
	line     strings.Builder
	err      error
}

// narrowest is the least that a wrapped text gets; below that, lines are left to
// the terminal.
const narrowest = 20

// Printf writes text, in which every argument is a field of its line: see
// [plaintext.Fprintf].
func (p *Page) Printf(format string, args ...any) { p.Print(plaintext.Sprintf(format, args...)) }

// Print writes text as it is; only what a terminal would obey is escaped.
func (p *Page) Print(text string) {
	for {
		line, rest, ended := strings.Cut(text, "\n")
		p.line.WriteString(line)
		if !ended {
			return
		}
		whole := p.line.String()
		p.line.Reset()
		indent := len(whole) - len(strings.TrimLeft(whole, " "))
		p.writeLines(whole[:indent], whole[indent:], indent+2)
		text = rest
	}
}

// Write implements [io.Writer], as [Page.Print].
func (p *Page) Write(b []byte) (int, error) {
	p.Print(string(b))
	return len(b), p.err
}

// Field writes a labelled value; nothing if it is empty. What does not fit is
// wrapped below the value's beginning, which is in column width.
func (p *Page) Field(width int, label, value string) {
	if value == "" {
		return
	}
	prefix := plaintext.Line(label)
	prefix += strings.Repeat(" ", max(1, width-utf8.RuneCountInString(prefix)))
	p.writeLines(prefix, plaintext.Line(value), utf8.RuneCountInString(prefix))
}

// State writes a line that begins with a state, in its colour and column, and a
// subject in the next column.
func (p *Page) State(width int, state string, subjectWidth int, subject, text string) {
	state, subject = plaintext.Line(state), plaintext.Line(subject)
	prefix := strings.Repeat(" ", max(1, width-utf8.RuneCountInString(state))) + subject
	prefix += strings.Repeat(" ", max(1, subjectWidth-utf8.RuneCountInString(subject)))
	p.labelled(styleOf(state), state, prefix, text, width+subjectWidth)
}

// labelled writes a text behind a label in a style, each further line below an
// indent.
func (p *Page) labelled(s style, label, prefix, text string, indent int) {
	p.paint(s, label)
	n := utf8.RuneCountInString(label)
	lines := wrap(plaintext.Line(text), p.terminal.Columns, n+utf8.RuneCountInString(prefix), indent)
	for i, line := range lines {
		if i > 0 {
			prefix = strings.Repeat(" ", hanging(p.terminal.Columns, indent))
		}
		p.write(strings.TrimRight(prefix+line, " ") + "\n")
	}
}

// Command writes a line that is meant to be copied, and is not wrapped.
func (p *Page) Command(prefix, command string) {
	p.write(prefix + plaintext.Line(command) + "\n")
}

// writeLines writes a prefix and a text, wrapped to the terminal, each further
// line below an indent.
func (p *Page) writeLines(prefix, text string, indent int) {
	p.labelled("", "", prefix, text, indent)
}

func (p *Page) write(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.text, text)
	}
}

// paint writes text in a style.
func (p *Page) paint(s style, text string) {
	if s == "" || !p.terminal.Colour || p.err != nil {
		p.write(text)
		return
	}
	_, err := io.WriteString(p.raw, string(s))
	p.write(text)
	_, after := io.WriteString(p.raw, string(plain))
	p.err = errors.Join(p.err, err, after)
}

// close ends the last line.
func (p *Page) close() error {
	if p.line.Len() > 0 {
		p.Print("\n")
	}
	return p.err
}

// hanging is the indent of further lines: less than asked for where the terminal
// has no room for it.
func hanging(columns, indent int) int {
	if columns > 0 && columns-indent < narrowest {
		return 4
	}
	return indent
}

// wrap breaks a text between words into lines that fit in so many columns, the
// first behind a prefix, the others behind an indent. A word that fits nowhere,
// such as a digest, stays behind the word before it.
func wrap(text string, columns, prefix, indent int) []string {
	if columns == 0 || prefix+utf8.RuneCountInString(text) <= columns {
		return []string{text}
	}
	var lines []string
	line, room, next := "", columns-prefix, columns-hanging(columns, indent)
	for word := range strings.SplitSeq(text, " ") {
		n := utf8.RuneCountInString(word)
		if line != "" && utf8.RuneCountInString(line)+1+n > room && n <= next {
			lines = append(lines, line)
			line, room = "", next
		}
		if line != "" || word == "" && len(lines) == 0 {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// style is an escape sequence that colours what follows.
type style string

const (
	plain  style = "\x1b[0m"
	bold   style = "\x1b[1m"
	red    style = "\x1b[1;31m"
	green  style = "\x1b[32m"
	yellow style = "\x1b[33m"
	cyan   style = "\x1b[36m"
)

// styleOf is how a word that says a state is shown, wherever it is a cell of a
// table of its own.
func styleOf(word string) style {
	switch word {
	case "ok", "as installed", "as locked", "as attested", "same":
		return green
	case "warning", "by the runner", "not verified":
		return yellow
	case "problem", "CHANGED", "NOT AS LOCKED", "MISSING", "NO RECEIPT", "WRONG", "different", "NOTHING":
		return red
	}
	return ""
}

// Table writes rows below an upper-case header, columns aligned. A cell is one
// field, whatever is in it. Where a row is wider than the terminal, each row is
// a record: its first cell, and a line for each other one that is not empty.
func (p *Page) Table(header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	rows = oneLine(rows)
	widths := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	if p.terminal.Columns > 0 && total > p.terminal.Columns {
		p.records(header, rows)
		return
	}
	upper := make([]string, len(header))
	for i, name := range header {
		upper[i] = strings.ToUpper(name)
	}
	p.row(upper, widths, func(string) style { return bold })
	for _, row := range rows {
		p.row(row, widths, styleOf)
	}
}

// gap is between the columns of a table.
const gap = 2

func (p *Page) row(cells []string, widths []int, paint func(string) style) {
	last := len(cells) - 1
	for last > 0 && cells[last] == "" {
		last--
	}
	for i, cell := range cells[:last+1] {
		p.paint(paint(cell), cell)
		if i < last {
			p.write(strings.Repeat(" ", widths[i]+gap-utf8.RuneCountInString(cell)))
		}
	}
	p.write("\n")
}

func (p *Page) records(header []string, rows [][]string) {
	width := 0
	for _, name := range header[1:] {
		width = max(width, utf8.RuneCountInString(name)+4)
	}
	for _, row := range rows {
		p.paint(bold, row[0])
		p.write("\n")
		for i, cell := range row[1:] {
			if cell == "" {
				continue
			}
			label := "  " + header[i+1]
			label += strings.Repeat(" ", width-utf8.RuneCountInString(label))
			if s := styleOf(cell); s != "" {
				p.write(label)
				p.labelled(s, cell, "", "", 0)
				continue
			}
			p.writeLines(label, cell, width)
		}
	}
}

// oneLine keeps each cell in its line and in its column.
func oneLine(rows [][]string) [][]string {
	lines := make([][]string, len(rows))
	for r, row := range rows {
		lines[r] = make([]string, len(row))
		for i, cell := range row {
			lines[r][i] = plaintext.Line(cell)
		}
	}
	return lines
}
