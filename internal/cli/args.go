package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Args wants at least so many arguments, and at most so many; a negative most
// means any number. Messages name the arguments as the command's usage line does.
func Args(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		names := argumentNames(cmd)
		switch {
		case most >= 0 && len(args) > most && most == 0:
			return Usagef("unexpected argument %q: %s takes none", args[most], cmd.CommandPath())
		case most >= 0 && len(args) > most:
			return Usagef("unexpected argument %q: %s takes %s", args[most], cmd.CommandPath(), names)
		case len(args) < least:
			missing := names
			if all := strings.Fields(names); len(all) > len(args) {
				missing = strings.Join(all[len(args):], " ")
			}
			return exampled(cmd, Usagef("%s needs %s", cmd.CommandPath(), missing))
		}
		return nil
	}
}

// argumentNames are the arguments of a command's usage line.
func argumentNames(cmd *cobra.Command) string {
	_, names, _ := strings.Cut(cmd.Use, " ")
	return names
}

// exampled hints at the first example of a command.
func exampled(cmd *cobra.Command, err error) error {
	first, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	if first == "" || strings.HasPrefix(first, "#") {
		return err
	}
	return Hint(err, fmt.Sprintf("for example: %s", first))
}
