package installer_test

import (
	"errors"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// TestSignatureRepository: signatures in a repository of their own count, by the
// rule or by the option, under either form; without being told, and with another
// signer's there, the plugin is refused; and one that cannot be asked is no lack.
func TestSignatureRepository(t *testing.T) {
	t.Parallel()
	for kind, reg := range registries(t) {
		key, stranger := trusttest.NewKey(t), trusttest.NewKey(t)
		p := plugintest.Publish(t, repository(t, reg.Host, "team/plugin"), plugintest.Plugin{Version: "1.0.0", Body: "ELF"}, "1.0.0")
		plugintest.Sign(t, repository(t, reg.Host, "signatures"), key, p.Index)
		plugintest.Sign(t, repository(t, reg.Host, "strangers"), stranger, p.Index)
		plugintest.Refer(t, repository(t, reg.Host, "bundles"), p.Index, key.SignBundle(t, p.Index.Digest))
		ref := reference(t, reg.Host+"/team/plugin")
		rule := func(signatures string) installer.Policy {
			return policyOf(t, installer.Rule{Scope: "**", Signers: []installer.Signer{signerOf(t, key)}, SignatureRepository: signatures})
		}
		for name, c := range map[string]struct {
			policy installer.Policy
			opts   []installer.Option
			want   error
		}{
			"nowhere":             {trusting(t, key), nil, installer.Reason("unsigned")},
			"by the rule":         {rule(reg.Host + "/signatures"), nil, nil},
			"bundles":             {rule(reg.Host + "/bundles"), nil, nil},
			"by the option":       {trusting(t, key), []installer.Option{installer.WithSignatureRepository(reg.Host + "/signatures")}, nil},
			"the rule's own":      {rule(reg.Host + "/signatures"), []installer.Option{installer.WithSignatureRepository(reg.Host + "/strangers")}, nil},
			"another signer's":    {rule(reg.Host + "/strangers"), nil, installer.ErrRefused},
			"an empty one":        {rule(reg.Host + "/nothing"), nil, installer.Reason("unsigned")},
			"the plugin's own":    {rule(reg.Host + "/team/plugin"), nil, installer.Reason("unsigned")},
			"one that is down":    {rule("127.0.0.1:1/signatures"), nil, installer.ErrEvidence},
			"mirrored, of course": {rule("mirror.test/x"), []installer.Option{mirroredSignatures(t, reg)}, nil},
		} {
			i := newInstaller(t, c.policy, c.opts...)
			if _, err := i.Verify(t.Context(), ref); !errors.Is(err, c.want) {
				t.Errorf("%s: %s: %v; want %v", kind, name, err, c.want)
			}
		}
	}
}

func mirroredSignatures(t *testing.T, reg *registrytest.Registry) installer.Option {
	t.Helper()
	open, err := installer.WithMirrors(retryingRegistries(t).Open, map[string]string{"mirror.test/x": reg.Host + "/signatures"})
	if err != nil {
		t.Fatal(err)
	}
	return installer.WithSource(open)
}

// TestSignatureRepositoryNames refuses what names no repository.
func TestSignatureRepositoryNames(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	for name, ok := range map[string]bool{
		"registry.test/signatures": true, "registry.test:5000/a/b": true, "signatures": false, "registry.test": false,
		"registry.test/signatures:1.0.0": false, "registry.test/Signatures": false, "registry.test/": false,
		"registry.test/a@sha256:00": false, "https://registry.test/a": false,
	} {
		_, err := installer.NewPolicy(installer.Rule{Scope: "**", Signers: []installer.Signer{signerOf(t, key)}, SignatureRepository: name})
		if (err == nil) != ok || err != nil && !errors.Is(err, installer.Reason("policy")) {
			t.Errorf("in a rule: %q: %v", name, err)
		}
		_, err = installer.New(trusting(t, key), installer.WithSignatureRepository(name))
		if (err == nil) != ok || err != nil && !errors.Is(err, installer.Reason("reference")) {
			t.Errorf("as an option: %q: %v", name, err)
		}
	}
	if _, err := installer.NewPolicy(installer.Rule{Scope: "**", UnsafeUnsigned: true, SignatureRepository: "registry.test/a"}); !errors.Is(err, installer.Reason("policy")) {
		t.Errorf("beside insecure-unsigned: %v", err)
	}
}
