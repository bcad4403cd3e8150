package trust

import (
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/transparency-dev/merkle/rfc6962"
)

// attack is one way to make evidence that is right but for one thing.
type attack struct {
	at       step
	alter    func(*recipe)
	instance func(*instance) // before anything is made
	accepted bool
	spec     bool // in-toto wants it accepted, sigstore-go refuses it
	stamp    bool // a timestamp suffices
}

// edited replaces text of the body that the log has signed for.
func (r *recipe) editBody(old, new string) {
	r.tb.Helper()
	text, err := json.Marshal(r.body)
	if err != nil {
		r.tb.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		r.tb.Fatalf("no %q in %s", old, text)
	}
	r.body = nil
	if err := json.Unmarshal([]byte(strings.Replace(string(text), old, new, 1)), &r.body); err != nil {
		r.tb.Fatal(err)
	}
}

func certificateAttacks(stranger func(*recipe) key) map[string]attack {
	return map[string]attack{
		"as it is":                    {accepted: true},
		"issuer in the old extension": {at: beforeCertificate, accepted: true, alter: func(r *recipe) { r.template.ExtraExtensions = []pkix.Extension{oldIssuer(instanceIssuer)} }},
		"old extension names another issuer": {at: beforeCertificate, alter: func(r *recipe) {
			r.template.ExtraExtensions = append(r.template.ExtraExtensions, oldIssuer("https://x.example"))
		}},
		"old extension alone is right": {at: beforeCertificate, alter: func(r *recipe) {
			r.template.ExtraExtensions = []pkix.Extension{oldIssuer(instanceIssuer), extension(r.tb, 8, "https://x.example")}
		}},
		"no issuer": {at: beforeCertificate, alter: func(r *recipe) { r.template.ExtraExtensions = nil }},
		"subject second": {at: beforeCertificate, alter: func(r *recipe) {
			r.template.URIs = append([]*url.URL{{Scheme: "https", Host: "x.example"}}, r.template.URIs...)
		}},
		"subject as an address":    {at: beforeCertificate, accepted: true, alter: func(r *recipe) { r.template.URIs, r.template.EmailAddresses = nil, []string{instanceSubject} }},
		"subject as a host":        {at: beforeCertificate, alter: func(r *recipe) { r.template.URIs, r.template.DNSNames = nil, []string{"forge.example"} }},
		"subject as a common name": {at: beforeCertificate, alter: func(r *recipe) { r.template.URIs, r.template.Subject = nil, pkix.Name{CommonName: instanceSubject} }},
		"for servers":              {at: beforeCertificate, alter: func(r *recipe) { r.template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }},
		"for timestamps":           {at: beforeCertificate, alter: func(r *recipe) { r.template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping} }},
		"a small curve":            {at: beforeCertificate, alter: func(r *recipe) { r.signer = newKey(r.tb, elliptic.P224()) }},
		"an unknown critical extension": {at: beforeCertificate, alter: func(r *recipe) {
			r.template.ExtraExtensions = append(r.template.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Critical: true, Value: []byte{5, 0}})
		}},
		"issued by another key": {at: beforeCertificate, alter: func(r *recipe) {
			r.issuerKey = stranger(r)
			r.parent = r.authority("intermediate", nil, r.issuerKey, r.issuerKey)
			r.promised = r.parent
		}},
		"issued by a leaf": {at: beforeCertificate, alter: issuedByLeaf},
		"after its authority's": {at: beforeCertificate, alter: func(r *recipe) {
			r.template.NotBefore = r.now.Add(30 * time.Hour)
			r.template.NotAfter = r.now.Add(31 * time.Hour)
			r.taken = r.now.Add(30 * time.Hour).Add(time.Minute)
		}},
		"authority not trusted yet":            {instance: func(i *instance) { i.authorityStart = i.now.Add(time.Hour) }},
		"authority no longer trusted":          {instance: func(i *instance) { i.authorityUntil = i.now.Add(-time.Hour) }},
		"authority ends before the time":       {at: beforeSignature, instance: func(i *instance) { i.authorityUntil = i.now.Add(time.Minute) }, alter: func(r *recipe) { r.taken = r.now.Add(2 * time.Minute) }},
		"chain in a bundle without one":        {at: beforeBundle, alter: func(r *recipe) { r.certificateKind = "chain" }},
		"no promise":                           {at: beforeSignature, alter: func(r *recipe) { r.leaf = r.issue(r.template, r.parent, r.signer, r.issuerKey) }},
		"promise by a stranger":                {at: beforeCertificate, alter: func(r *recipe) { r.promiseKey = stranger(r) }},
		"promise by a stranger under its name": {at: beforePromise, alter: func(r *recipe) { r.promiseKey = stranger(r) }},
		"promise about another issuer":         {at: beforePromise, alter: func(r *recipe) { r.promised = r.top }},
		"promise about another certificate":    {at: beforeSignature, alter: func(r *recipe) { r.template.SerialNumber.SetInt64(8); r.leaf = r.withPromise(&r.promise) }},
		"promise of another time":              {at: beforeSignature, alter: func(r *recipe) { r.promise.Timestamp++; r.leaf = r.withPromise(&r.promise) }},
		"promise before the log's key":         {at: beforePromise, alter: func(r *recipe) { r.promise.Timestamp -= uint64((48 * time.Hour).Milliseconds()) }},
		"promise after the log's key":          {instance: func(i *instance) { i.promisesEnd = i.now.Add(-time.Hour) }},
		"a wrong promise before a right one":   {at: beforeSignature, accepted: true, alter: func(r *recipe) { wrong := r.promise; wrong.Timestamp++; r.leaf = r.withPromise(&wrong, &r.promise) }},
	}
}

