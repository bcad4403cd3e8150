package ociregistry

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// Options say how registries are spoken to. The zero value reads what is public,
// over TLS, with the system's certificate authorities and proxies.
type Options struct {
	// Credentials gives the credential for a host, with its port if it has one;
	// the zero Credential where there is none. It may be called at any time and
	// from several goroutines.
	Credentials CredentialFunc
	// CredentialFiles are files in Docker's format, for hosts that Credentials has
	// nothing for: the first that knows the host wins. Credential helpers that
	// they name are used. Files that do not exist count as empty.
	CredentialFiles []string
	// PlainHTTP names hosts, with their port if any, that are spoken to without
	// TLS. Loopback addresses always are.
	PlainHTTP []string
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
	// StallTimeout is how long a connection may carry no byte before it is cut and
	// the request repeated; 0 means 30 s.
	StallTimeout time.Duration
}

// TLSFiles names the files of a host's TLS setup, all in PEM. Empty fields mean
// the system's certificate authorities and no client certificate. CAFile may be
// a folder, of which all *.crt are read.
type TLSFiles struct{ CAFile, CertFile, KeyFile string }

func (o Options) credentials() (CredentialFunc, error) {
	if len(o.CredentialFiles) == 0 {
		return o.Credentials, nil
	}
	store, err := OpenCredentialStore(false, o.CredentialFiles...)
	if err != nil {
		return nil, err
	}
	if o.Credentials == nil {
		return store.Get, nil
	}
	return FirstCredential(o.Credentials, store.Get), nil
}

func (o Options) retries() (retries, error) {
	if o.FirstWait < 0 || o.StallTimeout < 0 {
		return retries{}, fmt.Errorf("%w: first wait %v, stall timeout %v", ErrInvalid, o.FirstWait, o.StallTimeout)
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
