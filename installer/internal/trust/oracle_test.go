package trust

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/opencontainers/go-digest"
	"github.com/sigstore/cosign/v2/pkg/cosign"
	cosignbundle "github.com/sigstore/cosign/v2/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v2/pkg/oci/static"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// The oracle judges evidence with cosign and sigstore-go, which this package does
// not link.

// TestMain silences cosign, which prints what it does not like.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// keyed is trust material that knows one key, whatever its name.
type keyed struct {
	root.TrustedMaterial
	key root.TimeConstrainedVerifier
}

// PublicKeyVerifier implements root.TrustedMaterial.
func (m keyed) PublicKeyVerifier(string) (root.TimeConstrainedVerifier, error) { return m.key, nil }

func (r Requirement) oracle(ctx context.Context, subject digest.Digest, ev Evidence) error {
	var refusals []error
	for _, p := range r.proofs() {
		err := guard(func() error {
			if ev.Format == FormatBundle {
				return r.sigstoreGo(subject, ev, p)
			}
			return r.cosign(ctx, subject, ev, p)
		})
		if err == nil {
			return nil
		}
		refusals = append(refusals, err)
	}
	return errors.Join(refusals...)
}

func (r Requirement) sigstoreGo(subject digest.Digest, ev Evidence, p proof) error {
	var b bundle.Bundle
	if err := b.UnmarshalJSON(ev.Payload); err != nil {
		return err
	}
	var opts []verify.VerifierOption
	if p.log {
		opts = append(opts, verify.WithTransparencyLog(1))
	}
	switch {
	case p.timestamp:
		opts = append(opts, verify.WithSignedTimestamps(1))
	case r.identity != nil:
		opts = append(opts, verify.WithObserverTimestamps(1))
	default:
		opts = append(opts, verify.WithNoObserverTimestamps())
	}
	if r.identity != nil && !r.identity.UnsafeNoSCT {
		opts = append(opts, verify.WithSignedCertificateTimestamps(1))
	}
	material, who := r.material(), verify.WithKey()
	if r.key != nil {
		material = keyed{material, root.NewExpiringKey(r.key.verifier, time.Time{}, time.Time{})}
	} else {
		id, err := verify.NewShortCertificateIdentity(r.identity.identity.Issuer, "", r.identity.identity.Subject, "")
		if err != nil {
			return err
		}
		who = verify.WithCertificateIdentity(id)
	}
	verifier, err := verify.NewVerifier(material, opts...)
	if err != nil {
		return err
	}
	sum, err := hex.DecodeString(subject.Encoded())
	if err != nil {
		return err
	}
	_, err = verifier.Verify(&b, verify.NewPolicy(verify.WithArtifactDigest("sha256", sum), who))
	return err
}

func (r Requirement) cosign(ctx context.Context, subject digest.Digest, ev Evidence, p proof) error {
	var opts []static.Option
	if cert := ev.Annotations[artifact.AnnotationCertificate]; cert != "" && (r.identity != nil || p.log) {
		block, _ := pem.Decode([]byte(cert))
		opts = append(opts, static.WithCertChain(pem.EncodeToMemory(block), nil))
	}
	if text := ev.Annotations[artifact.AnnotationLogEntry]; text != "" {
		var entry *cosignbundle.RekorBundle
		if err := json.Unmarshal([]byte(text), &entry); err != nil {
			return err
		}
		opts = append(opts, static.WithBundle(entry))
	}
	if text := ev.Annotations[artifact.AnnotationTimestamp]; text != "" {
		var stamp *cosignbundle.RFC3161Timestamp
		if err := json.Unmarshal([]byte(text), &stamp); err != nil {
			return err
		}
		opts = append(opts, static.WithRFC3161Timestamp(stamp))
	}
	sig, err := static.NewSignature(ev.Payload, ev.Annotations[artifact.AnnotationSignature], opts...)
	check, claim := cosign.VerifyImageSignature, cosign.SimpleClaimVerifier
	if ev.Format == FormatDSSE {
		sig, err = static.NewAttestation(ev.Payload, opts...)
		check, claim = cosign.VerifyBlobAttestation, cosign.IntotoSubjectClaimVerifier
	}
	if err != nil {
		return err
	}
	co := &cosign.CheckOpts{
		TrustedMaterial: r.material(), Offline: true, IgnoreSCT: true, ClaimVerifier: claim,
		IgnoreTlog: !p.log, UseSignedTimestamps: p.timestamp,
	}
	if r.key != nil {
		co.SigVerifier = r.key.verifier
	} else {
		co.Identities = []cosign.Identity{{Issuer: r.identity.identity.Issuer, Subject: r.identity.identity.Subject}}
	}
	if p.timestamp {
		// cosign takes the first of no timestamps, too.
		if stamp, err := sig.RFC3161Timestamp(); err != nil || stamp == nil {
			return fmt.Errorf("no timestamp (%w)", err)
		}
	}
	hash, err := v1.NewHash(subject.String())
	if err != nil {
		return err
	}
	_, err = check(ctx, sig, hash, co)
	return err
}

