// Package ldflags reads the value of the go command's -ldflags. It links
// nothing, and does not say which flags are harmless.
package ldflags

import (
	"errors"
	"fmt"
	"strings"
)

// ErrQuote is a quote that does not end.
var ErrQuote = errors.New("a quote does not end")

// Split splits flags as the go command does: between spaces, and where a quote
// begins a word, at the next such quote, whatever follows it. The error matches
// [ErrQuote]. The go command documents it under "-ldflags",
// https://pkg.go.dev/cmd/go.
func Split(flags string) ([]string, error) {
	const space = " \t\r\n"
	var words []string
	for rest := strings.TrimLeft(flags, space); rest != ""; rest = strings.TrimLeft(rest, space) {
		if quote := rest[0]; quote == '\'' || quote == '"' {
			word, after, closed := strings.Cut(rest[1:], string(quote))
			if !closed {
				return nil, fmt.Errorf("linker flags %q: %w", flags, ErrQuote)
			}
			words, rest = append(words, word), after
			continue
		}
		end := strings.IndexAny(rest, space)
		if end < 0 {
			end = len(rest)
		}
		words, rest = append(words, rest[:end]), rest[end:]
	}
	return words, nil
}

// Variable is a string variable that the linker sets.
type Variable struct {
	// Name is "importpath.name".
	Name, Value string
}

// Variables gives those that flags set with -X, in their order. The error is
// that of [Split]. https://pkg.go.dev/cmd/link
func Variables(flags string) ([]Variable, error) {
	words, err := Split(flags)
	if err != nil {
		return nil, err
	}
	var found []Variable
	for i := 0; i < len(words); i++ {
		name, definition, joined := strings.Cut(strings.TrimLeft(words[i], "-"), "=")
		if !strings.HasPrefix(words[i], "-") || name != "X" {
			continue
		}
		if !joined && i+1 < len(words) {
			i++
			definition = words[i]
		}
		if variable, value, ok := strings.Cut(definition, "="); ok {
			found = append(found, Variable{variable, value})
		}
	}
	return found, nil
}
