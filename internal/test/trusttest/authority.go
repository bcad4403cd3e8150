package trusttest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
)

// Authority is a sigstore instance on loopback: a certificate authority with the
// API of Fulcio, and a timestamp authority. It has no logs. It certifies whatever a
// token says, signed or not.
type Authority struct {
	// FulcioURL and TSAURL are where the services answer.
	FulcioURL, TSAURL string
	// Root is the trusted root, as JSON.
	Root []byte
	// Issued counts the certificates.
	Issued atomic.Int64

	tb       testing.TB
	fulcio   *x509.Certificate
	fulcioBy crypto.Signer
	stamps   *x509.Certificate
	stampsBy *ecdsa.PrivateKey
}

// NewAuthority starts an instance.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb}
	top, topKey, err := ca.GenerateRootCa()
	a.must(err)
	var intermediate *ecdsa.PrivateKey
	a.fulcio, intermediate, err = ca.GenerateFulcioIntermediate(top, topKey)
	a.must(err)
	a.fulcioBy = intermediate
	tsa, tsaKey, err := ca.GenerateTSAIntermediate(top, topKey)
	a.must(err)
	a.stampsBy, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.must(err)
	a.stamps, err = stamping(&a.stampsBy.PublicKey, tsa, tsaKey)
	a.must(err)
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01,
		[]root.CertificateAuthority{&root.FulcioCertificateAuthority{
			Root: top, Intermediates: []*x509.Certificate{a.fulcio}, ValidityPeriodStart: top.NotBefore, URI: "https://fulcio.example",
		}}, nil,
		[]root.TimestampingAuthority{&root.SigstoreTimestampingAuthority{
			Root: top, Intermediates: []*x509.Certificate{tsa}, Leaf: a.stamps, ValidityPeriodStart: top.NotBefore, URI: "https://tsa.example",
		}}, nil)
	a.must(err)
	a.Root, err = trusted.MarshalJSON()
	a.must(err)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v2/signingCert", a.certify)
	mux.HandleFunc("POST /timestamp", a.stamp)
	server := httptest.NewServer(mux)
	tb.Cleanup(server.Close)
	a.FulcioURL, a.TSAURL = server.URL, server.URL+"/timestamp"
	return a
}

// stamping certifies the key of the timestamp authority for as long as its issuer is
// certified: the test CA of sigstore-go ends after ten minutes, which a test on a busy
// machine outlives.
func stamping(key *ecdsa.PublicKey, issuer *x509.Certificate, issuerKey crypto.Signer) (*x509.Certificate, error) {
	// RFC 3161, section 2.3, wants this key usage to be critical, which x509 does not
	// write by itself.
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}})
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tsa.example"}, NotBefore: issuer.NotBefore, NotAfter: issuer.NotAfter,
		KeyUsage:        x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}},
	}, issuer, key, issuerKey)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func (a *Authority) must(err error) {
	a.tb.Helper()
	if err != nil {
		a.tb.Fatal(err)
	}
}

// GitHubToken is a token of a job of GitHub Actions, for a workflow
// "owner/repository/.github/workflows/x.yml", a ref and a commit.
func GitHubToken(tb testing.TB, workflow, ref, commit string) string {
	tb.Helper()
	owner, rest, _ := strings.Cut(workflow, "/")
	name, _, _ := strings.Cut(rest, "/")
	return token(tb, map[string]any{
		"iss": "https://token.actions.githubusercontent.com", "sub": "repo:" + owner + "/" + name + ":ref:" + ref, "aud": "sigstore",
		"job_workflow_ref": workflow + "@" + ref, "workflow_ref": workflow + "@" + ref, "repository": owner + "/" + name, "repository_owner": owner,
		"ref": ref, "sha": commit, "run_id": "77", "run_attempt": "1", "event_name": "push", "repository_id": "1", "repository_owner_id": "2",
		"runner_environment": "github-hosted",
	})
}

// EmailToken is the token of a person.
func EmailToken(tb testing.TB, address string) string {
	tb.Helper()
	return token(tb, map[string]any{"iss": "https://accounts.example.com", "sub": "1", "aud": "sigstore", "email": address, "email_verified": true})
}

func token(tb testing.TB, claims map[string]any) string {
	tb.Helper()
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"none"}`)) + "." + part(encode(tb, claims)) + "."
}

// extensions are what Fulcio writes of a token into a certificate.
// https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md
func extensions(said map[string]string) (all []pkix.Extension, err error) {
	values := map[int]string{8: said["iss"]}
	if said["job_workflow_ref"] != "" {
		const forge = "https://github.com/"
		values[9], values[11], values[12] = forge+said["job_workflow_ref"], said["runner_environment"], forge+said["repository"]
		values[13], values[14], values[15] = said["sha"], said["ref"], said["repository_id"]
		values[16], values[17], values[18] = forge+said["repository_owner"], said["repository_owner_id"], forge+said["workflow_ref"]
		values[20], values[21] = said["event_name"], forge+said["repository"]+"/actions/runs/"+said["run_id"]+"/attempts/"+said["run_attempt"]
	}
	for n, value := range values {
		text, err := asn1.MarshalWithParams(value, "utf8")
		if err != nil {
			return nil, err
		}
		all = append(all, pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, n}, Value: text})
	}
	return all, nil
}

func (a *Authority) certify(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		PublicKeyRequest struct{ PublicKey struct{ Content string } }
	}
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	block := &pem.Block{}
	if json.NewDecoder(r.Body).Decode(&asked) == nil {
		block, _ = pem.Decode([]byte(asked.PublicKeyRequest.PublicKey.Content))
	}
	claims := map[string]any{}
	if len(parts) == 3 {
		raw, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil || json.Unmarshal(raw, &claims) != nil {
			claims = nil
		}
	}
	if block == nil || len(claims) == 0 {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	der, err := a.issue(block.Bytes, claims)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text := func(der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"signedCertificateEmbeddedSct": map[string]any{
		"chain": map[string]any{"certificates": []string{text(der), text(a.fulcio.Raw)}},
	}})
}

func (a *Authority) issue(publicDER []byte, claims map[string]any) ([]byte, error) {
	public, err := x509.ParsePKIXPublicKey(publicDER)
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for name, value := range claims {
		said[name], _ = value.(string)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.Issued.Add(1)), NotBefore: now.Add(-time.Minute), NotAfter: now.Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	if said["email"] != "" {
		template.EmailAddresses = []string{said["email"]}
	} else {
		name, err := url.Parse("https://github.com/" + said["job_workflow_ref"])
		if err != nil {
			return nil, err
		}
		template.URIs = []*url.URL{name}
	}
	if template.ExtraExtensions, err = extensions(said); err != nil {
		return nil, err
	}
	return x509.CreateCertificate(rand.Reader, template, a.fulcio, public, a.fulcioBy)
}

// stamp answers requests of RFC 3161.
func (a *Authority) stamp(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	asked, err := timestamp.ParseRequest(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := (&timestamp.Timestamp{
		HashAlgorithm: asked.HashAlgorithm, HashedMessage: asked.HashedMessage, Nonce: asked.Nonce, Time: time.Now(),
		Policy: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 2}, AddTSACertificate: asked.Certificates,
	}).CreateResponseWithOpts(a.stamps, a.stampsBy, crypto.SHA256)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(answer)
}
