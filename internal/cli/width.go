package cli

import (
	"os"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

const (
	// gap is between the columns of a table, and narrowest what a column is cut to.
	gap       = 2
	narrowest = 16
	cutMark   = "…"
)

// columnsOf is the width of the terminal that a stream is, 0 if it is none.
func columnsOf(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// TableFlags adds the flag of commands whose result is a table.
func (a *App) TableFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&a.whole, "no-trunc", false, "cut nothing, though the terminal is narrower; what is no terminal gets everything in any case")
}

// Cuts says whether what is long is cut to a terminal.
func (a *App) Cuts() bool { return a.width() > 0 }

// width is what a line may take, 0 for no limit.
func (a *App) width() int {
	if a.whole {
		return 0
	}
	return a.Columns
}

// fit cuts the cells of the widest columns until a row takes no more than width,
// or every column is as narrow as it may be.
func fit(rows [][]string, width int) [][]string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for {
		total, widest := gap*(len(widths)-1), 0
		for i, w := range widths {
			total += w
			if w > widths[widest] {
				widest = i
			}
		}
		if total <= width || widths[widest] <= narrowest {
			break
		}
		widths[widest]--
	}
	cut := make([][]string, len(rows))
	for r, row := range rows {
		cut[r] = make([]string, len(row))
		for i, cell := range row {
			cut[r][i] = shorten(cell, widths[i])
		}
	}
	return cut
}

// shorten cuts the middle out of a text: both ends of names, paths and digests
// tell them apart.
func shorten(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	head := (width - 1) * 2 / 3
	return string(runes[:head]) + cutMark + string(runes[len(runes)-(width-1-head):])
}

// Wrap breaks a text between words into lines that fit the terminal behind an
// indent of so many columns; without a terminal it is one line.
func (a *App) Wrap(text string, indent int) []string {
	room := a.width() - indent
	if a.width() == 0 || room < narrowest {
		return []string{text}
	}
	return plaintext.Wrap(text, room)
}
