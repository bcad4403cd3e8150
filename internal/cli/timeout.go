package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// errTimeout is why a command ends that took longer than --timeout.
var errTimeout = errors.New("timeout")

// bound has a command canceled after the time that --timeout allows, counted from
// when its flags were parsed.
func (a *App) bound(root *cobra.Command, cancel context.CancelCauseFunc) {
	before := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if a.timeout < 0 {
			return Hint(Usagef("--timeout %s: it must be more than 0", a.timeout), "leave it out for no limit")
		}
		if a.timeout > 0 {
			timer := time.AfterFunc(a.timeout, func() { cancel(errTimeout) })
			context.AfterFunc(cmd.Context(), func() { timer.Stop() })
		}
		return before(cmd, args)
	}
}

// timedOut says of an error that it came when the time was over.
func timedOut(limit time.Duration, err error) error {
	return Hint(WithCode(fmt.Errorf("gave up after %s, as --timeout says: %w", limit, err), Network),
		"run the same command again, with a longer --timeout: what is done is not done twice")
}
