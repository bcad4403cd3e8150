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
	"time"
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
		pair, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// hostTransport picks a transport by host, since TLS settings differ.
type hostTransport struct {
	byHost   map[string]http.RoundTripper
	folders  *certificateFolders
	fallback http.RoundTripper
}

func newTransport(hosts map[string]TLSFiles, folders []string) (http.RoundTripper, error) {
	t := &hostTransport{
		byHost:  map[string]http.RoundTripper{},
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

func (t *hostTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if rt, ok := t.byHost[r.URL.Host]; ok {
		return rt.RoundTrip(r)
	}
	if rt, err := t.folders.transport(r.URL.Host); rt != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return rt.RoundTrip(r)
	}
	return t.fallback.RoundTrip(r)
}

// errStalled is the cause of a request that was cut for carrying no byte.
var errStalled = fmt.Errorf("%w: connection stalled", ErrUnavailable)

// stallTransport cuts a request whose connection carries no byte, in either
// direction, for the timeout. A limit on the whole request would cut slow but
// living downloads of large plugins.
type stallTransport struct {
	base    http.RoundTripper
	timeout time.Duration
}

func (t *stallTransport) RoundTrip(r *http.Request) (*http.Response, error) {
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
	w.timer.Reset(t.timeout)
	resp.Body = &watchedBody{ReadCloser: resp.Body, dog: w, done: func() { cancel(nil) }}
	return resp, nil
}

// watchdog runs off unless bytes keep coming.
type watchdog struct {
	timer   *time.Timer
	timeout time.Duration
	ctx     context.Context //nolint:containedctx // the request's own, to read the cause of its end
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
	dog  *watchdog
	done func()
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.dog.timer.Reset(b.dog.timeout)
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
		p.logger.Info("registry asked to wait", "url", resp.Request.URL.Redacted(), "status", resp.StatusCode, "wait", wait)
	} else {
		p.logger.Info("registry request failed, repeating", "error", err, "wait", wait)
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
