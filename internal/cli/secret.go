package cli

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/term"
)

// CanAsk says whether In is a terminal, so that a person can be asked.
func (a *App) CanAsk() bool { return isTerminal(a.In) }

// ReadSecret asks for a secret on the terminal, which does not show what is
// typed. When the context is done it returns at once, with the terminal as it
// was: the first Ctrl-C is enough. It is for an App that [App.CanAsk].
func (a *App) ReadSecret(ctx context.Context, prompt string) ([]byte, error) {
	in, ok := a.In.(*os.File)
	if !ok {
		return nil, fmt.Errorf("%s: no terminal", prompt)
	}
	fd := int(in.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	fmt.Fprint(a.Err, prompt+": ")
	secret, err := Await(ctx, func() ([]byte, error) { return term.ReadPassword(fd) })
	fmt.Fprintln(a.Err)
	if ctx.Err() != nil {
		_ = term.Restore(fd, before)
	}
	return secret, err
}

// Await calls read, which knows no context, and returns what it returns, or the
// context's error as soon as that is done. Then read is left behind: it may only
// wait for input, not change anything.
func Await[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
