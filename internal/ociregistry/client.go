package ociregistry

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"
)

const (
	// metadataLimit bounds one answer of a listing, in bytes.
	metadataLimit = 8 << 20
	// pageLimit bounds the pages of one listing.
	pageLimit = 1000
	// tagPageSize is how many tags one page asks for.
	tagPageSize = 1000
)

// Client opens repositories of any registry. It is safe for concurrent use;
// its repositories share connections, tokens and settings.
type Client struct {
	http      *http.Client
	creds     CredentialFunc
	cache     auth.Cache
	userAgent string
	plainHTTP map[string]bool
	logger    *slog.Logger
	retries   retries
}

// settings collects the options before the client is built.
type settings struct {
	creds     CredentialFunc
	userAgent string
	plainHTTP map[string]bool
	transport http.RoundTripper
	tls       map[string]HostTLS
	folders   []string
	logger    *slog.Logger
	retries   retries
	stall     time.Duration
}

// Option changes how a Client works.
type Option func(*settings) error

// WithCredentials sets where credentials come from. Default: none, so only
// what is public can be read.
func WithCredentials(f CredentialFunc) Option {
	return func(s *settings) error { s.creds = f; return nil }
}

// WithPlainHTTP names hosts, with their port if any, that are spoken to
// without TLS. Loopback addresses always are.
func WithPlainHTTP(hosts ...string) Option {
	return func(s *settings) error {
		for _, h := range hosts {
			s.plainHTTP[h] = true
		}
		return nil
	}
}

// WithHostTLS sets the certificate authority and client certificate for a
// host; an empty host means every host without an entry of its own.
func WithHostTLS(host string, t HostTLS) Option {
	return func(s *settings) error { s.tls[host] = t; return nil }
}

// WithTransport replaces the HTTP transport below retries and time limits;
// WithHostTLS then has no effect.
func WithTransport(t http.RoundTripper) Option {
	return func(s *settings) error { s.transport = t; return nil }
}

// WithUserAgent sets the User-Agent header.
func WithUserAgent(ua string) Option {
	return func(s *settings) error { s.userAgent = ua; return nil }
}

// WithLogger receives retries and warnings. Default: discarded.
func WithLogger(l *slog.Logger) Option {
	return func(s *settings) error { s.logger = l; return nil }
}

// WithRetries sets how often a failed request is repeated (default 5) and the
// first wait (default 250 ms), which doubles up to 5 s. A Retry-After of at
// most 30 s is honoured instead.
func WithRetries(count int, firstWait time.Duration) Option {
	return func(s *settings) error {
		if count < 0 || firstWait < 0 {
			return fmt.Errorf("%w: retries %d, wait %v", ErrInvalid, count, firstWait)
		}
		s.retries.count, s.retries.firstWait = count, firstWait
		return nil
	}
}

// WithStallTimeout sets how long a connection may carry no byte before it is
// cut and the request repeated. Default: 30 s.
func WithStallTimeout(d time.Duration) Option {
	return func(s *settings) error { s.stall = d; return nil }
}

// NewClient returns a client. It reads the files of WithHostTLS and fails if
// one cannot be used.
func NewClient(opts ...Option) (*Client, error) {
	s := settings{
		userAgent: "fleeting-plugin",
		plainHTTP: map[string]bool{},
		tls:       map[string]HostTLS{},
		logger:    slog.New(slog.DiscardHandler),
		retries:   retries{count: 5, firstWait: 250 * time.Millisecond},
		stall:     30 * time.Second,
	}
	for _, o := range opts {
		if err := o(&s); err != nil {
			return nil, err
		}
	}
	base := s.transport
	if base == nil {
		t, err := newTransport(s.tls, s.folders)
		if err != nil {
			return nil, err
		}
		base = t
	}
	s.retries.logger = s.logger
	policy := s.retries
	return &Client{
		http: &http.Client{Transport: &throttleTransport{creds: s.creds, base: &retry.Transport{
			Base:   &stallTransport{base: base, timeout: s.stall},
			Policy: func() retry.Policy { return policy },
		}}},
		creds:     s.creds,
		cache:     auth.NewCache(),
		userAgent: s.userAgent,
		plainHTTP: s.plainHTTP,
		logger:    s.logger,
		retries:   s.retries,
	}, nil
}

// Repository opens "host[:port]/path". It makes no request. A malformed name
// is ErrInvalid.
func (c *Client) Repository(name string) (*Repository, error) {
	ref, err := registry.ParseReference(name)
	if err != nil || ref.Reference != "" {
		return nil, fmt.Errorf("%w: repository name %q, want host/path without tag or digest", ErrInvalid, name)
	}
	r := &remote.Repository{
		Client:               sessionClient{c.authClient()},
		Reference:            ref,
		PlainHTTP:            c.isPlainHTTP(ref.Registry),
		TagListPageSize:      tagPageSize,
		TagListMaxPages:      pageLimit,
		ReferrerListMaxPages: pageLimit,
		MaxMetadataBytes:     metadataLimit,
		// Deleting the outdated referrers index needs a permission that
		// publishers often lack, and a reader may be about to fetch it.
		SkipReferrersGC: true,
		HandleWarning: func(w remote.Warning) {
			c.logger.Warn("registry warning", "repository", name, "text", w.Text)
		},
	}
	return &Repository{remote: r, name: name, client: c}, nil
}

func (c *Client) authClient() *auth.Client {
	a := &auth.Client{Client: c.http, Cache: c.cache}
	a.SetUserAgent(c.userAgent)
	if c.creds != nil {
		a.Credential = c.creds.oras
	}
	return a
}

func (c *Client) isPlainHTTP(host string) bool {
	if c.plainHTTP[host] {
		return true
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if name == "localhost" {
		return true
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return ip != nil && ip.IsLoopback()
}
