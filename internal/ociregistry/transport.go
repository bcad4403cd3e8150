package ociregistry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

func (f TLSFiles) config() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CAFile != "" {
		pem, err := readAuthorities(f.CAFile)
		if err != nil {
			return nil, fmt.Errorf("certificate authority: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: no certificate in %s", ErrInvalid, f.CAFile)
		}
	}
	if f.CertFile != "" || f.KeyFile != "" {
		pair, err := textfile.KeyPair(f.CertFile, f.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// hostTransport picks a transport by host, since TLS settings differ.
type hostTransport struct {
	byHost   map[string]*http.Transport
	folders  *certificateFolders
	fallback *http.Transport
}

func newTransport(hosts map[string]TLSFiles, folders []string) (*hostTransport, error) {
	t := &hostTransport{
		byHost:  map[string]*http.Transport{},
		folders: &certificateFolders{folders: folders, byHost: map[string]folderTransport{}},
	}
	for host, h := range hosts {
		cfg, err := h.config()
		if err != nil {
			if host != "" {
				err = fmt.Errorf("for %s: %w", host, err)
			}
			return nil, err
		}
		t.byHost[host] = baseTransport(cfg)
	}
	t.fallback = t.byHost[""]
	if t.fallback == nil {
		t.fallback = baseTransport(&tls.Config{MinVersion: tls.VersionTLS12})
	}
	return t, nil
}

func baseTransport(cfg *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		TLSClientConfig:       cfg,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          32,
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       30 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		// Layers arrive compressed; a second, transparent decompression would
		// change the bytes that digests are made of.
		DisableCompression: true,
	}
}

// of returns the transport for a host, and whether anything says that this very
// host has TLS.
func (t *hostTransport) of(host string) (transport *http.Transport, said bool, err error) {
	if own, ok := t.byHost[host]; ok {
		return own, true, nil
	}
	if own, err := t.folders.transport(host); own != nil || err != nil {
		return own, true, err
	}
	return t.fallback, false, nil
}

// RoundTrip implements http.RoundTripper.
func (t *hostTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	transport, _, err := t.of(r.URL.Host)
	if err != nil {
		return nil, err
	}
	return transport.RoundTrip(r)
}

// errStalled is the cause of a request that was cut for carrying too little.
var errStalled = fmt.Errorf("%w: connection stalled", ErrUnavailable)

// leastProgress is how many bytes a connection has to carry within the stall
// timeout: a server that drips one byte a second is as good as silent.
const leastProgress = 1 << 10

// stallTransport cuts a request whose connection carries next to nothing, in
// either direction, for the timeout. A limit on the whole request would cut slow
// but living downloads of large plugins. It also holds the limits of the client.
type stallTransport struct {
	base    http.RoundTripper
	timeout time.Duration
	limits  *limits
}

// RoundTrip implements http.RoundTripper.
func (t *stallTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.limits.request(); err != nil {
		return nil, err
	}
	if t.timeout <= 0 {
		return t.base.RoundTrip(r)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	w := &watchdog{timeout: t.timeout, ctx: ctx}
	w.timer = time.AfterFunc(t.timeout, func() { cancel(errStalled) })
	r = r.Clone(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &watchedBody{ReadCloser: r.Body, dog: w}
	}
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		w.timer.Stop()
		err = w.cause(err)
		cancel(nil)
		return nil, err
	}
	w.reset()
	resp.Body = &watchedBody{ReadCloser: resp.Body, dog: w, limits: t.limits, done: func() { cancel(nil) }}
	return resp, nil
}

// watchdog runs off unless bytes keep coming.
type watchdog struct {
	timer   *time.Timer
	timeout time.Duration
	ctx     context.Context //nolint:containedctx // the request's own, to read the cause of its end
	// carried counts since the timer was reset. Both directions add to it.
	carried atomic.Int64
}

func (w *watchdog) reset() {
	w.carried.Store(0)
	w.timer.Reset(w.timeout)
}

// saw counts bytes, and lets the timer begin again once they are enough.
func (w *watchdog) saw(n int) {
	if w.carried.Add(int64(n)) >= leastProgress {
		w.reset()
	}
}

// cause replaces the transport's "context canceled" by the reason.
func (w *watchdog) cause(err error) error {
	if errors.Is(context.Cause(w.ctx), errStalled) {
		return errStalled
	}
	return err
}

type watchedBody struct {
	io.ReadCloser
	dog    *watchdog
	limits *limits // nil for a request's body
	done   func()
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.dog.saw(n)
	if limit := b.limits.bytes(n); limit != nil {
		return 0, limit
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.dog.cause(err)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	if b.done != nil {
		b.dog.timer.Stop()
		defer b.done()
	}
	return b.ReadCloser.Close()
}

// limits count what a client asks for and gets in all; zero is no limit.
type limits struct {
	maxRequests, maxBytes int64
	requests, received    atomic.Int64
}

func (l *limits) request() error {
	if n := l.requests.Add(1); l.maxRequests > 0 && n > l.maxRequests {
		return fmt.Errorf("%w: more than %d requests to registries", ErrTooLarge, l.maxRequests)
	}
	return nil
}

func (l *limits) bytes(n int) error {
	if l == nil {
		return nil
	}
	if got := l.received.Add(int64(n)); l.maxBytes > 0 && got > l.maxBytes {
		return fmt.Errorf("%w: more than %d bytes from registries", ErrTooLarge, l.maxBytes)
	}
	return nil
}

// maxRetryAfter is the longest Retry-After that is waited for; a registry that
// asks for more is answered by failing.
const maxRetryAfter = 30 * time.Second

// retries is the policy for one request: which failures are worth repeating
// and when.
type retries struct {
	count     int
	firstWait time.Duration
	logger    *slog.Logger
}

// Retry returns the wait before the next attempt, or a negative one to give
// up. It implements retry.Policy.
func (p retries) Retry(attempt int, resp *http.Response, err error) (time.Duration, error) {
	if attempt >= p.count || !transient(resp, err) {
		return -1, nil
	}
	wait := p.wait(attempt)
	if resp != nil {
		if after, ok := askedToWait(resp, time.Now()); ok {
			if after > maxRetryAfter {
				return -1, nil
			}
			wait = max(after, wait)
		}
	}
	if resp != nil {
		p.logger.Info("registry asked to wait", "url", shown(resp.Request.URL), "status", resp.StatusCode, "wait", wait)
	} else {
		p.logger.Info("registry request failed, repeating", "error", plaintext.Redact(err.Error()), "wait", wait)
	}
	return wait, nil
}

// wait doubles with each attempt up to five seconds, with a quarter of jitter
// so that many clients do not return at once.
func (p retries) wait(attempt int) time.Duration {
	d := min(p.firstWait<<min(attempt, 10), 5*time.Second)
	return d + time.Duration(rand.Int64N(int64(d)/4+1)) //nolint:gosec // jitter, no secret
}

func transient(resp *http.Response, err error) bool {
	if err != nil {
		return brokeOff(err)
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}
