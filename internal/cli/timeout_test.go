package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// waiting is a command that works until it is canceled, or for an hour.
func waiting(app *cli.App) *cobra.Command {
	root := &cobra.Command{Use: "tool"}
	cmd := &cobra.Command{Use: "wait", RunE: func(cmd *cobra.Command, _ []string) error {
		select {
		case <-cmd.Context().Done():
			return fmt.Errorf("fetching registry.test/x: %w", cmd.Context().Err())
		case <-time.After(time.Hour):
			return errors.New("done")
		}
	}}
	app.RegistryFlags(cmd.Flags())
	root.AddCommand(cmd)
	return root
}

// TestTimeout: --timeout bounds the whole command, and says so.
func TestTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			args string
			code cli.Code
			want []string
		}{
			{"wait --timeout 10m", cli.Network, []string{"gave up after 10m0s, as --timeout says: fetching registry.test/x", "next: run the same command again, with a longer --timeout"}},
			{"wait --timeout 2h", cli.Failed, []string{"error: done"}},
			{"wait", cli.Failed, []string{"error: done"}},
			{"wait --timeout -1s", cli.Usage, []string{"--timeout -1s: it must be more than 0"}},
			{"wait --timeout 10", cli.Usage, []string{"--timeout"}},
		} {
			var errs bytes.Buffer
			app := cli.New(nil, nil, &errs, nil)
			code := app.Run(t.Context(), waiting(app), strings.Fields(c.args))
			if code != c.code {
				t.Errorf("%s: exit code %d, want %d", c.args, code, c.code)
			}
			for _, text := range c.want {
				if !strings.Contains(errs.String(), text) {
					t.Errorf("%s: %q is not in:\n%s", c.args, text, errs.String())
				}
			}
		}
	})
}

// TestStallTimeout: it is what connections and helpers get, and never none.
func TestStallTimeout(t *testing.T) {
	t.Parallel()
	home := map[string]string{"HOME": t.TempDir()}
	for arg, want := range map[string]time.Duration{"": 30 * time.Second, "--stall-timeout=5s": 5 * time.Second, "--stall-timeout=0": 0, "--stall-timeout=-1s": 0} {
		var args []string
		if arg != "" {
			args = []string{arg}
		}
		app, flags := registry(t, home, args...)
		opts, err := flags.Options()
		if want == 0 {
			if app.CodeOf(err) != cli.Usage || app.HintOf(err) == "" {
				t.Errorf("%s: %v; want a mistake in usage with a hint", arg, err)
			}
			continue
		}
		if err != nil || opts.StallTimeout != want {
			t.Errorf("%s: %v, %v; want %v", arg, opts.StallTimeout, err, want)
		}
	}
}
