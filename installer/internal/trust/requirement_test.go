package trust_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

func TestRequireKeyRefuses(t *testing.T) {
	t.Parallel()
	k := trusttest.NewKey(t)
	for name, pem := range map[string]string{
		"nothing":        "",
		"no PEM":         "ssh-ed25519 AAAA",
		"a private key":  string(k.PrivatePEM(t)),
		"two keys":       string(k.PublicPEM(t)) + string(k.PublicPEM(t)),
		"trailing data":  string(k.PublicPEM(t)) + "x",
		"rubbish in PEM": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
	} {
		if _, err := trust.RequireKey([]byte(pem), trust.KeyOptions{}); !errors.Is(err, trust.ErrRequirement) {
			t.Errorf("%s: %v", name, err)
		}
	}
	lab := trusttest.Lab(t)
	noLogs, err := trust.LoadTrustedRoot(lab.TrustedRootWithoutLogs())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []trust.KeyOptions{{RequireLog: true}, {RequireTimestamp: true}, {Roots: noLogs, RequireLog: true}} {
		if _, err := trust.RequireKey(k.PublicPEM(t), o); !errors.Is(err, trust.ErrRequirement) {
			t.Errorf("%+v without a fitting root: %v", o, err)
		}
	}
	id := trust.Identity{Issuer: trusttest.LabIssuer, Subject: trusttest.LabSubject}
	for _, o := range []trust.IdentityOptions{{Roots: noLogs, UnsafeNoSCT: true}, {Roots: noLogs, TimestampSuffices: true}} {
		if _, err := trust.RequireIdentity(id, o); !errors.Is(err, trust.ErrRequirement) {
			t.Errorf("%+v without a fitting root: %v", o, err)
		}
	}
}

func TestRequireIdentity(t *testing.T) {
	t.Parallel()
	const issuer = "https://token.actions.githubusercontent.com"
	const exact = "https://github.com/radome-io/x/.github/workflows/release.yml@refs/tags/v1.0.0"
	for name, c := range map[string]struct {
		id   trust.Identity
		opts trust.IdentityOptions
		ok   bool
	}{
		"exact":              {id: trust.Identity{Issuer: issuer, Subject: exact}, ok: true},
		"pattern":            {id: trust.Identity{Issuer: issuer, SubjectPattern: `^https://github\.com/radome-io/.+@refs/tags/v.+$`}, ok: true},
		"nothing":            {},
		"issuer only":        {id: trust.Identity{Issuer: issuer}},
		"subject only":       {id: trust.Identity{Subject: exact}},
		"pattern only":       {id: trust.Identity{SubjectPattern: `^https://github\.com/x$`}},
		"issuer is a host":   {id: trust.Identity{Issuer: "token.actions.githubusercontent.com", Subject: exact}},
		"both":               {id: trust.Identity{Issuer: issuer, Subject: exact, SubjectPattern: "^" + exact + "$"}},
		"not anchored":       {id: trust.Identity{Issuer: issuer, SubjectPattern: `https://github\.com/radome-io/`}},
		"no start":           {id: trust.Identity{Issuer: issuer, SubjectPattern: `https://github\.com/radome-io/x$`}},
		"no end":             {id: trust.Identity{Issuer: issuer, SubjectPattern: `^https://github\.com/radome-io/x`}},
		"escaped end":        {id: trust.Identity{Issuer: issuer, SubjectPattern: `^https://github\.com/radome-io/x\$`}},
		"not an expression":  {id: trust.Identity{Issuer: issuer, SubjectPattern: `^(x$`}},
		"breaks the anchors": {id: trust.Identity{Issuer: issuer, SubjectPattern: `^x)|(?:y$`}},
		"anybody":            {id: trust.Identity{Issuer: issuer, SubjectPattern: `^.*$`}},
		"anybody at a host":  {id: trust.Identity{Issuer: issuer, SubjectPattern: `^https://.+$`}},
		"no SCT from public": {id: trust.Identity{Issuer: issuer, Subject: exact}, opts: trust.IdentityOptions{UnsafeNoSCT: true}},
	} {
		r, err := trust.RequireIdentity(c.id, c.opts)
		if c.ok != (err == nil) || (err != nil && !errors.Is(err, trust.ErrRequirement)) {
			t.Errorf("%s: %v", name, err)
		}
		if c.ok && !strings.Contains(r.String(), issuer) {
			t.Errorf("%s: %q does not name the issuer", name, r)
		}
	}
}

