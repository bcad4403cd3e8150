package flagtext_test

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/flagtext"
)

func set() *flag.FlagSet {
	flags := flag.NewFlagSet("prog check", flag.ContinueOnError)
	flags.String("config", "", "the `file` to read")
	flags.String("output", "text", "`format`: text or json")
	flags.Int("count", 3, "how `many`")
	flags.Bool("yes", false, "really")
	return flags
}

func TestParse(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--config x --yes rest": "",
		"-config=x":             "",
		"--confg x":             "unknown flag --confg; did you mean --config?",
		"--confg=x":             "unknown flag --confg; did you mean --config?",
		"--yes --json":          "unknown flag --json; did you mean --output json?",
		"--zzzzzzzz rest":       "unknown flag --zzzzzzzz; see prog check --help",
		"--count x":             `invalid value "x" for flag -count: parse error`,
		"--count":               "flag needs an argument: -count",
	} {
		got := ""
		if err := flagtext.Parse(set(), strings.Fields(args)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
	for _, help := range []string{"-h", "--help"} {
		if err := flagtext.Parse(set(), []string{help}); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: got %v", help, err)
		}
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	flagtext.Print(&out, set())
	want := "  --config file\n    \tthe file to read\n  --count many\n    \thow many (default 3)\n" +
		"  --output format\n    \tformat: text or json (default text)\n  --yes\n    \treally\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
