package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/radome-io/fleeting-plugin-openstack/internal/nearest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

// Main runs a command tree with the process's arguments, streams and signals,
// and returns the exit code. The first interrupt or termination signal cancels
// the context, so that the command can undo what is half done; the second ends
// the process at once.
func Main(build func(*App) *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	app := FromOS()
	return int(app.Run(ctx, build(app), os.Args[1:]))
}

// errInterrupted is what an interrupted command failed with.
var errInterrupted = errors.New("interrupted")

// Run runs a command tree with args and returns the exit code. Errors have been
// written to Err, with what to try next.
func (a *App) Run(ctx context.Context, root *cobra.Command, args []string) Code {
	a.prepare(root)
	root.SetArgs(args)
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		withoutQuotes(root)
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.bound(root, cancel) //nolint:contextcheck // it takes the context of the command when that runs
	cmd, err := root.ExecuteContextC(within)
	a.endProgress()
	if err == nil {
		return OK
	}
	if errors.Is(context.Cause(within), errTimeout) {
		err = timedOut(a.timeout, err)
	}
	if asksForJSON(args) {
		a.Output = JSON // the flags before it may be wrong
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
		// What was being done does not matter, and addresses may be secrets for a
		// while.
		a.Logger().Debug("interrupted", "at", err)
		err = Hint(errInterrupted, "run the same command again: what is done is not done twice")
	}
	a.report(cmd, err)
	return a.CodeOf(err)
}

// withoutQuotes takes the marks of values out of what flags do: a shell shows that
// as it is.
func withoutQuotes(cmd *cobra.Command) {
	plain := func(flag *pflag.Flag) { flag.Usage = strings.ReplaceAll(flag.Usage, "`", "") }
	cmd.PersistentFlags().VisitAll(plain)
	cmd.Flags().VisitAll(plain)
	for _, child := range cmd.Commands() {
		withoutQuotes(child)
	}
}

// asksForJSON looks for --output json where flags were not parsed to their end.
func asksForJSON(args []string) bool {
	for i, arg := range args {
		switch {
		case arg == "--":
			return false
		case arg == "--output="+string(JSON), arg == "--output" && i+1 < len(args) && args[i+1] == string(JSON):
			return true
		}
	}
	return false
}

// prepare gives every command of the tree our streams, and our exit code for
// wrong flags, wrong arguments and unknown commands.
func (a *App) prepare(root *cobra.Command) {
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.CompletionOptions.DisableDefaultCmd = true
	a.prepareHelp(root)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { a.writeHelp(cmd) })
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return WithCode(a.flagHint(cmd, err), Usage) })
	before := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		a.applyFlags()
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
	walk(root, a.prepareArgs)
}

// flagHint says what may be meant by a flag that a command does not have: what
// was registered for a flag of another tool, else the nearest that there are.
func (a *App) flagHint(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	name := unknown.GetSpecifiedName()
	if hint, ok := a.otherFlags[name]; ok {
		return Hint(err, hint)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	near := nearest.To(name, known, 2)
	if len(name) < 3 || len(near) == 0 {
		return err
	}
	return Hintf(err, "did you mean --%s?", strings.Join(near, " or --"))
}

// prepareHelp makes cobra's help command say which command may be meant where
// there is none of that name; it would show everything.
func (a *App) prepareHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, help := range root.Commands() {
		if help.Name() != "help" {
			continue
		}
		help.Args = cobra.ArbitraryArgs
		help.RunE = func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil {
				cmd, rest = root, args
			}
			if cmd.HasSubCommands() {
				if err := a.unknownCommand(cmd, rest); err != nil {
					return err
				}
			}
			if len(rest) > 0 {
				return Usagef("unexpected argument %q after %q", rest[0], cmd.CommandPath())
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		}
	}
}

func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, child := range cmd.Commands() {
		walk(child, visit)
	}
}

// prepareArgs makes a group of commands show its help, refuse an unknown
// command, and wraps the argument check of a command.
func (a *App) prepareArgs(cmd *cobra.Command) {
	if !cmd.Runnable() {
		cmd.Args = a.unknownCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		return
	}
	check := cmd.Args
	if check == nil {
		check = Args(0, 0)
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		return WithCode(check(cmd, args), Usage)
	}
}

func (a *App) unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := Usagef("unknown command %q for %q", args[0], cmd.CommandPath())
	if hint, ok := a.otherCommands[args[0]]; ok && cmd.Parent() == nil {
		return Hint(err, hint)
	}
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := slices.Compact(slices.Sorted(slices.Values(cmd.SuggestionsFor(args[0])))); len(near) > 0 {
		return Hintf(err, "did you mean %s?", strings.Join(near, " or "))
	}
	return Hintf(err, "see %s --help", cmd.CommandPath())
}

