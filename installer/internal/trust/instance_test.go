package trust

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	ct "github.com/google/certificate-transparency-go"
	cttls "github.com/google/certificate-transparency-go/tls"
	ctx509 "github.com/google/certificate-transparency-go/x509"
	"github.com/google/certificate-transparency-go/x509util"
	"github.com/opencontainers/go-digest"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/transparency-dev/merkle/rfc6962"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// Who signs in an instance, and when.
const (
	instanceIssuer  = "https://issuer.example"
	instanceSubject = "https://forge.example/team/plugin/release.yml@refs/tags/v1"
)

// key is a key pair with its public half in DER form.
type key struct {
	*ecdsa.PrivateKey
	der []byte
}

func newKey(tb testing.TB, curve elliptic.Curve) key {
	tb.Helper()
	k, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		tb.Fatal(err)
	}
	return key{k, der}
}

func (k key) id() [sha256.Size]byte { return sha256.Sum256(k.der) }

func (k key) sign(tb testing.TB, message []byte) []byte {
	tb.Helper()
	sum := sha256.Sum256(message)
	sig, err := ecdsa.SignASN1(rand.Reader, k.PrivateKey, sum[:])
	if err != nil {
		tb.Fatal(err)
	}
	return sig
}

func encoded(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

// instance is a whole sigstore instance, all of whose keys are at hand: what it
// signs can be wrong in every way.
type instance struct {
	tb                             testing.TB
	now                            time.Time
	top, fulcio, stamps            *x509.Certificate
	topKey, fulcioKey, stampsKey   key
	promises, log                  key
	start, promisesEnd, logEnd     time.Time
	authorityStart, authorityUntil time.Time
}

func newInstance(tb testing.TB) *instance {
	tb.Helper()
	i := &instance{tb: tb, now: time.Now().Truncate(time.Second)}
	i.start = i.now.Add(-24 * time.Hour)
	i.authorityStart = i.start
	for _, k := range []*key{&i.topKey, &i.fulcioKey, &i.stampsKey, &i.promises, &i.log} {
		*k = newKey(tb, elliptic.P256())
	}
	i.top = i.authority("root", nil, i.topKey, i.topKey)
	i.fulcio = i.authority("intermediate", i.top, i.fulcioKey, i.topKey)
	i.stamps = i.issue(i.stampLeaf(), i.top, i.stampsKey, i.topKey)
	return i
}

func (i *instance) authority(name string, parent *x509.Certificate, own, by key) *x509.Certificate {
	return i.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: i.start, NotAfter: i.now.Add(24 * time.Hour),
	}, parent, own, by)
}

// stampLeaf is the certificate of the timestamp authority before it is issued.
func (i *instance) stampLeaf() *x509.Certificate {
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}})
	if err != nil {
		i.tb.Fatal(err)
	}
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: "timestamps"}, NotBefore: i.start, NotAfter: i.now.Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}},
	}
}

func (i *instance) issue(template, parent *x509.Certificate, own, by key) *x509.Certificate {
	i.tb.Helper()
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(time.Now().UnixNano())
	}
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, own.Public(), by.PrivateKey)
	if err != nil {
		i.tb.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		i.tb.Fatal(err)
	}
	return c
}

// roots is the trusted root of the instance.
func (i *instance) roots() *TrustedRoot {
	i.tb.Helper()
	log := func(k key, end time.Time) map[string]*root.TransparencyLog {
		id := k.id()
		return map[string]*root.TransparencyLog{hex.EncodeToString(id[:]): {
			BaseURL: "https://log.example", ID: id[:], PublicKey: k.Public(), HashFunc: crypto.SHA256, SignatureHashFunc: crypto.SHA256,
			ValidityPeriodStart: i.start, ValidityPeriodEnd: end,
		}}
	}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01,
		[]root.CertificateAuthority{&root.FulcioCertificateAuthority{
			Root: i.top, Intermediates: []*x509.Certificate{i.fulcio}, URI: "https://fulcio.example",
			ValidityPeriodStart: i.authorityStart, ValidityPeriodEnd: i.authorityUntil,
		}}, log(i.promises, i.promisesEnd),
		[]root.TimestampingAuthority{&root.SigstoreTimestampingAuthority{
			Root: i.top, Leaf: i.stamps, ValidityPeriodStart: i.start, URI: "https://tsa.example",
		}}, log(i.log, i.logEnd))
	if err != nil {
		i.tb.Fatal(err)
	}
	text, err := trusted.MarshalJSON()
	if err != nil {
		i.tb.Fatal(err)
	}
	roots, err := LoadTrustedRoot(text)
	if err != nil {
		i.tb.Fatal(err)
	}
	return roots
}

