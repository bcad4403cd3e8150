// Package docgen writes the reference page of a command line tool from its
// command tree, so that the page cannot say anything else than --help does.
//
// It writes Markdown and nothing else; where the page is kept, and the test
// that it is fresh, are the caller's.
package docgen

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Topic is a part of a page that is about no command, such as the environment.
type Topic struct {
	Title string
	// Heading is what the Names of the items are.
	Heading string
	Items   []Item
}

// Item explains one name. Without a name it is a paragraph.
type Item struct{ Name, Text string }

// Markdown returns the reference page of the tree below root: every command
// that help shows, in the order of help, the flags that all of them have, and the
// topics. intro comes after the title.
func Markdown(root *cobra.Command, intro string, topics ...Topic) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n%s\n\n", root.Name(), intro, paragraph(root))
	if root.Example != "" {
		fmt.Fprintf(&b, "```sh\n%s\n```\n\n", dedent(root.Example))
	}
	b.WriteString("## Flags of every command\n\n")
	writeFlags(&b, root.PersistentFlags())
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "## %s\n\n", strings.TrimSuffix(group.Title, ":"))
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID && cmd.IsAvailableCommand() {
				writeCommand(&b, cmd)
			}
		}
	}
	for _, topic := range topics {
		fmt.Fprintf(&b, "## %s\n\n", topic.Title)
		if topic.Heading != "" {
			fmt.Fprintf(&b, "| %s | meaning |\n| --- | --- |\n", topic.Heading)
		}
		for _, item := range topic.Items {
			if item.Name == "" {
				fmt.Fprintf(&b, "%s\n", item.Text)
				continue
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", item.Name, strings.ReplaceAll(item.Text, "|", `\|`))
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "### %s\n\n%s\n\n", cmd.CommandPath(), paragraph(cmd))
	if cmd.Runnable() {
		fmt.Fprintf(b, "```text\n%s\n```\n\n", strings.TrimSuffix(cmd.UseLine(), " [flags]")+flagsSuffix(cmd))
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "```sh\n%s\n```\n\n", dedent(cmd.Example))
	}
	writeFlags(b, cmd.LocalNonPersistentFlags())
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			writeCommand(b, sub)
		}
	}
}

// flagsSuffix says in a usage line that there are flags, if there are.
func flagsSuffix(cmd *cobra.Command) string {
	if cmd.LocalNonPersistentFlags().HasAvailableFlags() {
		return " [flags]"
	}
	return ""
}

// paragraph is the long text of a command, or else the short one.
func paragraph(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return strings.TrimSpace(cmd.Long)
	}
	return strings.TrimSuffix(cmd.Short, ".") + "."
}

func writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	rows := 0
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if rows == 0 {
			b.WriteString("| flag | default | meaning |\n| --- | --- | --- |\n")
		}
		rows++
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", cell(name), defaultOf(f), cell(usage))
	})
	if rows > 0 {
		b.WriteString("\n")
	}
}

func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "[]", "false", "0", "0s":
		return ""
	default:
		return "`" + cell(f.DefValue) + "`"
	}
}

// cell makes text fit in a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\n", " "), "|", `\|`)
}

// dedent takes the indentation that help gives to examples off.
func dedent(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}
