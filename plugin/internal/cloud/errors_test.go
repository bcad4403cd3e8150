package cloud

import (
	"errors"
	"fmt"
	"testing"
)

func TestUnanswered(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err  error
		want bool
	}{
		"no answer":            {&Error{Kind: ErrTransient}, true},
		"gateway":              {&Error{Status: 502, Kind: ErrTransient}, true},
		"rate":                 {&Error{Status: 429, Kind: ErrTransient}, true},
		"credentials":          {&Error{Status: 401, Kind: ErrUnauthorized}, true},
		"credentials, wrapped": {fmt.Errorf("x: %w", &Error{Kind: ErrUnauthorized}), true},
		"Nova's own failure":   {&Error{Status: 500, Kind: ErrTransient}, false},
		"refusal":              {&Error{Status: 409, Kind: ErrConflict}, false},
		"policy":               {&Error{Status: 403, Kind: ErrForbidden}, false},
		"anything else":        {errors.New("x"), false},
		"nothing":              {nil, false},
	} {
		if got := Unanswered(row.err); got != row.want {
			t.Errorf("%s: got %v, want %v", name, got, row.want)
		}
	}
}
