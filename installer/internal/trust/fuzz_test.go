package trust_test

import (
	"encoding/json"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// FuzzVerify feeds evidence of every form to a key and to an identity. Nothing
// may panic, and nothing that differs from what was signed may be accepted for
// a digest that no seed is about.
func FuzzVerify(f *testing.F) {
	lab := trusttest.Lab(f)
	for _, s := range lab.Samples() {
		for i, l := range lab.Evidence(f, s.Index) {
			if i > 0 {
				break // one of each will do
			}
			annotations, err := json.Marshal(l.Annotations)
			if err != nil {
				f.Fatal(err)
			}
			format, _ := trust.FormatOf(l.MediaType)
			f.Add(int(format), l.Payload, annotations)
		}
	}
	f.Add(1, []byte(`{"critical":{"type":"cosign container image signature"}}`), []byte(`{"dev.cosignproject.cosign/signature":"AA==","dev.sigstore.cosign/bundle":"{\"SignedEntryTimestamp\":\"AA==\",\"Payload\":{\"body\":\"e30=\",\"integratedTime\":1}}"}`))
	all := requirements(f, lab)
	f.Fuzz(func(t *testing.T, format int, payload, annotations []byte) {
		ev := trust.Evidence{Format: trust.Format(format), Payload: payload}
		if json.Unmarshal(annotations, &ev.Annotations) != nil {
			return
		}
		for _, name := range []string{"key", "key, log", "id, stamp"} {
			if v, err := all[name].Verify(t.Context(), other, ev); err == nil {
				t.Errorf("%s accepts %s of %s", name, v.Kind(), v.Subject())
			}
		}
	})
}

// FuzzTrustedRoot: a root from anywhere loads or is refused.
func FuzzTrustedRoot(f *testing.F) {
	f.Add(trust.PublicTrustedRootJSON())
	f.Add(trusttest.Lab(f).TrustedRoot())
	f.Fuzz(func(_ *testing.T, raw []byte) {
		if roots, err := trust.LoadTrustedRoot(raw); err == nil {
			_, _ = trust.RequireIdentity(trust.Identity{Issuer: "https://x", Subject: "y"}, trust.IdentityOptions{Roots: roots})
		}
	})
}
