package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/flagtext"
	"github.com/radome-io/fleeting-plugin-openstack/internal/nearest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

const program = "fleeting-plugin-openstack"

// Exit codes, as those of fleeting-plugin.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// A command is for people; the runner never calls one.
type command struct {
	summary string
	run     func(ctx context.Context, c *call) error
}

// call is one command that was asked for.
type call struct {
	path, runner string // the file, and the entry in it, as asked for
	config       settings
	opts         []plugin.Option
	out          io.Writer
	asJSON       bool
	yes          bool
}

// errNotOK ends a command whose output says already what is wrong.
var errNotOK = errors.New("not ok")

func commands() map[string]command {
	return map[string]command{
		"check":   {summary: "try what starting does, look at the rest of config.toml, change nothing", run: check},
		"plan":    {summary: "show what a server would be created with, and how many fit", run: configured(plan)},
		"list":    {summary: "list the servers that carry the group's tag", run: configured(list)},
		"cleanup": {summary: "delete the group's servers (with --yes; shows them without)", run: configured(cleanup)},
	}
}

// A word is a command whose work is fleeting's, or done in its place.
type word struct{ name, args, summary string }

func words() []word {
	return []word{
		{"version", "", "print the version"},
		{"bootstrap", "REPO", "copy the plugin into $FLEETING_PLUGIN_PATH, or /plugins"},
	}
}

// isForPeople tells whether the arguments are for the commands here: all but a
// single flag or word of fleeting's. Its library serves for any other word, and
// ignores what follows one of its own.
func isForPeople(args []string) bool {
	if len(args) != 1 {
		return len(args) > 1
	}
	if strings.HasPrefix(args[0], "-") {
		return slices.Contains([]string{"-h", "--help", "-help"}, args[0])
	}
	return args[0] != "serve" && args[0] != "version"
}

// runForPeople runs a command and returns the exit code.
func runForPeople(ctx context.Context, args []string, out, errs io.Writer, opts ...plugin.Option) int {
	if args[0] == "help" && len(args) == 2 && !strings.HasPrefix(args[1], "-") { //nolint:gosec // there are two, as the condition says
		args = []string{args[1], "--help"} //nolint:gosec // there are two, as above
	}
	chosen, ok := commands()[args[0]]
	switch {
	case ok:
	case args[0] == "bootstrap":
		return bootstrap(args[1:], os.Getenv, out, errs)
	case args[0] == "version":
		return aboutVersion(args[1:], out, errs)
	case len(args) > 1 && (strings.HasPrefix(args[0], "-") || slices.Contains([]string{"man", "help", "serve"}, args[0])):
		fmt.Fprintf(errs, "%s: unexpected argument %q; see %s --help\n", args[0], args[1], program)
		return exitUsage
	case args[0] == "man":
		man(out)
		return exitOK
	case args[0] == "help" || strings.HasPrefix(args[0], "-"):
		usage(out)
		return exitOK
	default:
		fmt.Fprintf(errs, "unknown command %q; %s\n", args[0], meant(args[0]))
		return exitUsage
	}
	return runCommand(ctx, chosen, args, out, errs, opts)
}

// runCommand runs one of the commands and returns the exit code.
func runCommand(ctx context.Context, chosen command, args []string, out, errs io.Writer, opts []plugin.Option) int {
	var once sync.Once
	c := &call{out: out, opts: append(opts, plugin.WithRetrying(func(failed error) {
		once.Do(func() { fmt.Fprintf(errs, "%s: %v; trying again\n", args[0], failed) })
	}))}
	path, runner, err := c.parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(out, "%s %s: %s\n\nFlags:\n", program, args[0], chosen.summary)
		flagtext.Print(out, c.flags(args[0], new(string), new(string), new(string)))
		return exitOK
	case err == nil:
		c.path, c.runner = path, runner
		err = chosen.run(ctx, c)
	default:
		err = usageError{err}
	}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNotOK):
		return exitFailed
	}
	fmt.Fprintf(errs, "%s: %v\n", args[0], err)
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailed
}

// usageError is a mistake in what was asked for, or in the file that was named.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// configured runs a command with the plugin's settings, if there is no mistake in
// them.
func configured(run func(context.Context, *call) error) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) (err error) {
		if c.config, err = readConfig(c.path, c.runner); err == nil {
			err = c.config.mistakes
		}
		if err != nil {
			return usageError{err}
		}
		return run(ctx, c)
	}
}

// parse reads the flags of one command.
func (c *call) parse(args []string) (path, runner string, err error) {
	var output string
	flags := c.flags(args[0], &path, &runner, &output)
	if err := flagtext.Parse(flags, args[1:]); err != nil {
		return "", "", err
	}
	switch {
	case flags.NArg() > 0:
		return "", "", fmt.Errorf("unexpected argument %q; see %s --help", flags.Arg(0), flags.Name())
	case output != "text" && output != "json":
		return "", "", fmt.Errorf("unknown format %q for --output: use text or json", output)
	}
	c.asJSON = output == "json"
	path = cmp.Or(path, os.Getenv("CONFIG_FILE"), places.Of(os.LookupEnv).RunnerConfig(os.Geteuid() == 0))
	return path, runner, nil
}

