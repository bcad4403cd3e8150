package ociregistry

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"
)

const (
	// pageBytes bounds one page of a listing, listingLimit all of them, in bytes.
	pageBytes    = 8 << 20
	listingLimit = 16 << 20
	// pageLimit bounds the pages of one listing.
	pageLimit = 1000
	// tagPageSize is how many tags one page asks for, tagLimit how many tags a
	// repository may have.
	tagPageSize = 1000
	tagLimit    = 100_000
	// listingValues bounds the JSON values of an entry in a list of referrers, on
	// average, and of a list of tags beside its tags.
	listingValues = 200
)

// Client opens repositories of any registry. It is safe for concurrent use;
// its repositories share connections and settings.
type Client struct {
	transport http.RoundTripper
	creds     nameCredentials
	userAgent string
	schemes   *schemes
	logger    *slog.Logger
	retries   retries

	// told are the warnings of registries that were passed on.
	told sync.Map

	mu     sync.Mutex
	caches map[string]auth.Cache
}

// NewClient returns a client. It makes no request; it reads the files of
// [Options.TLS], and fails with [ErrTLSFiles] if one cannot be used.
func NewClient(opts Options) (*Client, error) {
	creds, err := opts.credentials()
	if err != nil {
		return nil, err
	}
	policy, err := opts.retries()
	if err != nil {
		return nil, err
	}
	base := opts.Transport
	s := &schemes{plain: asSet(opts.PlainHTTP), tls: asSet(opts.TLSHosts), decided: map[string]bool{}, logger: policy.logger}
	if base == nil {
		byHost, err := newTransport(opts.TLS, opts.CertificateFolders)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTLSFiles, err)
		}
		base, s.probe = byHost, byHost
	}
	watched := &stallTransport{
		base: base, timeout: cmp.Or(opts.StallTimeout, 30*time.Second),
		limits: &limits{maxRequests: opts.MaxRequests, maxBytes: opts.MaxBytes},
	}
	return &Client{
		transport: challengeTransport{pageTransport{&retry.Transport{Base: watched, Policy: func() retry.Policy { return policy }}}},
		creds:     creds,
		userAgent: cmp.Or(opts.UserAgent, "fleeting-plugin"),
		schemes:   s,
		logger:    policy.logger,
		retries:   policy,
		caches:    map[string]auth.Cache{},
	}, nil
}

func asSet(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[strings.ToLower(name)] = true
	}
	return set
}

// Repository opens "host[:port]/path". It makes no request. A malformed name
// is ErrInvalid.
func (c *Client) Repository(name string) (*Repository, error) {
	ref, err := registry.ParseReference(name)
	if err != nil || ref.Reference != "" {
		return nil, fmt.Errorf("%w: repository name %q, want host/path without tag or digest", ErrInvalid, name)
	}
	return &Repository{ref: ref, name: name, client: c, auth: c.authClient(name), known: newManifests()}, nil
}

// authClient answers the challenges of one repository, whose credentials may be
// others than its neighbour's.
func (c *Client) authClient(name string) *auth.Client {
	creds := func(ctx context.Context, _ string) (Credential, error) { return c.creds(ctx, name) }
	a := &auth.Client{
		Client: &http.Client{Transport: &throttleTransport{creds: creds, base: c.transport}},
		Cache:  c.cache(name), Credential: CredentialFunc(creds).oras,
	}
	a.SetUserAgent(c.userAgent)
	return a
}

func (c *Client) cache(name string) auth.Cache {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caches[name] == nil {
		c.caches[name] = auth.NewCache()
	}
	return c.caches[name]
}
