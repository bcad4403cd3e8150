package signer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/sigstore/sigstore-go/pkg/sign"
)

// URLs of the public sigstore instance, for callers that choose it.
const (
	PublicFulcioURL = "https://fulcio.sigstore.dev"
	PublicRekorURL  = "https://rekor.sigstore.dev"
)

// Services are the sigstore services that a signature is proved with. The zero
// value uses none.
type Services struct {
	// RekorURL is the transparency log, "" for none.
	RekorURL string
	// RekorVersion is the log's API: 1, the default, or 2. A version 2 log
	// proves no time, so a certificate also needs TSAURL.
	RekorVersion int
	// TSAURL is the timestamp authority's full address, "" for none.
	TSAURL string
	// TrustedRoot is a trusted root in JSON; if given, every bundle is verified
	// with it before it is returned, and the certificate's chain is added for
	// cosign 2.
	TrustedRoot []byte
	// Timeout bounds one request; zero means 30 s.
	Timeout time.Duration
	// Retries is how often a request is tried again after a 5xx or a 429; zero
	// means twice, a negative value means never.
	Retries int
	// Transport carries the requests to Fulcio and the timestamp authority; nil
	// means http.DefaultTransport.
	Transport http.RoundTripper
}

// KeylessOptions say how to sign with a short-lived certificate.
type KeylessOptions struct {
	// Token gives an OIDC identity token whenever a certificate is needed: one
	// release may outlive one token. It is sent to Fulcio and nowhere else.
	Token func(context.Context) (string, error)
	// FulcioURL is the certificate authority.
	FulcioURL string
	// Now is the clock that decides when a certificate is too old to sign with;
	// nil means time.Now.
	Now func() time.Time
	Services
}

func (s Services) check() error {
	switch {
	case s.RekorVersion < 0 || s.RekorVersion > 2:
		return fmt.Errorf("%w: Rekor version %d, known are 1 and 2", ErrOptions, s.RekorVersion)
	case s.RekorVersion != 0 && s.RekorURL == "":
		return fmt.Errorf("%w: a Rekor version without a Rekor URL", ErrOptions)
	}
	return nil
}

func (o KeylessOptions) check() error {
	switch {
	case o.FulcioURL == "":
		return fmt.Errorf("%w: no Fulcio URL", ErrOptions)
	case o.Token == nil:
		return fmt.Errorf("%w: no source of tokens", ErrToken)
	case o.RekorURL == "" && o.TSAURL == "":
		return fmt.Errorf("%w: a certificate lives ten minutes: without a log or a timestamp authority nobody could verify the signature later", ErrOptions)
	case o.RekorVersion == 2 && o.TSAURL == "":
		return fmt.Errorf("%w: a Rekor version 2 log proves no time, so a timestamp authority is needed", ErrOptions)
	}
	return o.Services.check()
}

func (s Services) retries() uint {
	switch {
	case s.Retries < 0:
		return 0
	case s.Retries == 0:
		return 2
	}
	return uint(s.Retries) // #nosec G115 -- positive
}

// roundTrip is a transport made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// transport ends requests when ctx ends: sigstore-go's clients for Fulcio and
// timestamps make theirs without one.
func (s Services) transport(ctx context.Context) http.RoundTripper {
	inner := s.Transport
	if inner == nil {
		inner = http.DefaultTransport
	}
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		both, cancel := context.WithCancel(r.Context())
		stop := context.AfterFunc(ctx, cancel)
		release := func() { stop(); cancel() }
		resp, err := inner.RoundTrip(r.WithContext(both)) //nolint:contextcheck // both ends with either of the two
		if err != nil {
			release()
			return nil, err
		}
		resp.Body = &body{ReadCloser: resp.Body, release: release}
		return resp, nil
	})
}

// body releases what its request held when it is closed.
type body struct {
	io.ReadCloser
	release func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

func (s Services) timestampAuthority(ctx context.Context) *sign.TimestampAuthority {
	return sign.NewTimestampAuthority(&sign.TimestampAuthorityOptions{
		URL: s.TSAURL, Timeout: s.Timeout, Retries: s.retries(), Transport: s.transport(ctx),
	})
}

// bundleOptions are fresh for each signature: sigstore-go's clients keep state.
func (s *Signer) bundleOptions(ctx context.Context) sign.BundleOptions {
	opts := sign.BundleOptions{Context: ctx}
	if s.certifier != nil {
		opts.CertificateProvider = s.certifier
	}
	if s.services.RekorURL != "" {
		version := uint32(1)
		if s.services.RekorVersion == 2 {
			version = 2
		}
		opts.TransparencyLogs = []sign.Transparency{sign.NewRekor(&sign.RekorOptions{
			BaseURL: s.services.RekorURL, Version: version, Timeout: s.services.Timeout, Retries: s.services.retries(),
		})}
	}
	if s.services.TSAURL != "" {
		opts.TimestampAuthorities = []*sign.TimestampAuthority{s.services.timestampAuthority(ctx)}
	}
	return opts
}
