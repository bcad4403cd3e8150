// Package flagtext words what commands made with package flag say of their
// flags: a list with two dashes, as the documentation writes them, and, for a
// flag that is not known, the one that was meant. It knows no flags of its own,
// and prints nothing unasked.
package flagtext

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/nearest"
)

// Parse parses arguments quietly. The error is [flag.ErrHelp] where help was
// asked for, and one sentence otherwise.
func Parse(flags *flag.FlagSet, args []string) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	// Package flag has no error of its own for it, and does not say where it stopped.
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return err
	}
	return fmt.Errorf("unknown flag --%s; %s", name, meant(flags, name))
}

// meant says which flag was probably meant. The name of a format is short for
// the flag that chooses it.
func meant(flags *flag.FlagSet, name string) string {
	if flags.Lookup("output") != nil && (name == "json" || name == "text") {
		return "did you mean --output " + name + "?"
	}
	var known []string
	flags.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	if near := nearest.To(name, known, 1); len(near) == 1 {
		return "did you mean --" + near[0] + "?"
	}
	return "see " + flags.Name() + " --help"
}

// Print lists the flags of a set, sorted by name. What stands in backquotes in
// the text of a flag names its value.
func Print(out io.Writer, flags *flag.FlagSet) {
	flags.VisitAll(func(f *flag.Flag) {
		fmt.Fprintf(out, "  --%s\n    \t%s\n", strings.TrimSpace(f.Name+" "+value(f)), usage(f))
	})
}

func value(f *flag.Flag) string {
	name, _ := flag.UnquoteUsage(f)
	return name
}

func usage(f *flag.Flag) string {
	_, text := flag.UnquoteUsage(f)
	if slices.Contains([]string{"", "false", "0"}, f.DefValue) {
		return text
	}
	return fmt.Sprintf("%s (default %s)", text, f.DefValue)
}
