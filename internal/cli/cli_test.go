package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

var (
	errGone    = errors.New("gone")
	errRefused = errors.New("refused")
	errLong    = errors.New("long")
)

// run executes a tree of one command, "tool work", that returns err.
func run(t *testing.T, ctx context.Context, err error, args ...string) (code cli.Code, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	app := cli.New(nil, &stdout, &stderr, nil)
	app.MapError(errGone, cli.NotFound, "look elsewhere")
	app.MapError(errRefused, cli.Refused, "")
	app.Describe(func(err error) (string, []string) {
		if errors.Is(err, errLong) {
			return "long", []string{"one", "two"}
		}
		return "", nil
	})
	root := &cobra.Command{Use: "tool"}
	app.AddFlags(root.PersistentFlags())
	root.AddCommand(&cobra.Command{Use: "work", RunE: func(*cobra.Command, []string) error {
		app.Statusf("working")
		app.Logger().Debug("details")
		if err != nil {
			return err
		}
		return app.PrintTable([]string{"a"}, []string{"name"}, [][]string{{"a"}}, "")
	}})
	root.AddCommand(&cobra.Command{Use: "push DIR", Args: cli.Args(1, 1), Example: "  tool push dist\n  tool push .", Run: func(*cobra.Command, []string) {}})
	app.OtherCommands(map[string]string{"find": "look elsewhere"})
	group := &cobra.Command{Use: "group"}
	group.AddCommand(&cobra.Command{Use: "one", Run: func(*cobra.Command, []string) {}})
	root.AddCommand(group)
	code = app.Run(ctx, root, args)
	return code, stdout.String(), stderr.String()
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  error
		args []string
		code cli.Code
		want string
	}{
		{"plain", errors.New("boom"), nil, cli.Failed, "error: boom\n"},
		{"mapped", fmt.Errorf("reading x: %w", errGone), nil, cli.NotFound, "error: reading x: gone\nnext: look elsewhere\n"},
		{"mapped without hint", errRefused, nil, cli.Refused, "error: refused\n"},
		{"hint wins over mapping", cli.Hint(errGone, "ask"), nil, cli.NotFound, "error: gone\nnext: ask\n"},
		{"outer hint wins", cli.Hint(cli.Hint(errGone, "in"), "out"), nil, cli.NotFound, "error: gone\nnext: out\n"},
		{"code wins over mapping", cli.WithCode(errGone, cli.Network), nil, cli.Network, "error: gone\nnext: look elsewhere\n"},
		{"code below a hint", cli.Hint(cli.WithCode(errors.New("x"), cli.Network), "wait"), nil, cli.Network, "error: x\nnext: wait\n"},
		{"first mapping wins", errors.Join(errRefused, errGone), nil, cli.NotFound, "error: refused\nerror: gone\nnext: look elsewhere\n"},
		{"the code of another program", errors.Join(errGone, &exec.ExitError{}), nil, cli.NotFound, "error: gone\nnext: look elsewhere\nerror: <nil>\n"},
		{"each of several has its remedy", errors.Join(errGone, cli.Hint(errors.New("x"), "ask")), nil, cli.NotFound, "error: gone\nnext: look elsewhere\nerror: x\nnext: ask\n"},
		{"a remedy of several comes once", errors.Join(errGone, fmt.Errorf("x: %w", errGone)), nil, cli.NotFound, "error: gone\nerror: x: gone\nnext: look elsewhere\n"},
		{"a remedy for all of them", cli.Hint(errors.Join(errGone, errRefused, errRefused), "ask"), nil, cli.NotFound, "error: gone\n  refused\nnext: ask\n"},
		{"a sentence with two causes", fmt.Errorf("%w: %w", errRefused, errGone), nil, cli.NotFound, "error: refused: gone\nnext: look elsewhere\n"},
		{"more to say", fmt.Errorf("y: %w", errLong), nil, cli.Failed, "error: long\n  one\n  two\n"},
		{"a code that is none", cli.WithCode(errors.New("x"), cli.Code(77)), nil, cli.Failed, "error: x\n"},
		{"usage", cli.Usagef("no %s", "name"), nil, cli.Usage, "error: no name\nnext: see tool work --help\n"},
		{"unknown command", nil, []string{"wor"}, cli.Usage, "error: unknown command \"wor\" for \"tool\"\nnext: did you mean work?\n"},
		{"unknown sub-command", nil, []string{"group", "two"}, cli.Usage, "error: unknown command \"two\" for \"tool group\"\nnext: see tool group --help\n"},
		{"unexpected argument", nil, []string{"work", "now"}, cli.Usage, "error: unexpected argument \"now\": tool work takes none\nnext: see tool work --help\n"},
		{"one argument too many", nil, []string{"push", "a", "b"}, cli.Usage, "error: unexpected argument \"b\": tool push takes DIR\nnext: see tool push --help\n"},
		{"a missing argument", nil, []string{"push"}, cli.Usage, "error: tool push needs DIR\nnext: for example: tool push dist\n"},
		{"another tool's command", nil, []string{"find"}, cli.Usage, "error: unknown command \"find\" for \"tool\"\nnext: look elsewhere\n"},
		{"two letters exchanged", nil, []string{"work", "--qiuet"}, cli.Usage, "error: unknown flag: --qiuet\nnext: did you mean --quiet?\n"},
		{"unknown flag", nil, []string{"work", "--now"}, cli.Usage, "error: unknown flag: --now\nnext: see tool work --help\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := tt.args
			if args == nil {
				args = []string{"work", "--quiet"}
			}
			code, out, errOut := run(t, t.Context(), tt.err, args...)
			if code != tt.code || out != "" {
				t.Errorf("code = %d, want %d; out = %q, want none", code, tt.code, out)
			}
			if diff := cmp.Diff(tt.want, errOut); diff != "" {
				t.Errorf("error output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Whatever it was at, such as an upload to an address with a state.
	failure := fmt.Errorf("put https://registry.example.com/uploads?_state=x: %w: %w", context.Canceled, errGone)
	code, _, errOut := run(t, ctx, failure, "work", "-q")
	if code != cli.Failed || errOut != "error: interrupted\nnext: run the same command again: what is done is not done twice\n" {
		t.Errorf("code = %d, error output = %q", code, errOut)
	}
}

func TestErrorAsJSON(t *testing.T) {
	t.Parallel()
	_, _, errOut := run(t, t.Context(), errGone, "work", "-q", "--output", "json")
	var got map[string]any
	if err := json.Unmarshal([]byte(errOut), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"error": "gone", "hint": "look elsewhere", "code": 4.0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// TestJSONOnly: with --output json every line on standard error is an object,
// whatever is wrong with the other flags.
func TestJSONOnly(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"a wrong flag first":    {"work", "--bogus", "--output", "json"},
		"a wrong flag later":    {"work", "--output=json", "--bogus"},
		"an unknown command":    {"wrok", "--output", "json"}, //nolint:misspell // a slip is what this is about
		"one argument too many": {"work", "x", "--output", "json"},
		"a failure, verbose":    {"work", "-v", "--output", "json"},
	} {
		_, out, errOut := run(t, t.Context(), errors.Join(errGone, errRefused), args...)
		if out != "" {
			t.Errorf("%s: result %q", name, out)
		}
		for line := range strings.Lines(errOut) {
			var got map[string]any
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Errorf("%s: %q: %v", name, line, err)
			}
		}
		if !strings.Contains(errOut, `"error":`) || !strings.Contains(errOut, `"code":`) {
			t.Errorf("%s: %q", name, errOut)
		}
	}
	var errOut bytes.Buffer
	app := cli.New(nil, nil, &errOut, nil)
	app.Output = cli.JSON
	app.Statusf("working")
	app.Warnf("slow %s", "\x1b[31m")
	app.Logger().Warn("slower", "seconds", 3)
	want := `{"warning":"slow \\u001b[31m"}` + "\n" + `{"warning":"slower (seconds 3)"}` + "\n"
	if diff := cmp.Diff(want, errOut.String()); diff != "" {
		t.Error(diff)
	}
}

// TestNamesInHints: hints have the names of what an error is about.
func TestNamesInHints(t *testing.T) {
	t.Parallel()
	denied := func(ref string) error {
		return fmt.Errorf("x: %w", &ociregistry.Error{Op: "fetch", Ref: ref, Kind: ociregistry.ErrUnauthorized, Err: errGone})
	}
	for ref, want := range map[string]string{
		"registry.example.com:5050/team/plugin:1.2": "login registry.example.com:5050 to registry.example.com:5050/team/plugin",
		"localhost/plugin@sha256:1":                 "login localhost to localhost/plugin",
		"registry.example.com":                      "login registry.example.com to REPOSITORY",
		"/srv/layout":                               "login REGISTRY to REPOSITORY",
	} {
		var errOut bytes.Buffer
		app := cli.New(nil, nil, &errOut, nil)
		app.MapError(ociregistry.ErrUnauthorized, cli.Network, "login REGISTRY to REPOSITORY")
		app.Run(t.Context(), &cobra.Command{Use: "tool", RunE: func(*cobra.Command, []string) error { return denied(ref) }}, nil)
		if !strings.Contains(errOut.String(), "next: "+want+"\n") {
			t.Errorf("%s: %q, want %q", ref, errOut.String(), want)
		}
	}
	var errOut bytes.Buffer
	app := cli.New(nil, nil, &errOut, nil)
	app.MapError(errGone, cli.NotFound, "fleeting-plugin install REF, or name another REF")
	app.NameErrors(func(err error) string { return "team/plugin:1" })
	app.Run(t.Context(), &cobra.Command{Use: "tool", RunE: func(*cobra.Command, []string) error { return errGone }}, nil)
	if !strings.Contains(errOut.String(), "next: fleeting-plugin install team/plugin:1, or name another REF\n") {
		t.Errorf("%q", errOut.String())
	}
}

func TestResultFormats(t *testing.T) {
	t.Parallel()
	code, out, errOut := run(t, t.Context(), nil, "work")
	if code != cli.OK || out != "NAME\na\n" || errOut != "working\n" {
		t.Errorf("text: code %d, out %q, err %q", code, out, errOut)
	}
	code, out, errOut = run(t, t.Context(), nil, "work", "--quiet", "--output=json")
	if code != cli.OK || out != "[\n  \"a\"\n]\n" || errOut != "" {
		t.Errorf("json: code %d, out %q, err %q", code, out, errOut)
	}
	if _, _, errOut = run(t, t.Context(), nil, "work", "-v"); !strings.Contains(errOut, "level=DEBUG msg=details") {
		t.Errorf("verbose: err %q", errOut)
	}
}

func TestNilErrorsStayNil(t *testing.T) {
	t.Parallel()
	if err := cli.Hint(nil, "x"); err != nil {
		t.Errorf("Hint(nil) = %v", err)
	}
	if err := cli.WithCode(nil, cli.Refused); err != nil {
		t.Errorf("WithCode(nil) = %v", err)
	}
}

// TestPrintNothing holds that an empty result is an empty list, nil or not.
func TestPrintNothing(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"nil": []string(nil), "empty": []string{}} {
		var out bytes.Buffer
		app := cli.New(nil, &out, nil, nil)
		app.Output = cli.JSON
		if err := app.PrintTable(value, []string{"a"}, nil, ""); err != nil || out.String() != "[]\n" {
			t.Errorf("%s: %q, %v; want []", name, out.String(), err)
		}
	}
}

// TestLogger holds that people read warnings of libraries as the tool's own.
func TestLogger(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	app := cli.New(nil, nil, &out, nil)
	log := app.Logger().With("registry", "a")
	log.Warn("slow", "seconds", 3, "error", errors.Join(errGone, errRefused))
	log.Info("nobody asked")
	app.Logger().Error("broken")
	want := "warning: slow (registry a, seconds 3): gone\n  refused\nwarning: broken\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestTextFromOutside: what comes from outside neither reaches a terminal as it
// is, nor begins a line of its own, nor brings the secrets of an address along.
func TestTextFromOutside(t *testing.T) {
	t.Parallel()
	const outside = "a\x1b]0;x\x07\u202e\u009b\nforged\r\tb https://u:p@s3.test/x?sig=1"
	const text = `a\u001b]0;x\u0007\u202e\u009b\nforged\r\tb `
	var out, errOut bytes.Buffer
	app := cli.New(nil, &out, &errOut, nil)
	app.Statusf("status %s", outside)
	app.Warnf("warn %v", errors.New(outside))
	app.Logger().Warn("log", "text", outside)
	root := &cobra.Command{Use: "tool", RunE: func(*cobra.Command, []string) error {
		err := app.PrintTable(nil, []string{"x", "y"}, [][]string{{outside, "z"}}, "")
		return errors.Join(err, fmt.Errorf("%w in %q", errGone, outside))
	}}
	app.Run(t.Context(), root, nil)
	const told = text + "https://…@s3.test/x?…"
	want := "status " + text + "https://u:p@s3.test/x?sig=1\nwarning: warn " + told + "\nwarning: log (text " + told + ")\nerror: gone in " + `"a\x1b]0;x\a\u202e\u009b\nforged\r\tb https://…@s3.test/x?…"` + "\n"
	if diff := cmp.Diff(want, errOut.String()); diff != "" {
		t.Error(diff)
	}
	if want := "X"; !strings.HasPrefix(out.String(), want) || strings.Count(out.String(), "\n") != 2 || !strings.Contains(out.String(), text) {
		t.Errorf("table: %q", out.String())
	}
}