func TestLoadTrustedRoot(t *testing.T) {
	t.Parallel()
	public := string(trust.PublicTrustedRootJSON())
	for name, json := range map[string]string{
		"nothing":       "",
		"no media type": "{}",
		"trusts nobody": `{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`,
		"trailing data": public + "{}",
		"broken key":    strings.Replace(public, "MFkwEwYHKoZIzj0C", "MFkwEwYHKoZIzj0D", 1),
	} {
		if _, err := trust.LoadTrustedRoot([]byte(json)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := trust.LoadTrustedRoot([]byte(public)); err != nil {
		t.Error(err)
	}
}

// TestFingerprint sets every field of the options, also those that are still to
// come, and wants another fingerprint each time: what a policy let in is verified
// again when anything about the policy has changed.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t).PublicPEM(t)
	roots := map[bool]*trust.TrustedRoot{}
	for other, json := range map[bool][]byte{false: trust.PublicTrustedRootJSON(), true: append(trust.PublicTrustedRootJSON(), '\n')} {
		root, err := trust.LoadTrustedRoot(json)
		if err != nil {
			t.Fatal(err)
		}
		roots[other] = root
	}
	seen := map[string]string{}
	note := func(name string, r trust.Requirement, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		fingerprint := r.Fingerprint().String()
		if earlier, ok := seen[fingerprint]; ok || fingerprint == "" {
			t.Errorf("%s has the fingerprint %q of %s", name, fingerprint, earlier)
		}
		seen[fingerprint] = name
	}
	plain, err := trust.RequireKey(key, trust.KeyOptions{})
	note("a key", plain, err)
	other, err := trust.RequireKey(trusttest.NewKey(t).PublicPEM(t), trust.KeyOptions{})
	note("another key", other, err)
	again, err := trust.RequireKey(key, trust.KeyOptions{})
	if err != nil || again.Fingerprint() != plain.Fingerprint() {
		t.Errorf("the same key twice: %s, %s, %v", again.Fingerprint(), plain.Fingerprint(), err)
	}
	base := trust.KeyOptions{Roots: roots[false]}
	r, err := trust.RequireKey(key, base)
	note("a key with a root", r, err)
	for name, opts := range variations(t, base, roots[true]) {
		r, err := trust.RequireKey(key, opts)
		note("key options, "+name, r, err)
	}
	id := trust.Identity{Issuer: trusttest.LabIssuer, Subject: trusttest.LabSubject}
	idBase := trust.IdentityOptions{Roots: roots[false]}
	r, err = trust.RequireIdentity(id, idBase)
	note("an identity", r, err)
	for name, opts := range variations(t, idBase, roots[true]) {
		r, err := trust.RequireIdentity(id, opts)
		note("identity options, "+name, r, err)
	}
	for name, varied := range variations(t, id, nil) {
		if varied.SubjectPattern != "" {
			varied.SubjectPattern, varied.Subject = "^https://x\\.example/y$", ""
		}
		r, err := trust.RequireIdentity(varied, idBase)
		note("identity, "+name, r, err)
	}
}

// variations gives a struct with one field changed, for each of its fields.
func variations[T any](t *testing.T, base T, root *trust.TrustedRoot) map[string]T {
	t.Helper()
	out := map[string]T{}
	for n := range reflect.TypeFor[T]().NumField() {
		varied := base
		field := reflect.ValueOf(&varied).Elem().Field(n)
		switch field.Kind() {
		case reflect.Bool:
			field.SetBool(true)
		case reflect.String:
			field.SetString(field.String() + "x")
		case reflect.Pointer:
			field.Set(reflect.ValueOf(root))
		default:
			t.Fatalf("%s: a field of kind %s", reflect.TypeFor[T]().Field(n).Name, field.Kind())
		}
		out[reflect.TypeFor[T]().Field(n).Name] = varied
	}
	return out
}
