package docgen

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Man returns one manual page, section 1, for the whole tree below root: what
// [Markdown] says, in the macros of man(7). Its date is left out, so that the
// page changes only when a command does.
func Man(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1\n.SH NAME\n%s \\- %s\n", roff(strings.ToUpper(root.Name())), roff(root.Name()), roff(root.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\nCOMMAND [ARGUMENTS] [FLAGS]\n.SH DESCRIPTION\n%s\n", roff(root.Name()), roff(paragraph(root)))
	b.WriteString(".SH FLAGS OF EVERY COMMAND\n")
	manFlags(&b, root.PersistentFlags())
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, ".SH %s\n", roff(strings.ToUpper(strings.TrimSuffix(group.Title, ":"))))
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID && cmd.IsAvailableCommand() {
				manCommand(&b, cmd)
			}
		}
	}
	return b.String()
}

func manCommand(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, ".SS %s\n%s\n", roff(strings.TrimSuffix(cmd.UseLine(), " [flags]")+flagsSuffix(cmd)), roff(paragraph(cmd)))
	if cmd.Example != "" {
		fmt.Fprintf(b, ".PP\n.nf\n%s\n.fi\n", roff(dedent(cmd.Example)))
	}
	manFlags(b, cmd.LocalNonPersistentFlags())
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			manCommand(b, sub)
		}
	}
}

func manFlags(b *strings.Builder, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(name+" "+value)), roff(usage))
	})
}

// roff keeps text from being read as macros: dashes stay what can be typed, and
// no line starts with a control character. Reference: groff(7), "Escape
// sequences" and "Control characters".
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
