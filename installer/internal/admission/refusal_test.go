package admission

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
)

// TestRefusal says each reason once, whoever was asked for, in one line.
func TestRefusal(t *testing.T) {
	t.Parallel()
	refusal := func(origin, want string, reason error) error {
		return &trust.Error{Origin: origin, Want: want, Err: reason}
	}
	refusals := []error{
		refusal("tag, layer 0", "key A", trust.ErrWrongSigner),
		refusal("tag, layer 0", "key B", trust.ErrWrongSigner),
		refusal("bundle 1", "key A", trust.ErrBadSignature),
		refusal("bundle 2", "key A", trust.ErrWrongSigner),
		errors.New("other"),
		refusal("bundle 3", "key A", errors.Join(trust.ErrMalformed, trust.ErrUntrustedTime)),
	}
	got := refuse(lookedAt(refusals), refusals, "no signature by %s", "key A")
	want := []Looked{
		{[]string{"tag, layer 0", "bundle 2"}, trust.ErrWrongSigner.Error()},
		{[]string{"bundle 1"}, trust.ErrBadSignature.Error()},
		{nil, "other"},
		{[]string{"bundle 3"}, trust.ErrMalformed.Error() + "; " + trust.ErrUntrustedTime.Error()},
	}
	if diff := cmp.Diff(want, got.Looked); diff != "" {
		t.Error(diff)
	}
	text := "refused by policy: no signature by key A; tag, layer 0 and 1 more: signed by another signer; bundle 1: signature does not verify; other; bundle 3: "
	if !strings.HasPrefix(got.Error(), text) || strings.Contains(got.Error(), "\n") {
		t.Errorf("got %q", got)
	}
	for _, target := range []error{ErrRefused, trust.ErrWrongSigner, trust.ErrBadSignature, trust.ErrUntrustedTime} {
		if !errors.Is(got, target) {
			t.Errorf("does not match %v", target)
		}
	}
}
