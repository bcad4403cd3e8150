package installer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// TestRefusedError holds that a program gets what was looked at, each reason
// once, and a text of one line.
func TestRefusedError(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	wanted := trusttest.NewKey(t)
	i := newInstaller(t, trusting(t, wanted))
	content, bundles := labFile(t, lab, "keyless-att-bundle-github")
	_, err := i.VerifyFile(t.Context(), reference(t, "registry.test/x"), strings.NewReader(string(content)), slices.Concat(bundles, bundles)...)
	refused, ok := errors.AsType[*installer.RefusedError](err)
	if !ok || !errors.Is(err, installer.ErrRefused) || !errors.Is(err, installer.Reason("wrong-signer")) || errors.Is(err, installer.Reason("not-attested")) {
		t.Fatalf("%v", err)
	}
	want := []installer.RefusedEvidence{{Origins: []string{"keyless-att-bundle-github"}, Why: "signed by another signer: with a certificate, not with a key"}}
	if diff := cmp.Diff(want, refused.Looked); diff != "" {
		t.Error(diff)
	}
	if text := "refused by policy: " + refused.Why + "; " + refused.Looked[0].String(); err.Error() != text || strings.Contains(text, "\n") {
		t.Errorf("got %q, want %q", err, text)
	}
}
