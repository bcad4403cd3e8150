// Package moa stands in for the language of expressions in job inputs and steps:
// none is parsed.
package moa

import (
	"errors"

	"gitlab.com/gitlab-org/moa/ast"
)

// ParseTemplate fails.
func ParseTemplate(string) (ast.Expr, error) {
	return nil, errors.New("expressions are not built in")
}

// EscapeTemplate returns the text as it is; there is nothing that would read
// expressions in it.
func EscapeTemplate(text string) string { return text }
