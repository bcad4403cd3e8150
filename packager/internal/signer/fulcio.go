package signer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/radome-io/fleeting-plugin-openstack/internal/sigstore"
)

// certifier gets certificates for one ephemeral key. A release makes dozens of
// signatures: one certificate serves them all while it lives, so Fulcio is
// asked once, not dozens of times.
type certifier struct {
	options KeylessOptions

	mu   sync.Mutex
	cert *x509.Certificate
	// issuer is the certificate that issued it, nil if Fulcio does not say.
	issuer *x509.Certificate
}

// margin is how long before its end a certificate is no longer used, so that
// the log and the timestamp still fall into its life.
const margin = 2 * time.Minute

func newEphemeral() (*keypair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	return newKeypair(key)
}

// certificate returns a certificate for the key that is good for a while.
func (c *certifier) certificate(ctx context.Context, keys *keypair) (*x509.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now
	if c.options.Now != nil {
		now = c.options.Now
	}
	if c.cert != nil && now().Before(c.cert.NotAfter.Add(-margin)) {
		return c.cert, nil
	}
	token, err := c.options.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrToken, err)
	}
	claims, err := readToken(token, now())
	if err != nil {
		return nil, err
	}
	cert, issuer, err := c.options.requestCertificate(ctx, keys, token, claims)
	var refused *statusError
	switch {
	case errors.As(err, &refused) && refused.isRefusal():
		return nil, fmt.Errorf("%w: %s does not accept one of issuer %q for audience %s: %w",
			ErrToken, c.options.FulcioURL, claims.Issuer, claims.audience(), err)
	case err != nil:
		return nil, fmt.Errorf("certificate from %s: %w", c.options.FulcioURL, err)
	}
	c.cert, c.issuer = cert, issuer
	return cert, nil
}

// requestCertificate asks Fulcio, with its API version 2:
// https://github.com/sigstore/fulcio/blob/main/fulcio.proto.
func (o KeylessOptions) requestCertificate(ctx context.Context, keys *keypair, token string, c claims) (cert, issuer *x509.Certificate, err error) {
	proof, err := keys.sign([]byte(c.proven()))
	if err != nil {
		return nil, nil, err
	}
	body, err := json.Marshal(map[string]any{"publicKeyRequest": map[string]any{
		"publicKey":         map[string]string{"algorithm": "ECDSA", "content": string(keys.publicPEM)},
		"proofOfPossession": proof,
	}})
	if err != nil {
		return nil, nil, err
	}
	answer, err := o.post(ctx, o.FulcioURL+"/api/v2/signingCert", http.Header{
		"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"},
	}, body)
	if err != nil {
		return nil, nil, err
	}
	type issued struct {
		Chain struct {
			Certificates []string `json:"certificates"`
		} `json:"chain"`
	}
	var certificates struct {
		Embedded issued `json:"signedCertificateEmbeddedSct"`
		Detached issued `json:"signedCertificateDetachedSct"`
	}
	if err := json.Unmarshal(answer.body, &certificates); err != nil {
		return nil, nil, err
	}
	chain := certificates.Embedded.Chain.Certificates
	if len(chain) == 0 {
		chain = certificates.Detached.Chain.Certificates
	}
	if len(chain) == 0 {
		return nil, nil, errors.New("no certificate in the answer")
	}
	if cert, err = parseCertificate(chain[0]); err != nil || len(chain) == 1 {
		return cert, nil, err
	}
	issuer, err = parseCertificate(chain[1])
	return cert, issuer, err
}

func parseCertificate(text string) (*x509.Certificate, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("no PEM block in the answer's certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

// chainPEM returns the certificate's issuers, the nearest first, as cosign 2
// wants them beside a legacy signature; "" if no trusted root is at hand.
func chainPEM(cert *x509.Certificate, material root.TrustedMaterial) string {
	if material == nil {
		return ""
	}
	chains, err := sigstore.Chains(cert, cert.NotBefore, material)
	if err != nil {
		return ""
	}
	var out []byte
	for _, c := range chains[0][1:] {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return string(out)
}
