package cli

import (
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	// helpWidth is the width of help where there is no terminal.
	helpWidth = 80
	// helpWidest keeps lines short enough to be read on a wide terminal.
	helpWidest = 100
)

// writeHelp writes a command's help, wrapped to the terminal.
func (a *App) writeHelp(cmd *cobra.Command) {
	p := a.page()
	switch {
	case p.terminal.Columns == 0:
		p.terminal.Columns = helpWidth
	case p.terminal.Columns > helpWidest:
		p.terminal.Columns = helpWidest
	}
	long := cmd.Long
	if long == "" {
		long = cmd.Short
	}
	p.paragraphs(long)
	p.heading("Usage")
	if cmd.Runnable() && (cmd.HasParent() || !cmd.HasSubCommands()) {
		p.Print("  " + cmd.UseLine() + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		p.Print("  " + cmd.CommandPath() + " COMMAND\n")
	}
	if cmd.Example != "" {
		p.heading("Examples")
		for line := range strings.Lines(cmd.Example) {
			p.write(strings.TrimRight(line, "\n") + "\n") // to be copied
		}
	}
	p.commands(cmd)
	p.flags("Flags", cmd.LocalFlags())
	p.flags("Global flags", cmd.InheritedFlags())
	if cmd.HasAvailableSubCommands() {
		p.Print("\n" + cmd.CommandPath() + " COMMAND --help shows more about a command.\n")
	}
	_ = p.close()
}

// paragraphs writes a text that was wrapped by hand, each paragraph wrapped anew.
// An indented line stays one.
func (p *Page) paragraphs(text string) {
	var paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			p.writeLines("", strings.Join(paragraph, " "), 0)
			paragraph = nil
		}
	}
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "":
			flush()
			p.Print("\n")
		case strings.HasPrefix(line, " "):
			flush()
			p.item(line)
		default:
			paragraph = append(paragraph, line)
		}
	}
	flush()
}

// item writes an indented line; what follows a gap in it is a column.
func (p *Page) item(line string) {
	body := strings.TrimLeft(line, " ")
	if at := strings.Index(body, "  "); at >= 0 {
		text := strings.TrimLeft(body[at:], " ")
		p.Field(len(line)-len(text), line[:len(line)-len(body)+at], text)
		return
	}
	p.Print(line + "\n")
}

func (p *Page) heading(text string) {
	p.write("\n")
	p.paint(bold, text+":")
	p.write("\n")
}

// commands lists the commands below one, by group.
func (p *Page) commands(cmd *cobra.Command) {
	width := 0
	for _, child := range cmd.Commands() {
		width = max(width, len(child.Name())+4)
	}
	list := func(title, group string) {
		first := true
		for _, child := range cmd.Commands() {
			if child.GroupID != group || !child.IsAvailableCommand() && child.Name() != "help" {
				continue
			}
			if first {
				p.heading(strings.TrimSuffix(title, ":"))
				first = false
			}
			p.Field(width, "  "+child.Name(), child.Short)
		}
	}
	for _, group := range cmd.Groups() {
		list(group.Title, group.ID)
	}
	list("Commands", "")
}

// flags lists flags; a long name has its text below it.
func (p *Page) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.heading(title)
	type entry struct{ head, text string }
	var entries []entry
	column, most := 0, p.terminal.Columns*2/5
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		// pflag knows which defaults are worth a word.
		one := pflag.NewFlagSet("", pflag.ContinueOnError)
		one.AddFlag(f)
		line := strings.TrimRight(one.FlagUsages(), "\n")
		body := strings.TrimLeft(line, " ")
		head, text, _ := strings.Cut(body, "   ")
		head = line[:len(line)-len(body)] + head
		entries = append(entries, entry{head, strings.TrimSpace(text)})
		if n := utf8.RuneCountInString(head) + 2; n <= most {
			column = max(column, n)
		}
	})
	for _, e := range entries {
		if utf8.RuneCountInString(e.head)+2 > column {
			p.write(e.head + "\n")
			e.head = ""
		}
		p.Field(column, e.head, e.text)
	}
}