func oldIssuer(issuer string) pkix.Extension {
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(issuer)}
}

// issuedByLeaf lets the owner of a certificate for code issue another one.
func issuedByLeaf(r *recipe) {
	own := newKey(r.tb, elliptic.P256())
	r.parent = r.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "leaf"}, NotBefore: r.template.NotBefore, NotAfter: r.template.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: r.template.ExtKeyUsage,
	}, r.fulcio, own, r.fulcioKey)
	r.issuerKey, r.promised, r.certificateKind = own, r.parent, "certificate"
}

func logAttacks(stranger func(*recipe) key) map[string]attack {
	entry := func(alter func(*recipe)) attack { return attack{at: beforeStamp, alter: alter} }
	body := func(alter func(*recipe)) attack { return attack{at: beforeEntry, alter: alter} }
	checkpoint := func(make func(*recipe, []byte) string) attack {
		return entry(func(r *recipe) {
			root := treeRoot(r)
			r.set("inclusionProof", map[string]any{"checkpoint": map[string]any{"envelope": make(r, root)}})
		})
	}
	other := []byte(`{"apiVersion":"0.0.1","kind":"dsse","spec":{}}`)
	return map[string]attack{
		"no entry":      {at: beforeBundle, alter: func(r *recipe) { r.withEntry = false }},
		"proof alone":   entry(func(r *recipe) { delete(r.entry, "inclusionPromise") }), // no time
		"promise alone": entry(func(r *recipe) { delete(r.entry, "inclusionProof") }),   // not in this version
		"promise over other body": entry(func(r *recipe) {
			r.set("inclusionPromise", map[string]any{"signedEntryTimestamp": encoded(r.entryPromise(other, r.taken, 1001))})
		}),
		"promise of other time": entry(func(r *recipe) {
			r.set("inclusionPromise", map[string]any{"signedEntryTimestamp": encoded(r.entryPromise(bodyOf(r), r.taken.Add(1e9), 1001))})
		}),
		"promise of other index": entry(func(r *recipe) {
			r.set("inclusionPromise", map[string]any{"signedEntryTimestamp": encoded(r.entryPromise(bodyOf(r), r.taken, 1))})
		}),
		"promise by a stranger": entry(func(r *recipe) {
			r.set("inclusionPromise", map[string]any{"signedEntryTimestamp": encoded(stranger(r).sign(r.tb, bodyOf(r)))})
		}),
		"a later time":           entry(func(r *recipe) { r.entry["integratedTime"] = fmt.Sprint(r.taken.Unix() + 1) }),
		"an unknown log":         entry(func(r *recipe) { id := stranger(r).id(); r.entry["logId"] = map[string]any{"keyId": encoded(id[:])} }),
		"proof of another index": entry(func(r *recipe) { r.set("inclusionProof", map[string]any{"logIndex": "0"}) }),
		"proof of another size":  entry(func(r *recipe) { r.set("inclusionProof", map[string]any{"treeSize": "4"}) }),
		"proof of another root":  entry(func(r *recipe) { r.set("inclusionProof", map[string]any{"rootHash": encoded(r.leaves[0])}) }),
		"proof without hashes":   entry(func(r *recipe) { r.set("inclusionProof", map[string]any{"hashes": []any{}}) }),
		"hashes in another order": entry(func(r *recipe) {
			r.set("inclusionProof", map[string]any{"hashes": []any{encoded(r.leaves[1]), encoded(r.leaves[0])}})
		}),
		"one hash more": entry(func(r *recipe) {
			r.set("inclusionProof", map[string]any{"hashes": []any{encoded(r.leaves[0]), encoded(r.leaves[1]), encoded(r.leaves[1])}})
		}),
		"proof of another entry": entry(func(r *recipe) { r.entry["canonicalizedBody"] = encoded(other); delete(r.entry, "inclusionPromise") }),
		"tree of one": checkpoint(func(r *recipe, _ []byte) string {
			return r.checkpoint(r.log, r.log, 1, rfc6962.DefaultHasher.HashLeaf(bodyOf(r)))
		}),
		"checkpoint of other size":  checkpoint(func(r *recipe, root []byte) string { return r.checkpoint(r.log, r.log, 2, root) }),
		"checkpoint of other root":  checkpoint(func(r *recipe, _ []byte) string { return r.checkpoint(r.log, r.log, 3, r.leaves[0]) }),
		"checkpoint by a stranger":  checkpoint(func(r *recipe, root []byte) string { k := stranger(r); return r.checkpoint(k, k, 3, root) }),
		"checkpoint under its name": checkpoint(func(r *recipe, root []byte) string { return r.checkpoint(stranger(r), r.log, 3, root) }),
		"checkpoint unsigned": checkpoint(func(r *recipe, root []byte) string {
			text, _, _ := strings.Cut(r.checkpoint(r.log, r.log, 3, root), "\u2014")
			return text
		}),
		"checkpoint edited": checkpoint(func(r *recipe, root []byte) string {
			return strings.Replace(r.checkpoint(r.log, r.log, 3, root), " - 77", " - 78", 1)
		}),
		"before the certificate":  {at: beforeSignature, alter: func(r *recipe) { r.taken = r.now.Add(-time.Hour) }},
		"after the certificate":   {at: beforeSignature, alter: func(r *recipe) { r.taken = r.now.Add(time.Hour) }},
		"the log's key ended":     {instance: func(i *instance) { i.logEnd = i.now.Add(-time.Hour) }},
		"about another signature": body(func(r *recipe) { r.editBody(encoded(r.sig), encoded(r.signer.sign(r.tb, r.payload))) }),
		"about another payload": body(func(r *recipe) {
			r.editBody(fmt.Sprintf("%x\"}", digestOf(r.payload)), fmt.Sprintf("%x\"}", digestOf(nil)))
			r.editBody(fmt.Sprintf("%x\"}", digestOf(r.payload)), fmt.Sprintf("%x\"}", digestOf(nil)))
		}),
		"about another certificate": body(func(r *recipe) {
			r.editBody(encoded(certificatePEM(r.leaf)), encoded(certificatePEM(r.issue(r.template, r.parent, r.signer, r.issuerKey))))
		}),
		"of another kind":    body(func(r *recipe) { r.editBody(`"dsse"`, `"intoto"`) }),
		"of a later version": body(func(r *recipe) { r.editBody(`"0.0.1"`, `"0.0.2"`) }),
		"two signatures":     body(func(r *recipe) { r.editBody(`"signatures":[`, `"signatures":[{"signature":"AAAA","verifier":"AAAA"},`) }),
		"entry of a later log": body(func(r *recipe) {
			r.body = map[string]any{"apiVersion": "0.0.2", "kind": "hashedrekord", "spec": map[string]any{"hashedRekordV002": map[string]any{}}}
		}),
	}
}

