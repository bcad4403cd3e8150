package cli_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

func TestPage(t *testing.T) {
	t.Parallel()
	write := func(p *cli.Page) {
		p.Printf("%s of words that %s\n", "a line", "go on")
		p.Print("  indented and long enough to be broken\n")
		p.Field(9, "digest", "sha256:0123456789012345678901234567890123456789")
		p.Field(9, "text", "several words in a value")
		p.Field(9, "empty", "")
		p.State(9, "problem", 7, "files", "what is wrong with them all")
		p.Command("next: ", "fleeting-plugin install --reinstall registry.example.com/team/plugin")
		p.Print("no line end")
	}
	for name, c := range map[string]struct {
		terminal cli.Terminal
		want     string
	}{
		"no terminal": {cli.Terminal{}, `a line of words that go on
  indented and long enough to be broken
digest   sha256:0123456789012345678901234567890123456789
text     several words in a value
problem  files  what is wrong with them all
next: fleeting-plugin install --reinstall registry.example.com/team/plugin
no line end
`},
		"narrow": {cli.Terminal{Columns: 30}, `a line of words that go on
  indented and long enough to
    be broken
digest   sha256:0123456789012345678901234567890123456789
text     several words in a
         value
problem  files  what is wrong
    with them all
next: fleeting-plugin install --reinstall registry.example.com/team/plugin
no line end
`},
		"coloured": {cli.Terminal{Columns: 80, Colour: true}, "a line of words that go on\n" + `  indented and long enough to be broken
digest   sha256:0123456789012345678901234567890123456789
text     several words in a value
` + "\x1b[1;31mproblem\x1b[0m  files  what is wrong with them all\n" + `next: fleeting-plugin install --reinstall registry.example.com/team/plugin
no line end
`},
	} {
		var out bytes.Buffer
		app := cli.New(nil, &out, nil, nil)
		app.OutTerminal = c.terminal
		if err := app.Print(nil, write); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestStateIsOneLine: no field of a line with a state begins a line of its own.
func TestStateIsOneLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	app := cli.New(nil, &out, nil, nil)
	if err := app.Print(nil, func(p *cli.Page) { p.State(9, "ok\nx", 7, "a\nforged", "b\nforged") }); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), `ok\nx    a\nforged b\nforged`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	header := []string{"plugin", "state", "signer"}
	rows := [][]string{{"registry.example.com/a", "ok", "key 0123"}, {"registry.example.com/b\x1b[31m\n", "CHANGED", ""}}
	for name, c := range map[string]struct {
		terminal cli.Terminal
		want     string
	}{
		"wide enough": {cli.Terminal{Columns: 80}, `PLUGIN                              STATE    SIGNER
registry.example.com/a              ok       key 0123
registry.example.com/b\u001b[31m\n  CHANGED
`},
		"too narrow": {cli.Terminal{Columns: 30}, `registry.example.com/a
  state   ok
  signer  key 0123
registry.example.com/b\u001b[31m\n
  state   CHANGED
`},
		"coloured": {cli.Terminal{Colour: true}, "\x1b[1mPLUGIN\x1b[0m                              \x1b[1mSTATE\x1b[0m    \x1b[1mSIGNER\x1b[0m\n" +
			"registry.example.com/a              \x1b[32mok\x1b[0m       key 0123\n" + `registry.example.com/b\u001b[31m\n` + "  \x1b[1;31mCHANGED\x1b[0m\n"},
	} {
		var out bytes.Buffer
		app := cli.New(nil, &out, nil, nil)
		app.OutTerminal = c.terminal
		if err := app.PrintTable(nil, header, rows, ""); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestColours of what is said on standard error.
func TestColours(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	app := cli.New(nil, nil, &out, nil)
	app.ErrTerminal = cli.Terminal{Columns: 40, Colour: true}
	app.Warnf("%s", "what comes from outside \x1b[2J is escaped and wrapped")
	app.Run(t.Context(), &cobra.Command{Use: "tool", RunE: func(*cobra.Command, []string) error {
		return cli.Hint(errors.New("something went wrong with what was asked for"), "do this and that, in one line that can be copied")
	}}, nil)
	want := "\x1b[33mwarning:\x1b[0m what comes from outside\n  \\u001b[2J is escaped and wrapped\n" +
		"\x1b[1;31merror:\x1b[0m something went wrong with what\n  was asked for\n\x1b[36mnext:\x1b[0m do this and that, in one line that can be copied\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

// TestBrokenPipe: that nobody reads the result is an error.
func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	app := cli.New(nil, broken{}, nil, nil)
	if err := app.Print(nil, func(p *cli.Page) { p.Printf("x\n") }); err == nil {
		t.Error("no error")
	}
}
