package installer_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
)

// TestInstallVerified holds that what was shown is what is installed, whatever
// was published or written into the value since, and under the policy that
// verified it only.
func TestInstallVerified(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	verified, err := s.installer.Verify(t.Context(), s.ref)
	if err != nil {
		t.Fatal(err)
	}
	s.publish(t, "1.3.0", s.key, "newer")
	s.publish(t, "1.2.3", s.key, "moved")
	opts := installer.InstallOptions{As: alias}
	folder := installer.WithFolder(filepath.Join(t.TempDir(), "plugins"))
	for name, test := range map[string]struct {
		policy installer.Policy
		value  installer.Verified
		want   error
	}{
		"another policy": {trusting(t, s.other), verified, installer.ErrRefused},
		"no policy":      {installer.Policy{}, verified, installer.Reason("no-rule")},
		"no value":       {installer.UnsafeNoVerification(), installer.Verified{}, installer.ErrRefused},
		"made by hand":   {s.policy(t), installer.Verified{Resolution: verified.Resolution, Verification: verified.Verification}, installer.ErrRefused},
	} {
		if _, err := newInstaller(t, test.policy, folder).InstallVerified(t.Context(), test.value, opts); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v; want %v", name, err, test.want)
		}
	}
	shown := verified
	shown.Reference, shown.Manifest, shown.Verification.Unsafe = reference(t, "evil.test/x:9"), "", true
	shown.Verification.Evidence[0].KeyID = "forged"
	s.registry.Gate.Forget()
	installed, err := s.installer.InstallVerified(t.Context(), shown, opts)
	if err != nil || installed.Receipt.Version.String() != "1.2.3" || !strings.HasPrefix(readFile(t, installed.Path), "ELF") {
		t.Fatalf("%+v, %v", installed, err)
	}
	r := installed.Receipt
	if r.Reference.String() != s.ref.String() || r.Verification.Unsafe || r.Verification.Evidence[0].KeyID == "forged" {
		t.Errorf("the receipt has what was written into the value: %+v", r)
	}
	for _, request := range s.registry.Gate.Requests() {
		if strings.Contains(request.Path, "/tags/") || strings.Contains(request.Path, ".sig") {
			t.Errorf("asked again: %v", request)
		}
	}
}
