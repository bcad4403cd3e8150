// Package reason makes errors that callers know by a word, within a kind. The
// words are data for programs; people read the text. Package installer documents
// them all.
package reason

import (
	"errors"
	"slices"
)

// The kinds that more than one package has reasons of. Nobody reads their text:
// a reason has its own.
var (
	// ErrNotFound is the kind of what does not exist. Without a reason it is what a
	// registry or layout does not have.
	ErrNotFound = errors.New("not found")
	// ErrInvalid is the kind of text, files and names that cannot be used.
	ErrInvalid = errors.New("invalid")
	// ErrBadContent is the kind of content from a registry that is never installed.
	ErrBadContent = errors.New("bad content")
	// ErrDiffers is the kind of what is installed and is not as it should be.
	ErrDiffers = errors.New("not as it was installed")
)

// Error is one reason. Make it with [New], once, and wrap it with %w.
type Error struct {
	kind       error
	word, text string
}

// New makes a reason of a kind, or of a wider error. kind is nil for a reason
// that an outer error gives its kind.
func New(kind error, word, text string) error {
	return &Error{kind: kind, word: word, text: text}
}

// Error returns the text for people.
func (e *Error) Error() string { return e.text }

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.kind }

// Is matches a target that has a method Word and the same word.
func (e *Error) Is(target error) bool {
	named, ok := target.(interface{ Word() string })
	return ok && named.Word() == e.word
}

// Words returns the words of all reasons in err's tree, each once, the outermost
// first.
func Words(err error) []string {
	var words []string
	collect(err, func(word string) {
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	})
	return words
}

func collect(err error, found func(word string)) {
	if one, ok := err.(*Error); ok { //nolint:errorlint // the tree is walked here
		found(one.word)
	}
	switch parent := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() error }:
		if next := parent.Unwrap(); next != nil {
			collect(next, found)
		}
	case interface{ Unwrap() []error }:
		for _, next := range parent.Unwrap() {
			collect(next, found)
		}
	}
}
