package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/radome-io/fleeting-plugin-openstack/internal/diskfull"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// Code is the exit code of a command. Scripts rely on the numbers; they are
// documented in docs/reference/exit-codes.md.
type Code int

// The exit codes.
const (
	// OK means that everything asked for was done.
	OK Code = 0
	// Failed means that something went wrong that no other code names.
	Failed Code = 1
	// Usage means that the command line or a configuration file is wrong.
	Usage Code = 2
	// Refused means that a policy does not allow what was asked for: not
	// signed, signed by another signer, altered.
	Refused Code = 3
	// NotFound means that a reference, a version, a platform or an installed
	// plugin does not exist.
	NotFound Code = 4
	// Network means that a registry or another service could not be reached,
	// or answered with an error.
	Network Code = 5
)

// codedError gives an error an exit code.
type codedError struct {
	err  error
	code Code
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// hintedError gives an error a sentence on what to try next.
type hintedError struct {
	err  error
	hint string
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

// errorMapping says how a library's error is shown.
type errorMapping struct {
	target error
	code   Code
	hint   string
}

// WithCode makes the command end with code when it returns err. A nil err stays
// nil.
func WithCode(err error, code Code) error {
	if err == nil {
		return nil
	}
	return &codedError{err: err, code: code}
}

// Usagef makes an error about how the command was called; the exit code is
// [Usage].
func Usagef(format string, args ...any) error {
	return &codedError{err: fmt.Errorf(format, args...), code: Usage}
}

// Hint adds the next thing to try to err: one sentence in the imperative, or a
// command. The outermost hint wins over those inside and over [App.MapError].
// A nil err stays nil.
func Hint(err error, next string) error {
	if err == nil {
		return nil
	}
	return &hintedError{err: err, hint: next}
}

// Hintf is [Hint] with a format.
func Hintf(err error, format string, args ...any) error {
	return Hint(err, fmt.Sprintf(format, args...))
}

// MapError says which exit code and hint go with a sentinel error of a library,
// compared by [errors.Is]. An empty hint gives none. What was registered first
// wins, so put the narrow errors before the wide ones. A command registers the
// errors of the libraries it calls; doing so twice is harmless.
func (a *App) MapError(target error, code Code, hint string) {
	a.mapping = append(a.mapping, errorMapping{target: target, code: code, hint: hint})
}

// OtherFlags registers what to write in place of flags that other tools have, by
// their names without dashes. It is a hint only: none of them is taken.
func (a *App) OtherFlags(hints map[string]string) {
	if a.otherFlags == nil {
		a.otherFlags = map[string]string{}
	}
	maps.Copy(a.otherFlags, hints)
}

// OtherCommands registers what to do in place of commands that other tools have,
// by their names.
func (a *App) OtherCommands(hints map[string]string) {
	if a.otherCommands == nil {
		a.otherCommands = map[string]string{}
	}
	maps.Copy(a.otherCommands, hints)
}

// NameErrors registers how to find the reference that an error is about, "" for
// none: hints say it in place of REF.
func (a *App) NameErrors(find func(err error) string) { a.naming = append(a.naming, find) }

// Describe registers how people are told of errors that have more to say than one
// sentence: a first line, and lines that follow it. An empty first line leaves an
// error to others. Programs get the error's own text.
func (a *App) Describe(describe func(err error) (headline string, details []string)) {
	a.describe = append(a.describe, describe)
}

// CodeOf returns the exit code for err: that of the outermost [WithCode], else
// the one registered with [App.MapError], else [Failed]. With what code a
// program ended that was run on the way does not matter.
func (a *App) CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	if c, ok := errors.AsType[*codedError](err); ok {
		if c.code > OK && c.code <= Network {
			return c.code
		}
		return Failed
	}
	if m, ok := a.mapped(err); ok {
		return m.code
	}
	return Failed
}

// HintOf returns the next thing to try after err, or "".
func (a *App) HintOf(err error) string {
	hint := ""
	if h, ok := errors.AsType[*hintedError](err); ok {
		hint = h.hint
	} else if m, ok := a.mapped(err); ok {
		hint = m.hint
	} else if durable.InUse(err) {
		hint = "another program has the file open, or it needs other permissions: end the program, or run this as an administrator"
	} else if diskfull.Is(err) {
		hint = "make room there; nothing was changed"
	}
	if after := ociregistry.RetryAfter(err); after > 0 {
		hint = fmt.Sprintf("wait %s, until %s; then: %s", after, a.Now().Add(after).UTC().Format("15:04:05 UTC"), hint)
	}
	return hint
}

// mapped finds how err is shown.
func (a *App) mapped(err error) (errorMapping, bool) {
	for _, m := range slices.Concat(a.mapping, a.fallback) {
		if errors.Is(err, m.target) {
			return m, true
		}
	}
	return errorMapping{}, false
}
