package signer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"sync"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// certifier gets certificates for one ephemeral key. A release makes dozens of
// signatures: one certificate serves them all while it lives, so Fulcio is
// asked once, not dozens of times.
type certifier struct {
	options KeylessOptions

	mu   sync.Mutex
	cert *x509.Certificate
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

// GetCertificate implements sign.CertificateProvider.
func (c *certifier) GetCertificate(ctx context.Context, key sign.Keypair, _ *sign.CertificateProviderOptions) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now
	if c.options.Now != nil {
		now = c.options.Now
	}
	if c.cert != nil && now().Before(c.cert.NotAfter.Add(-margin)) {
		return c.cert.Raw, nil
	}
	token, err := c.options.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrToken, err)
	}
	claims, err := readToken(token, now())
	if err != nil {
		return nil, err
	}
	watch := &refusal{next: c.options.transport(ctx)}
	fulcio := sign.NewFulcio(&sign.FulcioOptions{
		BaseURL: c.options.FulcioURL, Timeout: c.options.Timeout, Retries: c.options.retries(), Transport: watch,
	})
	der, err := fulcio.GetCertificate(ctx, key, &sign.CertificateProviderOptions{IDToken: token})
	if err != nil {
		return nil, watch.explain(err, c.options.FulcioURL, claims)
	}
	if c.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("certificate from %s: %w", c.options.FulcioURL, err)
	}
	return der, nil
}

// chainPEM returns the certificate's issuers, the nearest first, as cosign 2
// wants them beside a legacy signature; "" if no trusted root is at hand.
func chainPEM(cert *x509.Certificate, material root.TrustedMaterial) string {
	if material == nil {
		return ""
	}
	chains, err := verify.VerifyLeafCertificate(cert.NotBefore, cert, material)
	if err != nil || len(chains) == 0 {
		return ""
	}
	var out []byte
	for _, c := range chains[0][1:] {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return string(out)
}