// recipe is how one signature is made. Each field can be altered before the next
// step uses it.
type recipe struct {
	*instance
	signer               key
	payload              []byte
	payloadType          string
	template, parent     *x509.Certificate
	issuerKey            key
	promise              ct.SignedCertificateTimestamp
	promiseKey           key
	promised             *x509.Certificate // whose issuer the promise is about
	leaf                 *x509.Certificate
	sig                  []byte
	body                 map[string]any // of the log entry
	taken                time.Time      // by the log
	leaves               [][]byte       // hashes of the other entries of the log
	entry                map[string]any
	stampTime            time.Time
	stamped              []byte
	stampCert            *x509.Certificate
	stampKey             key
	certificateKind      string
	withStamp, withEntry bool
}

// step is a point between two steps of a recipe.
type step int

const (
	beforeCertificate step = iota
	beforePromise
	beforeSignature
	beforeEntry
	beforeStamp
	beforeBundle
)

func extension(tb testing.TB, n int, value string) pkix.Extension {
	tb.Helper()
	text, err := asn1.MarshalWithParams(value, "utf8")
	if err != nil {
		tb.Fatal(err)
	}
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, n}, Value: text}
}

// cook makes evidence about the digest, altered at one point.
func (i *instance) cook(d digest.Digest, at step, alter func(*recipe)) Evidence {
	i.tb.Helper()
	name, err := url.Parse(instanceSubject)
	if err != nil {
		i.tb.Fatal(err)
	}
	r := &recipe{
		instance: i, signer: newKey(i.tb, elliptic.P256()), payloadType: "application/vnd.in-toto+json", certificateKind: "certificate",
		payload: trusttest.Statement(d, trusttest.PredicateSignature, "{}"), parent: i.fulcio, issuerKey: i.fulcioKey,
		promiseKey: i.promises, promised: i.fulcio, taken: i.now, stampTime: i.now, stampCert: i.stamps, stampKey: i.stampsKey, withEntry: true,
		template: &x509.Certificate{
			SerialNumber: big.NewInt(7), NotBefore: i.now.Add(-time.Minute), NotAfter: i.now.Add(10 * time.Minute), URIs: []*url.URL{name},
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
			ExtraExtensions: []pkix.Extension{extension(i.tb, 8, instanceIssuer)},
		},
	}
	for n, do := range []func(){r.nothing, r.prepareLeaf, r.certify, r.sign, r.enter, r.nothing} {
		do()
		if step(n) == at && alter != nil {
			alter(r)
		}
	}
	return r.bundle()
}

func (r *recipe) nothing() {}

// prepareLeaf makes the certificate without a promise, which promises are about.
func (r *recipe) prepareLeaf() {
	id := r.promiseKey.id()
	r.promise = ct.SignedCertificateTimestamp{SCTVersion: ct.V1, LogID: ct.LogID{KeyID: id}, Timestamp: uint64(r.now.UnixMilli())}
}

func (r *recipe) withPromise(scts ...*ct.SignedCertificateTimestamp) *x509.Certificate {
	r.tb.Helper()
	list, err := x509util.MarshalSCTsIntoSCTList(scts)
	if err != nil {
		r.tb.Fatal(err)
	}
	raw, err := cttls.Marshal(*list)
	if err != nil {
		r.tb.Fatal(err)
	}
	value, err := asn1.Marshal(raw)
	if err != nil {
		r.tb.Fatal(err)
	}
	template := *r.template
	template.ExtraExtensions = append(slices.Clip(template.ExtraExtensions),
		pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: value})
	return r.issue(&template, r.parent, r.signer, r.issuerKey)
}

func (r *recipe) certify() {
	r.tb.Helper()
	draft, err := ctx509.ParseCertificate(r.withPromise(&r.promise).Raw)
	if err != nil {
		r.tb.Fatal(err)
	}
	issuer, err := ctx509.ParseCertificate(r.promised.Raw)
	if err != nil {
		r.tb.Fatal(err)
	}
	listed, err := ct.MerkleTreeLeafForEmbeddedSCT([]*ctx509.Certificate{draft, issuer}, r.promise.Timestamp)
	if err != nil {
		r.tb.Fatal(err)
	}
	data, err := ct.SerializeSCTSignatureInput(r.promise, ct.LogEntry{Leaf: *listed})
	if err != nil {
		r.tb.Fatal(err)
	}
	signed, err := cttls.CreateSignature(*r.promiseKey.PrivateKey, cttls.SHA256, data)
	if err != nil {
		r.tb.Fatal(err)
	}
	r.promise.Signature = ct.DigitallySigned(signed)
	r.leaf = r.withPromise(&r.promise)
}

func certificatePEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func (r *recipe) sign() {
	r.sig = r.signer.sign(r.tb, dsse.PAE(r.payloadType, r.payload))
	r.stamped = r.sig
	r.body = map[string]any{"apiVersion": "0.0.1", "kind": "dsse", "spec": map[string]any{
		"envelopeHash": sum256(r.payload), "payloadHash": sum256(r.payload),
		"signatures": []any{map[string]any{"signature": encoded(r.sig), "verifier": encoded(certificatePEM(r.leaf))}},
	}}
	r.leaves = [][]byte{rfc6962.DefaultHasher.HashLeaf([]byte("one")), rfc6962.DefaultHasher.HashLeaf([]byte("three"))}
}

func sum256(content []byte) map[string]any {
	return map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(digestOf(content))}
}

func digestOf(content []byte) []byte {
	sum := sha256.Sum256(content)
	return sum[:]
}

// enter writes the body into the log, as its second entry of three.
func (r *recipe) enter() {
	r.tb.Helper()
	body, err := json.Marshal(r.body)
	if err != nil {
		r.tb.Fatal(err)
	}
	hasher := rfc6962.DefaultHasher
	root := hasher.HashChildren(hasher.HashChildren(r.leaves[0], hasher.HashLeaf(body)), r.leaves[1])
	id := r.log.id()
	r.entry = map[string]any{
		"logIndex": "1001", "logId": map[string]any{"keyId": encoded(id[:])}, "kindVersion": map[string]any{"kind": r.body["kind"], "version": r.body["apiVersion"]},
		"integratedTime":   fmt.Sprint(r.taken.Unix()),
		"inclusionPromise": map[string]any{"signedEntryTimestamp": encoded(r.entryPromise(body, r.taken, 1001))},
		"inclusionProof": map[string]any{
			"logIndex": "1", "rootHash": encoded(root), "treeSize": "3", "hashes": []any{encoded(r.leaves[0]), encoded(r.leaves[1])},
			"checkpoint": map[string]any{"envelope": r.checkpoint(r.log, r.log, 3, root)},
		},
		"canonicalizedBody": encoded(body),
	}
}

func (r *recipe) entryPromise(body []byte, at time.Time, index int) []byte {
	return r.log.sign(r.tb, fmt.Appendf(nil, `{"body":%q,"integratedTime":%d,"logID":"%x","logIndex":%d}`, encoded(body), at.Unix(), r.log.id(), index))
}

// checkpoint is a signed note, by one key under the name of another.
func (r *recipe) checkpoint(by, named key, size int, root []byte) string {
	text := fmt.Sprintf("log.example - 77\n%d\n%s\n", size, encoded(root))
	id := named.id()
	sig := append(binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(id[:])), by.sign(r.tb, []byte(text))...)
	return text + "\n\u2014 log.example " + encoded(sig) + "\n"
}

func (r *recipe) stamp() []byte {
	r.tb.Helper()
	answer, err := (&timestamp.Timestamp{
		HashAlgorithm: crypto.SHA256, HashedMessage: digestOf(r.stamped), Time: r.stampTime, Policy: asn1.ObjectIdentifier{1, 2, 3}, AddTSACertificate: true,
	}).CreateResponseWithOpts(r.stampCert, r.stampKey.PrivateKey, crypto.SHA256)
	if err != nil {
		r.tb.Fatal(err)
	}
	return answer
}

func (r *recipe) bundle() Evidence {
	r.tb.Helper()
	material := map[string]any{}
	if r.certificateKind == "certificate" {
		material["certificate"] = map[string]any{"rawBytes": encoded(r.leaf.Raw)}
	} else {
		material["x509CertificateChain"] = map[string]any{"certificates": []any{map[string]any{"rawBytes": encoded(r.leaf.Raw)}, map[string]any{"rawBytes": encoded(r.fulcio.Raw)}}}
	}
	if r.withEntry {
		material["tlogEntries"] = []any{r.entry}
	}
	if r.withStamp {
		material["timestampVerificationData"] = map[string]any{"rfc3161Timestamps": []any{map[string]any{"signedTimestamp": encoded(r.stamp())}}}
	}
	text, err := json.Marshal(map[string]any{
		"mediaType": trusttest.MediaTypeBundle, "verificationMaterial": material,
		"dsseEnvelope": map[string]any{"payload": encoded(r.payload), "payloadType": r.payloadType, "signatures": []any{map[string]any{"sig": encoded(r.sig)}}},
	})
	if err != nil {
		r.tb.Fatal(err)
	}
	return Evidence{Format: FormatBundle, Payload: text}
}

// proof alters the inclusion proof, promise or another object of the entry.
func (r *recipe) set(object string, fields map[string]any) {
	part, ok := r.entry[object].(map[string]any)
	if !ok {
		r.tb.Fatalf("the entry has no %s", object)
	}
	maps.Copy(part, fields)
}
