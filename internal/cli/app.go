// Package cli is the frame of our command line tools: streams, output formats,
// exit codes, hints, tables, progress, signals and the flags for registries.
//
// It holds no command and imports nothing of plugins or signatures; hints name
// commands of fleeting-plugin, which is the tool that it was made for. A command
// parses flags, calls one library function, and gives the result to [App.Print].
package cli

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

// App is what a command gets from the outside world. Libraries take the single
// values out of it that they need; they never take an App.
type App struct {
	// In, Out and Err are the standard streams. Results go to Out, everything
	// that is said to people while work goes on goes to Err. Both escape what a
	// terminal would obey, see [plaintext.Writer].
	In       io.Reader
	Out, Err io.Writer
	// LookupEnv reads one environment variable, as [os.LookupEnv] does.
	LookupEnv func(name string) (value string, ok bool)
	// Now is the clock.
	Now func() time.Time
	// Output is the format of results, from --output.
	Output Format
	// Quiet, from --quiet, leaves out everything but results, warnings and errors.
	Quiet bool
	// OutTerminal and ErrTerminal are what people see Out and Err on.
	OutTerminal, ErrTerminal Terminal
	// Verbose, from --verbose, makes Logger write debug records.
	Verbose bool
	// RetryWait is how long clients of registries wait before they repeat a request
	// for the first time; 0 is their own default. Tests shorten it.
	RetryWait time.Duration

	// rawOut and rawErr are Out and Err without the filter, for colours; screen is
	// where the progress is drawn.
	rawOut, rawErr, screen io.Writer
	progress               progress

	// timeout, from --timeout, bounds the whole command; 0 is no bound.
	timeout time.Duration

	level    slog.LevelVar
	logger   *slog.Logger
	mapping  []errorMapping
	fallback []errorMapping // looked at after mapping
	describe []func(error) (string, []string)
	// otherFlags and otherCommands are hints by the names of flags and commands
	// that other tools have.
	otherFlags, otherCommands map[string]string
	// naming finds the reference that an error is about.
	naming []func(error) string
}

// New makes an App from parts, for tests. Nil parts get harmless values: empty
// input, discarded output, an empty environment and the wall clock.
func New(in io.Reader, out, errw io.Writer, lookupEnv func(string) (string, bool)) *App {
	if out == nil {
		out = io.Discard
	}
	if errw == nil {
		errw = io.Discard
	}
	if lookupEnv == nil {
		lookupEnv = func(string) (string, bool) { return "", false }
	}
	if in == nil {
		in = noInput{}
	}
	a := &App{
		In: in, screen: errw, LookupEnv: lookupEnv, Now: time.Now, Output: Text,
	}
	a.rawOut, a.rawErr = beside{a, out}, beside{a, errw}
	a.Out, a.Err = plaintext.NewWriter(a.rawOut), plaintext.NewWriter(a.rawErr)
	a.level.Set(slog.LevelWarn)
	a.logger = newLogger(a)
	return a
}

// FromOS makes an App from the process: its streams, environment and clock.
func FromOS() *App {
	a := New(os.Stdin, os.Stdout, os.Stderr, os.LookupEnv)
	a.OutTerminal, a.ErrTerminal = a.terminal(os.Stdout), a.terminal(os.Stderr)
	return a
}

// Env returns the value of an environment variable, or "" when it is not set.
func (a *App) Env(name string) string {
	value, _ := a.LookupEnv(name)
	return value
}

// Logger writes records to Err: warnings and errors as [App.Warnf] does, and with
// --verbose everything else, with time and level. It may be taken before flags are parsed.
func (a *App) Logger() *slog.Logger { return a.logger }

// Interactive says whether people see Err on a terminal, so that progress and
// questions make sense.
func (a *App) Interactive() bool { return a.ErrTerminal.Columns > 0 || isTerminal(a.screen) }

// AddFlags adds the flags that every command has.
func (a *App) AddFlags(flags *pflag.FlagSet) {
	flags.Var(&a.Output, "output", `format of the result: "text" or "json"`)
	flags.BoolVarP(&a.Quiet, "quiet", "q", false, "write nothing but the result, warnings and errors")
	flags.BoolVarP(&a.Verbose, "verbose", "v", false, "write debug records to standard error")
}

// applyFlags makes the values of parsed flags take effect.
func (a *App) applyFlags() {
	if a.Verbose {
		a.level.Set(slog.LevelDebug)
	}
}

// noInput is a stream at its end.
type noInput struct{}

func (noInput) Read([]byte) (int, error) { return 0, io.EOF }

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminal says what people see a stream on. NO_COLOR leaves colours out
// (https://no-color.org), and so does a terminal that has none.
func (a *App) terminal(stream *os.File) Terminal {
	columns, _, err := term.GetSize(int(stream.Fd()))
	if err != nil {
		return Terminal{}
	}
	return Terminal{Columns: columns, Colour: a.Env("NO_COLOR") == "" && a.Env("TERM") != "dumb" && coloursShown(stream)}
}
