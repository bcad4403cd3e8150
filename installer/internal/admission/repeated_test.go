package admission

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
)

func TestByReason(t *testing.T) {
	t.Parallel()
	refusal := func(origin string, reason error) error {
		return &trust.Error{Origin: origin, Want: "key A", Err: reason}
	}
	got := byReason([]error{
		refusal("tag, layer 0", trust.ErrWrongSigner),
		refusal("bundle 1", trust.ErrBadSignature),
		refusal("bundle 2", trust.ErrWrongSigner),
		errors.New("other"),
		refusal("bundle 3", trust.ErrWrongSigner),
	})
	var lines []string
	for _, err := range got {
		lines = append(lines, err.Error())
	}
	want := []string{
		refusal("tag, layer 0", trust.ErrWrongSigner).Error() + " (and 2 more like it)",
		refusal("bundle 1", trust.ErrBadSignature).Error(),
		"other",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	if err := errors.Join(got...); !errors.Is(err, trust.ErrWrongSigner) || !errors.Is(err, trust.ErrBadSignature) {
		t.Errorf("reasons lost: %v", err)
	}
}
