package ociregistry

import (
	"cmp"
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
	if base == nil {
		if base, err = newTransport(opts.TLS, opts.CertificateFolders); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTLSFiles, err)
		}
	}
	plainHTTP := map[string]bool{}
	for _, host := range opts.PlainHTTP {
		plainHTTP[host] = true
	}
	return &Client{
		http: &http.Client{Transport: &throttleTransport{creds: creds, base: &retry.Transport{
			Base:   &stallTransport{base: base, timeout: cmp.Or(opts.StallTimeout, 30*time.Second)},
			Policy: func() retry.Policy { return policy },
		}}},
		creds:     creds,
		cache:     auth.NewCache(),
		userAgent: cmp.Or(opts.UserAgent, "fleeting-plugin"),
		plainHTTP: plainHTTP,
		logger:    policy.logger,
		retries:   policy,
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
