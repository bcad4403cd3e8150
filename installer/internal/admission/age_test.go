package admission_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// TestAgeOfThreshold: with a threshold of two, both signatures must be old
// enough. By the earlier of them alone, one signer who signs ahead could make a
// plugin old that the other was brought to sign a minute ago.
func TestAgeOfThreshold(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	roots, err := trust.LoadTrustedRoot(lab.TrustedRoot())
	if err != nil {
		t.Fatal(err)
	}
	var signers []trust.Requirement
	var times []time.Time
	chain, about, found := twoRefs(t, lab, "keyless-bundle-moments")
	for _, ref := range []string{"3", "4"} {
		subject := "https://github.com/lab-org/lab-plugin/.github/workflows/release.yml@refs/tags/v1.2." + ref
		r, err := trust.RequireIdentity(trust.Identity{Issuer: trusttest.LabIssuer, Subject: subject}, trust.IdentityOptions{Roots: roots, UnsafeNoSCT: true})
		if err != nil {
			t.Fatal(err)
		}
		signed := slices.IndexFunc(found, func(found trust.Evidence) bool {
			v, err := r.Verify(t.Context(), about, found)
			if err == nil {
				times = append(times, v.Time())
			}
			return err == nil
		})
		if signed < 0 {
			t.Fatalf("no signature by %s", subject)
		}
		signers = append(signers, r)
	}
	const age = 72 * time.Hour
	first, second := times[0], times[1]
	if !first.Before(second) {
		t.Fatalf("the sample was signed at %s and %s", first, second)
	}
	for name, c := range map[string]struct {
		signers []trust.Requirement
		needed  int
		now     time.Time
		ok      bool
	}{
		"none is old":                        {signers, 1, first.Add(age - time.Second), false},
		"one is wanted, one is old":          {signers, 1, first.Add(age), true},
		"the young one is wanted":            {signers[1:], 1, second.Add(age - time.Second), false},
		"both are wanted, one is old":        {signers, 2, second.Add(age - time.Second), false},
		"both are wanted, both are old":      {signers, 2, second.Add(age), true},
		"a clock that is before the signing": {signers, 1, first.Add(-age), false},
	} {
		h, err := admission.Requirements{Signers: c.signers, Threshold: c.needed, MinimumAge: age}.Evaluate(version.Version{}, chain)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, piece := range found {
			h.Add(t.Context(), about, piece)
		}
		a, err := h.Decide(c.now)
		if c.ok != (err == nil) || c.ok != (a.Check() == nil) {
			t.Errorf("%s: %v; want accepted = %v", name, err, c.ok)
		}
		if err != nil && (!errors.Is(err, admission.ErrRefused) || !strings.Contains(err.Error(), "ago")) {
			t.Errorf("%s: %v; want it refused, and how long ago", name, err)
		}
		for _, v := range a.Verified() {
			if c.now.Sub(v.Time()) < age {
				t.Errorf("%s: what was signed at %s decided", name, v.Time())
			}
		}
	}
}

// TestAgeNeedsProof: a bare key proves no time, and what a signer writes about
// the date proves nothing; a key with a log does.
func TestAgeNeedsProof(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	roots, err := trust.LoadTrustedRoot(lab.TrustedRoot())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		opts trust.KeyOptions
		want string
	}{
		"bare key":           {trust.KeyOptions{}, "give the key a trusted-root"},
		"key with a root":    {trust.KeyOptions{Roots: roots}, ""},
		"key and log wanted": {trust.KeyOptions{Roots: roots, RequireLog: true}, ""},
	} {
		key, err := trust.RequireKey(lab.PublicKey(false), c.opts)
		if err != nil {
			t.Fatal(err)
		}
		err = admission.Requirements{Signers: []trust.Requirement{key}, MinimumAge: time.Hour}.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}
