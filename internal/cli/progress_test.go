package cli_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// rows are what a terminal shows of a text; a row that is too long for it fails the
// test.
func rows(t *testing.T, text string, columns int) []string {
	t.Helper()
	var all []string
	for row := range strings.SplitSeq(text, "\n") {
		var shown []rune
		at := 0
		for _, r := range row {
			if r == '\r' {
				at = 0
				continue
			}
			if at == columns {
				t.Fatalf("%q has more than %d columns", row, columns)
			}
			shown = append(shown[:at], append([]rune{r}, shown[min(at+1, len(shown)):]...)...)
			at++
		}
		all = append(all, strings.TrimRight(string(shown), " "))
	}
	return all
}

func TestProgress(t *testing.T) {
	t.Parallel()
	const name = "registry.example.com/group/subgroup/fleeting-plugin-example 1.2.3"
	second := func(app *cli.App) {
		before := app.Now()
		app.Now = func() time.Time { return before.Add(time.Second) }
	}
	cases := map[string]struct {
		columns int
		set     func(*cli.App)
		do      func(*cli.App)
		want    []string
	}{
		"how far it is": {80, nil, func(app *cli.App) {
			app.Progress("uploading", "linux/amd64", 0, 250_000_000)
			second(app)
			app.Progress("uploading", "linux/amd64", 50_000_000, 250_000_000)
		}, []string{"uploading linux/amd64   20%  50.0 MB of 250.0 MB, 50.0 MB/s"}},
		"in a narrow terminal": {60, nil, func(app *cli.App) {
			app.Progress("downloading", name, 0, 250_000_000)
			second(app)
			app.Progress("downloading", name, 50_000_000, 250_000_000)
		}, []string{"downloading registry.example.co…   20%  50.0 MB of 250.0 MB"}},
		"the sum of all parts": {80, nil, func(app *cli.App) {
			app.Progress("uploading", "linux/amd64", 1_000_000, 4_000_000)
			app.Progress("packing", "linux/arm64", 1_000_000, 4_000_000)
			second(app)
			app.Progress("uploading", "linux/amd64", 4_000_000, 4_000_000)
		}, []string{"uploading, packing   62%  5.0 MB of 8.0 MB, 5.0 MB/s"}},
		"a shorter line after a longer one": {80, nil, func(app *cli.App) {
			app.Progress("uploading", "linux/amd64", 1, 4_000_000)
			second(app)
			app.Progress("uploading", "linux/amd64", 2, 4_000_000)
			second(app)
			app.Progress("uploading", "", 2_000_000, 4_000_000)
		}, []string{"uploading   25%  2.0 MB of 8.0 MB, 1.0 MB/s"}},
		"nothing of what is short": {80, nil, func(app *cli.App) {
			app.Progress("uploading", "linux/amd64", 1, 4_000_000)
			app.Progress("uploading", "linux/amd64", 2_000_000, 4_000_000)
		}, []string{""}},
		"nothing in the end": {80, nil, func(app *cli.App) {
			app.Progress("uploading", "linux/amd64", 1, 10)
			second(app)
			app.Progress("uploading", "linux/amd64", 9, 10)
			app.Progress("uploading", "linux/amd64", 10, 10)
		}, []string{""}},
		"lines have rows of their own": {80, nil, func(app *cli.App) {
			app.Progress("uploading", "linux/amd64", 1, 10)
			second(app)
			app.Progress("uploading", "linux/amd64", 5, 10)
			app.Statusf("uploaded x")
			app.Warnf("careful")
			second(app)
			app.Progress("uploading", "linux/amd64", 8, 10)
		}, []string{"uploaded x", "warning: careful", "uploading linux/amd64   80%  8 B of 10 B, 4 B/s"}},
		"a result follows": {80, nil, func(app *cli.App) {
			app.Progress("uploading", "linux/amd64", 1, 10)
			second(app)
			app.Progress("uploading", "linux/amd64", 5, 10)
			_ = app.Print(nil, func(*cli.Page) {})
		}, []string{""}},
		"quiet":         {80, func(app *cli.App) { app.Quiet = true }, nil, []string{""}},
		"for a program": {80, func(app *cli.App) { app.Output = cli.JSON }, nil, []string{""}},
		"no terminal":   {0, nil, nil, []string{""}},
	}
	for what, c := range cases {
		var screen bytes.Buffer
		app := cli.New(nil, nil, &screen, nil)
		start := time.Now()
		app.Now = func() time.Time { return start }
		app.ErrTerminal.Columns = c.columns
		if c.set != nil {
			c.set(app)
		}
		if c.do == nil {
			c.do = cases["how far it is"].do
		}
		c.do(app)
		if got := rows(t, screen.String(), c.columns); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
}
