package trust

import (
	"crypto/x509"
	"fmt"
	"time"

	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"

	"github.com/radome-io/fleeting-plugin-openstack/internal/sigstore"
)

// checkCertificate refuses a certificate that is not from a trusted authority,
// not for the required identity, or not in a certificate log. Whether it was
// valid when it signed is another question.
func (r *identityRequirement) checkCertificate(cert *x509.Certificate) (Signer, error) {
	if cert == nil {
		return Signer{}, because(ErrWrongSigner, "with a key, not with a certificate")
	}
	chains, err := r.chains(cert, cert.NotBefore)
	if err != nil {
		return Signer{}, err
	}
	summary, err := certificate.SummarizeCertificate(cert)
	if err != nil {
		return Signer{}, fmt.Errorf("%w: %w", ErrWrongSigner, err)
	}
	if err := r.identity.match(summary); err != nil {
		return Signer{}, err
	}
	if !r.UnsafeNoSCT {
		if err := sigstore.VerifySCT(chains, r.Roots.material); err != nil {
			return Signer{}, &explained{ErrNoSCT, err}
		}
	}
	return signerOf(summary), nil
}

// chains returns the certificate's chains to trusted authorities that are valid
// at the time, at least one.
func (r *identityRequirement) chains(cert *x509.Certificate, at time.Time) ([][]*x509.Certificate, error) {
	chains, err := sigstore.Chains(cert, at, r.Roots.material)
	if err != nil {
		return nil, because(ErrUntrustedCertificate, "%w (issuer %q)", err, cert.Issuer)
	}
	return chains, nil
}

// checkTimes refuses a certificate that was not valid at one of the times.
func (r *identityRequirement) checkTimes(cert *x509.Certificate, times []time.Time) error {
	if len(times) == 0 {
		return because(ErrUntrustedTime, "neither a log entry nor a timestamp proves when it was signed")
	}
	for _, t := range times {
		if t.Before(cert.NotBefore) || t.After(cert.NotAfter) {
			return because(ErrUntrustedTime, "signed at %s, certificate valid from %s to %s",
				t.UTC().Format(time.RFC3339), cert.NotBefore.Format(time.RFC3339), cert.NotAfter.Format(time.RFC3339))
		}
		if _, err := r.chains(cert, t); err != nil {
			return err
		}
	}
	return nil
}
