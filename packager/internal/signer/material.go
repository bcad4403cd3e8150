package signer

import (
	"sync/atomic"

	"github.com/sigstore/sigstore-go/pkg/root"
)

// watched is trusted material that notices when it is asked: everything was
// signed and proved by then, and what fails is the verification with it.
type watched struct {
	root.TrustedMaterial
	asked atomic.Bool
}

// FulcioCertificateAuthorities implements root.TrustedMaterial.
func (w *watched) FulcioCertificateAuthorities() []root.CertificateAuthority {
	w.asked.Store(true)
	return w.TrustedMaterial.FulcioCertificateAuthorities()
}

// TimestampingAuthorities implements root.TrustedMaterial.
func (w *watched) TimestampingAuthorities() []root.TimestampingAuthority {
	w.asked.Store(true)
	return w.TrustedMaterial.TimestampingAuthorities()
}

// RekorLogs implements root.TrustedMaterial.
func (w *watched) RekorLogs() map[string]*root.TransparencyLog {
	w.asked.Store(true)
	return w.TrustedMaterial.RekorLogs()
}

// PublicKeyVerifier implements root.TrustedMaterial.
func (w *watched) PublicKeyVerifier(hint string) (root.TimeConstrainedVerifier, error) {
	w.asked.Store(true)
	return w.TrustedMaterial.PublicKeyVerifier(hint)
}
