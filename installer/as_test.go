package installer_test

import (
	"errors"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// TestOtherNameNeedsItsRule: a plugin of a laxly ruled name does not get under a
// strictly ruled one, by no command that takes a name to install under.
func TestOtherNameNeedsItsRule(t *testing.T) {
	t.Parallel()
	const strict, lax, unruled = "strict.test/team/plugin", "lax.test/team/plugin", "other.test/team/plugin"
	key, other := trusttest.NewKey(t), trusttest.NewKey(t)
	layout := newLayout(t)
	published := plugintest.Publish(t, layout, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	policy := policyOf(t,
		installer.Rule{Scope: "lax.test/**", UnsafeUnsigned: true},
		installer.Rule{Scope: "strict.test/**", Signers: []installer.Signer{signerOf(t, key)}},
	)
	i := newInstaller(t, policy, installer.WithSource(installer.FromLayout(layout.Name())))
	ref := reference(t, lax+":1")
	ways := func(as string) map[string]func() (installer.Installed, error) {
		opts := installer.InstallOptions{As: as}
		return map[string]func() (installer.Installed, error){
			"install": func() (installer.Installed, error) { return i.Install(t.Context(), ref, opts) },
			"ensure":  func() (installer.Installed, error) { return i.Ensure(t.Context(), ref, opts) },
			"install what was verified": func() (installer.Installed, error) {
				verified, err := i.Verify(t.Context(), ref)
				if err != nil {
					t.Fatal(err)
				}
				return i.InstallVerified(t.Context(), verified, opts)
			},
			"lock": func() (installer.Installed, error) {
				_, err := i.Lock(t.Context(), installer.Lock{}, ref, installer.LockOptions{As: as})
				return installer.Installed{}, err
			},
			"install what is locked": func() (installer.Installed, error) {
				// Written by hand, or under another policy.
				anywhere := newInstaller(t, installer.UnsafeNoVerification(), installer.WithSource(installer.FromLayout(layout.Name())))
				lock, err := anywhere.Lock(t.Context(), installer.Lock{}, ref, installer.LockOptions{As: as})
				if err != nil {
					t.Fatal(err)
				}
				return i.InstallLocked(t.Context(), lock, ref)
			},
		}
	}
	refused := func(when, as string, want error) {
		t.Helper()
		for name, install := range ways(as) {
			if _, err := install(); !errors.Is(err, want) {
				t.Errorf("%s, %s as %s: %v; want %v", when, name, as, err, want)
			}
		}
		mustBeEmpty(t, i.Folder().Dir())
	}
	refused("unsigned", strict, installer.Reason("unsigned"))
	refused("unsigned", unruled, installer.Reason("no-rule"))
	plugintest.Sign(t, layout, other, published.Index)
	i = newInstaller(t, policy, installer.WithSource(installer.FromLayout(layout.Name())))
	refused("signed by another key", strict, installer.ErrRefused)
	plugintest.Sign(t, layout, key, published.Index)
	i = newInstaller(t, policy, installer.WithSource(installer.FromLayout(layout.Name())))
	for name, install := range ways(strict) {
		installed, err := install()
		if err != nil {
			t.Errorf("signed, %s: %v", name, err)
		}
		if v := installed.Receipt.Verification; name != "lock" && (v.Unsafe || v.Rule != "lax.test/**" || v.AsRule != "strict.test/**" || len(v.Signers()) != 1) {
			t.Errorf("signed, %s: %+v", name, v)
		}
	}
	list, err := i.Folder().List()
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if err := policy.Allows(list[0]); err != nil {
		t.Errorf("allowed: %v", err)
	}
	for name, changed := range map[string]struct {
		policy installer.Policy
		want   error
	}{
		"a rule for one name only": {policyOf(t, installer.Rule{Scope: "lax.test/**", UnsafeUnsigned: true}), installer.Reason("no-rule")},
		"another key for its name": {policyOf(t, installer.Rule{Scope: "lax.test/**", UnsafeUnsigned: true}, installer.Rule{Scope: "strict.test/**", Signers: []installer.Signer{signerOf(t, other)}}), installer.Reason("other-policy")},
	} {
		if err := changed.policy.Allows(list[0]); !errors.Is(err, changed.want) || !errors.Is(err, installer.ErrRefused) {
			t.Errorf("%s: %v; want %v", name, err, changed.want)
		}
	}
	upgraded := list[0]
	upgraded.Receipt.Reference = reference(t, "other.test/team/plugin:1")
	if _, err := i.Upgrade(t.Context(), upgraded, installer.ChangeOptions{}); !errors.Is(err, installer.Reason("no-rule")) {
		t.Errorf("upgrade from a name without a rule: %v", err)
	}
}
