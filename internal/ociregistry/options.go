package ociregistry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Options say how registries are spoken to. The zero value reads what is public,
// over TLS, with the system's certificate authorities and proxies.
type Options struct {
	// Credentials returns the credential for a host, with its port if it has one;
	// the zero Credential where there is none. It may be called at any time and
	// from several goroutines.
	Credentials CredentialFunc
	// CredentialFiles are files in Docker's format, for hosts that Credentials has
	// nothing for: the first that knows the host wins. Credential helpers that
	// they name are used. Files that do not exist count as empty.
	CredentialFiles []string
	// CredentialStore is asked in place of Credentials and CredentialFiles.
	CredentialStore *CredentialStore
	// PlainHTTP names hosts, with their port if any, that are spoken to without
	// TLS. A server on a loopback address is, too, if it has none and nothing says
	// that it must: TLSHosts, TLS, CertificateFolders.
	PlainHTTP []string
	// TLSHosts names hosts, with their port if any, that must have TLS although they
	// are on a loopback address.
	TLSHosts []string
	// TLS has certificate authorities and client certificates by host; the entry
	// for the empty host is for all others.
	TLS map[string]TLSFiles
	// CertificateFolders are laid out as docker's and podman's certs.d
	// (https://docs.docker.com/engine/security/certificates/): FOLDER/HOST[:PORT]
	// holds the certificate authorities of a host as *.crt, and its client
	// certificate as NAME.cert with NAME.key. Where a host has *.crt there, only
	// those are trusted for it. The first folder that has the host counts; a host
	// of TLS is not looked for. A folder is read when its host is first spoken to;
	// what is wrong with it is the error of that request.
	CertificateFolders []string
	// Transport replaces the HTTP transport beneath retries and time limits; TLS
	// and CertificateFolders then have no effect.
	Transport http.RoundTripper
	// UserAgent is sent with every request; empty means fleeting-plugin.
	UserAgent string
	// Logger receives retries and warnings; nil discards them.
	Logger *slog.Logger
	// Retries is how often a failed request is repeated: 0 means five times, a
	// negative number never.
	Retries int
	// FirstWait is the wait before the first repetition, 0 means 250 ms; it
	// doubles up to 5 s. A Retry-After of at most 30 s is honoured instead.
	FirstWait time.Duration
	// StallTimeout is how long a connection may carry next to nothing, less than a
	// kilobyte, before it is cut and the request repeated; 0 means 30 s. A credential
	// helper of CredentialFiles may take as long.
	StallTimeout time.Duration
	// MaxRequests and MaxBytes bound what the client asks and receives in all, of
	// whatever registries; 0 is no limit. Beyond, everything is ErrTooLarge.
	MaxRequests, MaxBytes int64
}

// TLSFiles names the files of a host's TLS setup, all in PEM. Empty fields mean
// the system's certificate authorities and no client certificate. CAFile may be
// a folder, of which all *.crt are read.
type TLSFiles struct{ CAFile, CertFile, KeyFile string }

func (o Options) credentials() (nameCredentials, error) {
	if o.CredentialStore != nil {
		return o.CredentialStore.Get, nil
	}
	store, err := OpenCredentialStore(CredentialSources{Files: o.CredentialFiles, HelperTimeout: o.StallTimeout})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, name string) (Credential, error) {
		if o.Credentials != nil {
			host, _, _ := strings.Cut(name, "/")
			if c, err := o.Credentials(ctx, host); err != nil || !c.IsZero() {
				return c, err
			}
		}
		return store.Get(ctx, name)
	}, nil
}

func (o Options) retries() (retries, error) {
	if o.FirstWait < 0 || o.StallTimeout < 0 || o.MaxRequests < 0 || o.MaxBytes < 0 {
		return retries{}, fmt.Errorf("%w: first wait %v, stall timeout %v, at most %d requests and %d bytes",
			ErrInvalid, o.FirstWait, o.StallTimeout, o.MaxRequests, o.MaxBytes)
	}
	r := retries{count: o.Retries, firstWait: o.FirstWait, logger: o.Logger}
	if r.count == 0 {
		r.count = 5
	}
	r.count = max(r.count, 0)
	if r.firstWait == 0 {
		r.firstWait = 250 * time.Millisecond
	}
	if r.logger == nil {
		r.logger = slog.New(slog.DiscardHandler)
	}
	return r, nil
}
