package signer

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
)

// Certified is what a certificate of Fulcio says about who signs, and about the
// build that does. Fields that the certificate does not have are empty.
// https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md
type Certified struct {
	// Identity is the subject alternative name, Issuer who vouched for it.
	Identity string `json:"identity"`
	Issuer   string `json:"issuer"`
	// BuildSigner is the workflow that signs, BuildConfig the one that was started.
	BuildSigner string `json:"buildSigner,omitempty"`
	BuildConfig string `json:"buildConfig,omitempty"`
	// Repository, Ref and Commit are what is built, RepositoryID and OwnerID the
	// forge's numbers.
	Repository   string `json:"sourceRepository,omitempty"`
	Ref          string `json:"sourceRef,omitempty"`
	Commit       string `json:"sourceDigest,omitempty"`
	RepositoryID string `json:"sourceRepositoryIdentifier,omitempty"`
	OwnerID      string `json:"sourceRepositoryOwnerIdentifier,omitempty"`
	// Trigger is why, RunnerEnvironment where and Run which run it is.
	Trigger           string `json:"trigger,omitempty"`
	RunnerEnvironment string `json:"runnerEnvironment,omitempty"`
	Run               string `json:"run,omitempty"`
}

// Certified returns what the certificate of a keyless signer says, and asks for one
// if there is none yet; nil with a key.
func (s *Signer) Certified(ctx context.Context) (*Certified, error) {
	if s.certifier == nil {
		return nil, nil //nolint:nilnil // nobody certifies a key
	}
	cert, err := s.certifier.certificate(ctx, s.keys)
	if err != nil {
		return nil, asService(ctx, err)
	}
	c, err := ReadCertificate(cert)
	if err != nil {
		return nil, fmt.Errorf("%w: certificate: %w", ErrService, err)
	}
	return c, nil
}

// ReadCertificate returns what a certificate says. It verifies nothing.
func ReadCertificate(cert *x509.Certificate) (*Certified, error) {
	summary, err := certificate.SummarizeCertificate(cert)
	if err != nil {
		return nil, err
	}
	return &Certified{
		Identity: summary.SubjectAlternativeName, Issuer: summary.Issuer,
		BuildSigner: summary.BuildSignerURI, BuildConfig: summary.BuildConfigURI,
		Repository: summary.SourceRepositoryURI, Ref: summary.SourceRepositoryRef, Commit: summary.SourceRepositoryDigest,
		RepositoryID: summary.SourceRepositoryIdentifier, OwnerID: summary.SourceRepositoryOwnerIdentifier,
		Trigger: summary.BuildTrigger, RunnerEnvironment: summary.RunnerEnvironment, Run: summary.RunInvocationURI,
	}, nil
}

// Expected returns the identity and the issuer that a certificate will have, by what
// the token says: nothing is asked for, as for a plan. It is nil with a key.
func (s *Signer) Expected(ctx context.Context) (*Certified, error) {
	if s.certifier == nil {
		return nil, nil //nolint:nilnil // nobody certifies a key
	}
	token, err := s.certifier.options.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrToken, err)
	}
	now := time.Now
	if s.certifier.options.Now != nil {
		now = s.certifier.options.Now
	}
	c, err := readToken(token, now())
	if err != nil {
		return nil, err
	}
	return &Certified{Identity: c.identity(), Issuer: c.Issuer}, nil
}

// identity is the name that Fulcio will give the bearer.
func (c claims) identity() string {
	switch {
	case c.Workflow != "":
		return c.forge() + "/" + c.Workflow
	case c.Pipeline != "":
		return "https://" + c.Pipeline
	}
	return c.proven()
}

// forge is the address of the GitHub that issued a token of GitHub Actions.
func (c claims) forge() string {
	host := strings.TrimPrefix(c.Issuer, "https://token.actions.")
	if host == c.Issuer || host == "githubusercontent.com" {
		return "https://github.com"
	}
	return "https://" + host // GitHub Enterprise, with data residency
}
