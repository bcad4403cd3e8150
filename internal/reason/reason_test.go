package reason_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/reason"
)

type word string

func (w word) Error() string { return string(w) }
func (w word) Word() string  { return string(w) }

func TestReasons(t *testing.T) {
	t.Parallel()
	wide := reason.New(reason.ErrInvalid, "wide", "a wide reason")
	narrow := reason.New(wide, "narrow", "a narrow reason")
	err := fmt.Errorf("doing x: %w", errors.Join(errors.New("other"), fmt.Errorf("%w: %w", narrow, reason.New(nil, "loose", "a loose reason")), wide))
	if diff := cmp.Diff([]string{"narrow", "wide", "loose"}, reason.Words(err)); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
	for _, target := range []error{wide, narrow, reason.ErrInvalid, word("narrow"), word("wide"), word("loose")} {
		if !errors.Is(err, target) {
			t.Errorf("it does not match %v", target)
		}
	}
	for _, target := range []error{reason.ErrNotFound, word("other"), word("invalid"), word("a wide reason")} {
		if errors.Is(err, target) {
			t.Errorf("it matches %v", target)
		}
	}
	if reason.Words(nil) != nil || errors.Is(reason.New(nil, "loose", "text"), nil) {
		t.Error("nothing has a reason")
	}
}
