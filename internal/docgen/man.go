package docgen

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/radome-io/fleeting-plugin-openstack/internal/roff"
)

// Man returns one manual page, section 1, for the whole tree below root: what
// [Markdown] says, in the macros of man(7). Its date is left out, so that the
// page changes only when a command does.
func Man(root *cobra.Command, topics ...Topic) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1\n.SH NAME\n%s \\- %s\n", roff.Escape(strings.ToUpper(root.Name())), roff.Escape(root.Name()), roff.Escape(root.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\nCOMMAND [ARGUMENTS] [FLAGS]\n.SH DESCRIPTION\n%s\n", roff.Escape(root.Name()), roff.Escape(paragraph(root)))
	if root.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff.Escape(dedent(root.Example)))
	}
	b.WriteString(".SH FLAGS OF EVERY COMMAND\n")
	manFlags(&b, root.PersistentFlags())
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, ".SH %s\n", roff.Escape(strings.ToUpper(strings.TrimSuffix(group.Title, ":"))))
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID && cmd.IsAvailableCommand() {
				manCommand(&b, cmd)
			}
		}
	}
	for _, topic := range topics {
		fmt.Fprintf(&b, ".SH %s\n", roff.Escape(strings.ToUpper(topic.Title)))
		for _, item := range topic.Items {
			if item.Name != "" {
				fmt.Fprintf(&b, ".TP\n.B %s\n", roff.Escape(item.Name))
			}
			fmt.Fprintf(&b, "%s\n", roff.Escape(item.Text))
		}
	}
	return b.String()
}

func manCommand(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, ".SS %s\n%s\n", roff.Escape(strings.TrimSuffix(cmd.UseLine(), " [flags]")+flagsSuffix(cmd)), roff.Escape(paragraph(cmd)))
	if cmd.Example != "" {
		fmt.Fprintf(b, ".PP\n.nf\n%s\n.fi\n", roff.Escape(dedent(cmd.Example)))
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
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff.Escape(strings.TrimSpace(name+" "+value)), roff.Escape(usage))
	})
}