// aboutVersion answers "version" with more words behind it: fleeting's library
// would print the version whatever they are.
func aboutVersion(args []string, out, errs io.Writer) int {
	if err := flagtext.Parse(flag.NewFlagSet(program+" version", flag.ContinueOnError), args); !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(errs, "version: takes no arguments and no flags, not %q\n", strings.Join(args, " "))
		return exitUsage
	}
	fmt.Fprintf(out, "%s version: print the version. It takes no flags.\n", program)
	return exitOK
}

// meant says which command was probably meant, or where they are listed.
func meant(name string) string {
	if near := nearest.To(name, append(order(), "version", "bootstrap", "help"), 1); len(near) == 1 {
		return "did you mean " + near[0] + "?"
	}
	return "see " + program + " --help"
}

// order is that in which help and manual show the commands.
func order() []string { return []string{"check", "plan", "list", "cleanup"} }

// flags are those of one command.
func (c *call) flags(name string, path, runner, output *string) *flag.FlagSet {
	flags := flag.NewFlagSet(program+" "+name, flag.ContinueOnError)
	flags.StringVar(path, "config", "", "the runner's config.toml, or a JSON `file` that is a plugin_config (default where the runner has it)")
	flags.StringVar(runner, "runner", "", "`name` of the [[runners]] entry, if several use this plugin")
	flags.StringVar(output, "output", "text", "`format` of the output: text or json")
	if name == "cleanup" {
		flags.BoolVar(&c.yes, "yes", false, "really delete")
	}
	return flags
}

func usage(out io.Writer) {
	fmt.Fprint(out, program+" is started by GitLab Runner, without arguments. For people:\n\n")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	known := commands()
	for _, name := range order() {
		fmt.Fprintf(table, "  %s\t%s\n", name, known[name].summary)
	}
	for _, w := range words() {
		fmt.Fprintf(table, "  %s\t%s\n", strings.TrimSpace(w.name+" "+w.args), w.summary)
	}
	_ = table.Flush()
	fmt.Fprintf(out, "\n%s and %s take --config FILE, --runner NAME and --output text|json.\nEach takes --help.\n",
		strings.Join(order()[:len(order())-1], ", "), order()[len(order())-1])
}

// print writes a value as JSON, or a table of it.
func (c *call) print(value any, table func(io.Writer)) error {
	if c.asJSON {
		encoder := json.NewEncoder(c.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	table(w)
	return w.Flush()
}

func plan(ctx context.Context, c *call) error {
	intent, err := plugin.Plan(ctx, c.config.Config, c.opts...)
	if err != nil {
		return err
	}
	return c.print(intent, func(w io.Writer) {
		request, _ := json.MarshalIndent(intent.Request, "", "  ") //nolint:errchkjson // made of strings and numbers
		fmt.Fprintf(w, "POST /servers\n%s\n\n", request)
		for _, doubt := range intent.Doubts {
			fmt.Fprintf(w, "Perhaps not: %s: %s\n", doubt.Subject, doubt.Detail)
		}
		if intent.Room < 0 {
			fmt.Fprintln(w, "No limit of the project applies.")
			return
		}
		fmt.Fprintf(w, "Such servers that fit into the project's limits: %d; %s would run out first.\n", intent.Room, intent.Limit)
		if most, ok := c.config.autoscaler()["max_instances"].(int64); ok && most > int64(intent.Room) {
			fmt.Fprintf(w, "The runner may ask for more: max_instances is %d, with those that the group has already.\n", most)
		}
	})
}

func list(ctx context.Context, c *call) error {
	servers, err := plugin.List(ctx, c.config.Config, c.opts...)
	if err != nil {
		return err
	}
	return c.print(servers, func(w io.Writer) {
		table(w, servers)
		if len(servers) == 0 {
			fmt.Fprintf(w, "\nNo server carries the tag %s.\n", c.config.Tag)
		}
	})
}

func cleanup(ctx context.Context, c *call) error {
	do := plugin.Leftovers
	if c.yes {
		do = plugin.Cleanup
	}
	servers, err := do(ctx, c.config.Config, c.opts...)
	if err != nil && len(servers) == 0 {
		return err // a table of none would read as an answer
	}
	if printErr := c.print(servers, func(w io.Writer) {
		table(w, servers)
		if c.yes {
			fmt.Fprintf(w, "\nServers being deleted: %d.\n", len(servers))
		} else {
			fmt.Fprintf(w, "\nServers that would be deleted: %d. Add --yes to do it; stop the runner first.\n", len(servers))
		}
	}); printErr != nil {
		return printErr
	}
	return err
}

func table(w io.Writer, servers []plugin.GroupServer) {
	fmt.Fprintln(w, "NAME\tSTATE\tADDRESS\tCREATED\tPROCESS\tID\tDETAIL")
	for _, s := range servers {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, s.State, s.Address, when(s.Created), s.ProcessState, s.ID, s.Detail)
	}
	processes := map[string]string{}
	for _, s := range servers {
		if s.Process != "" {
			processes[s.Process] = s.ProcessState
		}
	}
	if len(processes) == 0 {
		return
	}
	fmt.Fprintln(w, "\nProcesses that made them:")
	for _, process := range slices.Sorted(maps.Keys(processes)) {
		fmt.Fprintf(w, "%s\t%s\n", processes[process], process)
	}
}

// when is a time for people; - if it is not known.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateTime)
}
