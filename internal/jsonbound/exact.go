package jsonbound

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrAmbiguous is an object that readers of JSON understand differently.
var ErrAmbiguous = errors.New("ambiguous JSON")

// Exact refuses an object that has a field twice, or one whose name is one of
// names but for its capitals: encoding/json takes the last of such fields, others
// take the first or none. It looks at the outermost object only, and expects that
// the document is JSON.
func Exact(document []byte, names ...string) error {
	seen := map[string]bool{}
	for depth, i := 0, 0; i < len(document); i++ {
		switch document[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			start := i
			for i++; i < len(document) && document[i] != '"'; i++ {
				if document[i] == '\\' {
					i++
				}
			}
			if depth != 1 || !isName(document, i+1) {
				continue
			}
			var name string
			if err := json.Unmarshal(document[start:i+1], &name); err != nil {
				return err
			}
			if seen[name] {
				return fmt.Errorf("%w: field %.80q twice", ErrAmbiguous, name)
			}
			seen[name] = true
			for _, known := range names {
				if name != known && strings.EqualFold(name, known) {
					return fmt.Errorf("%w: field %.80q where %q is meant", ErrAmbiguous, name, known)
				}
			}
		}
	}
	return nil
}

// isName reports whether a string that ends before at is the name of a field.
func isName(document []byte, at int) bool {
	for ; at < len(document); at++ {
		switch document[at] {
		case ' ', '\t', '\r', '\n':
		case ':':
			return true
		default:
			return false
		}
	}
	return false
}
