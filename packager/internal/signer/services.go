package signer

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/digitorus/timestamp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
	"github.com/radome-io/fleeting-plugin-openstack/internal/secureurl"
	"github.com/radome-io/fleeting-plugin-openstack/internal/sigstore"
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
	// Transport carries the requests; nil means http.DefaultTransport.
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
	return errors.Join(checkAddress("the transparency log", s.RekorURL), checkAddress("the timestamp authority", s.TSAURL))
}

// checkAddress refuses the address of a service that would be spoken to in clear
// text; an empty one is no service.
func checkAddress(service, address string) error {
	if address == "" {
		return nil
	}
	if err := secureurl.Check(address); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrOptions, service, err)
	}
	return nil
}

func (o KeylessOptions) check() error {
	// The identity token goes there: who sees it can sign as its owner.
	if err := checkAddress("the certificate authority", o.FulcioURL); err != nil {
		return err
	}
	switch {
	case o.FulcioURL == "":
		return fmt.Errorf("%w: no Fulcio URL", ErrOptions)
	case o.Token == nil:
		return fmt.Errorf("%w: no source of tokens", ErrToken)
	case o.RekorURL == "" && o.TSAURL == "":
		return fmt.Errorf("%w: a certificate lives ten minutes: without a log or a timestamp authority the signature could not be verified later", ErrOptions)
	case o.RekorVersion == 2 && o.TSAURL == "":
		return fmt.Errorf("%w: a Rekor version 2 log proves no time, so a timestamp authority is needed", ErrOptions)
	}
	return o.Services.check()
}

// Bounds on the exchange with a service.
const (
	defaultTimeout = 30 * time.Second
	defaultRetries = 2
	maxAnswer      = 8 << 20
	maxWait        = 30 * time.Second
)

func (s Services) retries() int {
	if s.Retries == 0 {
		return defaultRetries
	}
	return max(s.Retries, 0)
}

// answer is what a service answered.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// statusError is an answer that is not a success.
type statusError struct {
	status   int
	location string
	text     string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("status %d: %.1000s", e.status, plaintext.Line(strings.TrimSpace(e.text)))
}

// isRefusal reports whether a service refused the request as it is.
func (e *statusError) isRefusal() bool {
	switch e.status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return true
	}
	return false
}

func (s Services) post(ctx context.Context, url string, header http.Header, body []byte) (answer, error) {
	return s.exchange(ctx, http.MethodPost, url, header, body)
}

// exchange sends a request, again after a 5xx or a 429, and returns the answer of
// a success. Redirects are not followed: a token is for one service.
func (s Services) exchange(ctx context.Context, method, url string, header http.Header, body []byte) (answer, error) {
	for attempt := 0; ; attempt++ {
		a, err := s.once(ctx, method, url, header, body)
		if err != nil {
			return answer{}, err
		}
		if a.status/100 == 2 {
			return a, nil
		}
		again := a.status/100 == 5 || a.status == http.StatusTooManyRequests
		if !again || attempt >= s.retries() {
			return answer{}, &statusError{status: a.status, location: a.header.Get("Location"), text: string(a.body)}
		}
		wait := time.Second << attempt
		if asked, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil && asked >= 0 {
			wait = min(time.Duration(asked)*time.Second, maxWait)
		}
		select {
		case <-ctx.Done():
			return answer{}, ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (s Services) once(ctx context.Context, method, url string, header http.Header, body []byte) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.Timeout, defaultTimeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	maps.Copy(request.Header, header)
	request.Header.Set("User-Agent", "fleeting-plugin")
	client := http.Client{Transport: s.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	a = answer{status: response.StatusCode, header: response.Header}
	a.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return a, err
}

// stamp asks the timestamp authority for a timestamp (RFC 3161) over content.
func (s Services) stamp(ctx context.Context, content []byte) ([]byte, error) {
	sum := sha256.Sum256(content)
	query, err := (&timestamp.Request{HashAlgorithm: crypto.SHA256, HashedMessage: sum[:]}).Marshal()
	if err != nil {
		return nil, err
	}
	a, err := s.post(ctx, s.TSAURL, http.Header{"Content-Type": {"application/timestamp-query"}}, query)
	if err != nil {
		return nil, fmt.Errorf("timestamp from %s: %w", s.TSAURL, err)
	}
	if err := sigstore.CheckTimestamp(a.body); err != nil {
		return nil, fmt.Errorf("timestamp from %s: %w", s.TSAURL, err)
	}
	if _, err := timestamp.ParseResponse(a.body); err != nil {
		return nil, fmt.Errorf("timestamp from %s: %w", s.TSAURL, err)
	}
	return a.body, nil
}