func bodyOf(r *recipe) []byte {
	text, err := json.Marshal(r.body)
	if err != nil {
		r.tb.Fatal(err)
	}
	return text
}

func treeRoot(r *recipe) []byte {
	h := rfc6962.DefaultHasher
	return h.HashChildren(h.HashChildren(r.leaves[0], h.HashLeaf(bodyOf(r))), r.leaves[1])
}

func stampAttacks(stranger func(*recipe) key) map[string]attack {
	stamp := func(alter func(*recipe)) attack {
		return attack{at: beforeStamp, stamp: true, alter: func(r *recipe) {
			r.withEntry, r.withStamp = false, true
			alter(r)
		}}
	}
	leaf := func(alter func(*x509.Certificate)) attack {
		return stamp(func(r *recipe) {
			template := r.stampLeaf()
			alter(template)
			r.stampCert = r.issue(template, r.top, r.stampsKey, r.topKey)
		})
	}
	good := stamp(func(*recipe) {})
	good.accepted = true
	return map[string]attack{
		"a timestamp":                 good,
		"a timestamp where a log is":  {at: beforeStamp, alter: good.alter},
		"timestamp over the payload":  stamp(func(r *recipe) { r.stamped = r.payload }),
		"timestamp before":            stamp(func(r *recipe) { r.stampTime = r.now.Add(-time.Hour) }),
		"timestamp after":             stamp(func(r *recipe) { r.stampTime = r.now.Add(time.Hour) }),
		"timestamp by a stranger":     stamp(func(r *recipe) { r.stampKey = stranger(r) }),
		"timestamp by another of its": leaf(func(*x509.Certificate) {}),
		"timestamp for code": leaf(func(c *x509.Certificate) {
			c.ExtraExtensions, c.ExtKeyUsage = nil, []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
		}),
		"timestamp by an authority":       leaf(func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }),
		"timestamp by the signer himself": stamp(func(r *recipe) { r.stampCert, r.stampKey = r.leaf, r.signer }),
	}
}

