// Package jsonbound bounds what reading a JSON document can cost.
//
// A document of a few megabytes can hold millions of values, each of which takes
// far more memory once it is read than its two or three bytes. Whatever comes
// from outside is counted first.
package jsonbound

import (
	"errors"
	"fmt"
)

// ErrTooLarge is a document of too many values, or of values too deep in others.
var ErrTooLarge = errors.New("too large a JSON document")

// maxDepth is how deep values may be in each other.
const maxDepth = 64

// Check refuses a document that may have more than the given number of values,
// names of fields included, or more than 64 of them in each other. It allocates
// nothing. It does not judge whether the document is JSON.
func Check(document []byte, values int) error {
	depth, count, quoted := 0, 1, false
	for i := 0; i < len(document); i++ {
		switch b := document[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("%w: more than %d deep", ErrTooLarge, maxDepth)
			}
			count++
		case b == '}' || b == ']':
			depth--
		case b == ',' || b == ':':
			count++
		}
		if count > values {
			return fmt.Errorf("%w: more than %d values", ErrTooLarge, values)
		}
	}
	return nil
}