// placeholders are what hints say in place of names; REF only in a command, since
// "a REF" may be another one.
var placeholders = regexp.MustCompile(`(?:fleeting-plugin [^;,\n]*)?\bREF\b|\bREGISTRY\b|\bREPOSITORY\b|\bHOST\[:PORT\]`)

// named puts names where a hint has placeholders, so that it can be copied: the
// command's only argument for REF, else what the error is about.
func (a *App) named(hint string, cmd *cobra.Command, err error) string {
	names := a.namesIn(err)
	args, isReference := cmd.Flags().Args(), regexp.MustCompile(`\bREF\b`).MatchString(cmd.Use)
	if len(args) == 1 && isReference && !strings.HasSuffix(cmd.Use, " DESTINATION") {
		names["REF"] = args[0]
	}
	return placeholders.ReplaceAllStringFunc(hint, func(word string) string {
		if command, ok := strings.CutSuffix(word, "REF"); ok && names["REF"] != "" && command != "" {
			return command + names["REF"]
		}
		if name := names[word]; name != "" && word != "REF" {
			return name
		}
		return word
	})
}

// namesIn are the names that an error has for placeholders.
func (a *App) namesIn(err error) map[string]string {
	names := map[string]string{}
	if failed, ok := errors.AsType[*ociregistry.Error](err); ok {
		if host, repository, ok := splitReference(failed.Ref); ok {
			names["REGISTRY"], names["HOST[:PORT]"], names["REPOSITORY"] = host, host, repository
		}
	}
	for _, find := range a.naming {
		if ref := find(err); ref != "" {
			names["REF"] = ref
		}
	}
	return names
}

// splitReference finds registry and repository in "host[:port]/path[:tag][@digest]".
func splitReference(ref string) (host, repository string, ok bool) {
	ref, _, _ = strings.Cut(ref, "@")
	host, path, _ := strings.Cut(ref, "/")
	if !strings.ContainsAny(host, ".:") && host != "localhost" || strings.HasPrefix(host, ".") {
		return "", "", false // a folder
	}
	if path == "" {
		return host, "", true
	}
	path, _, _ = strings.Cut(path, ":")
	return host, host + "/" + path, true
}

// errorReport is the JSON form of an error: docs/reference/output.md.
type errorReport struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
	Code  Code   `json:"code"`
	// Errors are those that happened independently of each other, if several did.
	Errors []errorReport `json:"errors,omitempty"`
}

// warningReport is the JSON form of a warning.
type warningReport struct {
	Warning string `json:"warning"`
}

// report writes err to Err: for people, or with --output json for programs.
func (a *App) report(cmd *cobra.Command, err error) {
	all := Apart(err)
	if a.Output == JSON {
		report := a.errorReport(cmd, err)
		if len(all) > 1 {
			for _, one := range all {
				report.Errors = append(report.Errors, a.errorReport(cmd, one))
			}
		}
		writeLine(a.Err, report)
		return
	}
	page := a.errPage()
	for n, one := range all {
		headline, details := a.described(one)
		page.labelled(red, "error:", " ", plaintext.Redact(headline), 2)
		for _, line := range details {
			page.Printf("  %s\n", plaintext.Redact(line))
		}
		next := a.next(cmd, one)
		if next == "" || n+1 < len(all) && a.next(cmd, all[n+1]) == next {
			continue
		}
		page.paint(cyan, "next:")
		page.write(" " + next + "\n") // in one line, to be copied
	}
}

func (a *App) errorReport(cmd *cobra.Command, err error) errorReport {
	return errorReport{Error: plaintext.Redact(err.Error()), Hint: a.next(cmd, err), Code: a.CodeOf(err)}
}

// next is what to try after an error.
func (a *App) next(cmd *cobra.Command, err error) string {
	hint := a.named(a.HintOf(err), cmd, err)
	if hint == "" && a.CodeOf(err) == Usage {
		hint = fmt.Sprintf("see %s --help", cmd.CommandPath())
	}
	return hint
}

// Apart gives the errors that were joined, each of which is told with its own
// remedy; one that was not joined is itself. What has been given a hint as a whole
// stays whole.
func Apart(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error }) // the outermost only
	if !ok {
		return []error{err}
	}
	if again := errors.Join(joined.Unwrap()...); again == nil || again.Error() != err.Error() {
		return []error{err} // a sentence with several causes
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, Apart(one)...)
	}
	return all
}

// described gives the first line of what is told about an error, and the others,
// each once.
func (a *App) described(err error) (headline string, details []string) {
	for _, describe := range a.describe {
		if headline, details := describe(err); headline != "" {
			return headline, details
		}
	}
	headline, rest, more := strings.Cut(err.Error(), "\n")
	if !more {
		return headline, nil
	}
	for line := range strings.SplitSeq(rest, "\n") {
		if line != headline && !slices.Contains(details, line) {
			details = append(details, line)
		}
	}
	return headline, details
}
