package sigstore

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	ct "github.com/google/certificate-transparency-go"
	ctx509 "github.com/google/certificate-transparency-go/x509"
	"github.com/google/certificate-transparency-go/x509util"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// Chains returns the certificate's chains to an authority that the material
// trusts and that are valid at the time, at least one.
func Chains(certificate *x509.Certificate, at time.Time, material root.TrustedMaterial) ([][]*x509.Certificate, error) {
	// crypto/x509 does not know otherName subjects, with which Fulcio names
	// some users, and would refuse the extension. sigstore-go's
	// certificate.SummarizeCertificate knows it.
	c := *certificate
	c.UnhandledCriticalExtensions = slices.DeleteFunc(slices.Clone(certificate.UnhandledCriticalExtensions),
		func(oid asn1.ObjectIdentifier) bool { return oid.Equal(cryptoutils.SANOID) })
	refusals := []error{errors.New("no chain to a trusted authority")}
	for _, authority := range material.FulcioCertificateAuthorities() {
		chains, err := authority.Verify(&c, at)
		if err == nil {
			return chains, nil
		}
		refusals = append(refusals, err)
	}
	return nil, errors.Join(refusals...)
}

// VerifySCT verifies that a certificate log that the material trusts promised to
// list the certificate that the chains begin with: it holds a signed certificate
// timestamp (RFC 6962, section 3.3).
func VerifySCT(chains [][]*x509.Certificate, material root.TrustedMaterial) error {
	if len(chains) == 0 || len(chains[0]) == 0 {
		return errors.New("no chain")
	}
	leaf, err := ctx509.ParseCertificate(chains[0][0].Raw)
	if err != nil {
		return err
	}
	promises, err := x509util.ParseSCTsFromSCTList(&leaf.SCTList)
	if err != nil {
		return err
	}
	logs := material.CTLogs()
	refusals := []error{fmt.Errorf("none of %d promises of certificate logs verifies", len(promises))}
	for _, sct := range promises {
		log := logs[hex.EncodeToString(sct.LogID.KeyID[:])]
		if log == nil {
			continue
		}
		for _, chain := range chains {
			err := verifySCT(sct, leaf, chain, log)
			if err == nil {
				return nil
			}
			refusals = append(refusals, err)
		}
	}
	return errors.Join(refusals...)
}

func verifySCT(sct *ct.SignedCertificateTimestamp, leaf *ctx509.Certificate, chain []*x509.Certificate, log *root.TransparencyLog) error {
	at := ct.TimestampToTime(sct.Timestamp)
	if (!log.ValidityPeriodStart.IsZero() && at.Before(log.ValidityPeriodStart)) || (!log.ValidityPeriodEnd.IsZero() && at.After(log.ValidityPeriodEnd)) {
		return errors.New("the certificate log's key was not valid when it promised")
	}
	if len(chain) < 2 {
		return errors.New("no issuer")
	}
	issuer, err := ctx509.ParseCertificate(chain[1].Raw)
	if err != nil {
		return err
	}
	verifier, err := ct.NewSignatureVerifier(log.PublicKey)
	if err != nil {
		return err
	}
	entry, err := ct.MerkleTreeLeafForEmbeddedSCT([]*ctx509.Certificate{leaf, issuer}, sct.Timestamp)
	if err != nil {
		return err
	}
	return verifier.VerifySCTSignature(*sct, ct.LogEntry{Leaf: *entry})
}