// documents are attacks on what is signed.
func documentAttacks() map[string]attack {
	signed := func(accepted bool, edit func(string) string) attack {
		return attack{at: beforeSignature - 1, accepted: accepted, alter: func(r *recipe) { r.payload = []byte(edit(string(r.payload))) }}
	}
	// "Consumers MUST ignore unrecognized fields":
	// https://github.com/in-toto/attestation/blob/main/spec/v1/README.md
	ignored := func(edit func(string) string) attack {
		a := signed(true, edit)
		a.spec = true
		return a
	}
	return map[string]attack{
		"another payload type":         {at: beforeCertificate, alter: func(r *recipe) { r.payloadType = "text/plain" }},
		"payload type changed":         {at: beforeBundle, alter: func(r *recipe) { r.payloadType = "application/vnd.in-toto+json " }},
		"payload changed":              {at: beforeBundle, alter: func(r *recipe) { r.payload = append(r.payload, '\n') }},
		"subject twice":                signed(false, func(s string) string { return strings.Replace(s, `"subject":`, `"subject":[],"subject":`, 1) }),
		"subject in capitals":          signed(false, func(s string) string { return strings.Replace(s, `"subject":`, `"Subject":`, 1) }),
		"a digest twice":               signed(false, func(s string) string { return strings.Replace(s, `{"sha256":`, `{"sha256":"00","sha256":`, 1) }),
		"digest in capitals":           signed(false, func(s string) string { return strings.Replace(s, `"sha256":`, `"SHA256":`, 1) }),
		"an unknown field":             ignored(func(s string) string { return strings.Replace(s, `"subject":`, `"subjects":[],"subject":`, 1) }),
		"statement of an unknown type": signed(false, func(s string) string { return strings.Replace(s, `Statement/v1`, `Statement/v2`, 1) }),
		"text after the statement":     signed(false, func(s string) string { return s + "{}" }),
	}
}

// TestAttacksOnAnInstance makes evidence that is right but for one thing, each
// proof of which is signed by the key that it needs, and asks sigstore-go, too:
// what that refuses is refused.
func TestAttacksOnAnInstance(t *testing.T) {
	t.Parallel()
	d := digest.FromString("plugin")
	stranger := func(r *recipe) key { return newKey(r.tb, elliptic.P256()) }
	for of, attacks := range map[string]map[string]attack{
		"certificate": certificateAttacks(stranger), "log": logAttacks(stranger), "timestamp": stampAttacks(stranger), "document": documentAttacks(),
	} {
		for name, a := range attacks {
			t.Run(of+"/"+name, func(t *testing.T) {
				t.Parallel()
				i := newInstance(t)
				if a.instance != nil {
					a.instance(i)
				}
				ev := i.cook(d, a.at, a.alter)
				r, err := RequireIdentity(Identity{Issuer: instanceIssuer, Subject: instanceSubject}, IdentityOptions{Roots: i.roots(), TimestampSuffices: a.stamp})
				if err != nil {
					t.Fatal(err)
				}
				v, ours := r.Verify(t.Context(), d, ev)
				theirs := r.oracle(t.Context(), d, ev)
				if (ours == nil) != a.accepted || ours == nil && v.Subject() != d {
					t.Errorf("accepted %v, want %v: %v", ours == nil, a.accepted, ours)
				}
				if ours == nil && theirs != nil && !a.spec {
					t.Errorf("sigstore-go refuses it: %v", theirs)
				}
				if a.accepted && (theirs == nil) == a.spec {
					t.Errorf("the recipe is wrong: %v", theirs)
				}
				t.Logf("ours: %v\ntheirs: %v", ours, theirs)
			})
		}
	}
}