func labRequirements(tb testing.TB, lab *trusttest.LabSamples) map[string]Requirement {
	tb.Helper()
	roots, err := LoadTrustedRoot(lab.TrustedRoot())
	if err != nil {
		tb.Fatal(err)
	}
	all := map[string]Requirement{}
	for name, o := range map[string]KeyOptions{"key": {}, "key, log": {Roots: roots, RequireLog: true}, "key, stamp": {Roots: roots, RequireTimestamp: true}} {
		if all[name], err = RequireKey(lab.PublicKey(false), o); err != nil {
			tb.Fatal(err)
		}
	}
	id := Identity{Issuer: trusttest.LabIssuer, Subject: trusttest.LabSubject}
	for name, o := range map[string]IdentityOptions{"id": {}, "id, stamp": {TimestampSuffices: true}} {
		o.Roots, o.UnsafeNoSCT = roots, true
		if all[name], err = RequireIdentity(id, o); err != nil {
			tb.Fatal(err)
		}
	}
	return all
}

// piece is one piece of evidence of the fixture.
type piece struct {
	name  string
	index digest.Digest
	ev    Evidence
}

func pieces(tb testing.TB, lab *trusttest.LabSamples) []piece {
	tb.Helper()
	var all []piece
	for _, s := range lab.Samples() {
		for i, l := range lab.Evidence(tb, s.Index) {
			format, ok := FormatOf(l.MediaType)
			if ok {
				all = append(all, piece{fmt.Sprintf("%s[%d]", s.Name, i), s.Index, Evidence{Format: format, Payload: l.Payload, Annotations: l.Annotations}})
			}
		}
	}
	return all
}

// TestOracle: every piece of the fixture has the verdict of cosign and sigstore-go.
func TestOracle(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	all := pieces(t, lab)
	agreed := map[bool]int{}
	for name, r := range labRequirements(t, lab) {
		for _, p := range all {
			_, ours := r.Verify(t.Context(), p.index, p.ev)
			theirs := r.oracle(t.Context(), p.index, p.ev)
			if (ours == nil) != (theirs == nil) {
				t.Errorf("%s under %q: ours %v\n\ttheirs %v", p.name, name, ours, theirs)
				continue
			}
			agreed[ours == nil]++
		}
	}
	if agreed[true] < 50 || agreed[false] < 200 {
		t.Errorf("accepted by both: %d, refused by both: %d: the fixture is too small to tell", agreed[true], agreed[false])
	}
}

// BenchmarkVerify has the cost of one verification of each form, beside that of
// sigstore-go or, for the older form, of cosign's library.
func BenchmarkVerify(b *testing.B) {
	lab := trusttest.Lab(b)
	all := labRequirements(b, lab)
	requirements := map[string]string{
		"key-legacy[0]": "key", "key-bundle[0]": "key", "key-bundle-rekor1[0]": "key, log",
		"keyless-legacy-rekor1[0]": "id", "keyless-bundle-rekor1[0]": "id", "keyless-bundle-rekor2[0]": "id",
	}
	for _, p := range pieces(b, lab) {
		r, ok := all[requirements[p.name]]
		if !ok {
			continue
		}
		name := strings.TrimSuffix(p.name, "[0]")
		b.Run(name+"/ours", func(b *testing.B) {
			for b.Loop() {
				if _, err := r.Verify(b.Context(), p.index, p.ev); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/peer", func(b *testing.B) {
			for b.Loop() {
				if err := r.oracle(b.Context(), p.index, p.ev); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestOracleAltered alters every field of accepted evidence in several ways, and
// puts that of other evidence in its place: the verdict is the same as that of cosign
// and sigstore-go.
func TestOracleAltered(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	requirements := labRequirements(t, lab)
	donors := map[Format][]piece{}
	for _, p := range pieces(t, lab) {
		donors[p.ev.Format] = append(donors[p.ev.Format], p)
	}
	samples := []struct{ name, requirement string }{
		{"key-legacy[0]", "key"},
		{"key-legacy-rekor1[0]", "key, log"},
		{"key-bundle[0]", "key"},
		{"key-bundle-rekor1[0]", "key, log"},
		{"key-att-legacy[0]", "key"},
		{"ours-key-rekor2-tsa[0]", "key, stamp"},
		{"keyless-legacy-rekor1-tsa[0]", "id, stamp"},
		{"keyless-att-legacy-rekor1[0]", "id"},
		{"keyless-bundle-rekor1-tsa[0]", "id, stamp"},
		{"keyless-bundle-rekor2[0]", "id"},
		{"keyless-att-bundle-rekor1[0]", "id"},
		{"keyless-bundle-tsa[0]", "id, stamp"},
	}
	for _, sample := range samples {
		t.Run(sample.name, func(t *testing.T) {
			t.Parallel()
			all := slices.Concat(donors[FormatBundle], donors[FormatDSSE], donors[FormatSimpleSigning])
			at := slices.IndexFunc(all, func(p piece) bool { return p.name == sample.name })
			if at < 0 {
				t.Fatal("not in the fixture")
			}
			p, r := all[at], requirements[sample.requirement]
			if _, err := r.Verify(t.Context(), p.index, p.ev); err != nil {
				t.Fatal(err)
			}
			tried := 0
			for what, ev := range alterations(t, p, donors[p.ev.Format]) {
				tried++
				_, ours := r.Verify(t.Context(), p.index, ev)
				theirs := r.oracle(t.Context(), p.index, ev)
				// They skip a malformed proof that the verdict does not need.
				if (ours == nil) != (theirs == nil) && !errors.Is(ours, ErrMalformed) {
					t.Errorf("%s: ours %v\n\ttheirs %v", what, ours, theirs)
				}
			}
			if tried < 10 {
				t.Errorf("%d alterations", tried)
			}
		})
	}
}
