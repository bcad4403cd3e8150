package installer

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// RegistryOptions say how registries are spoken to. The zero value reads what is
// public, over TLS, with the system's certificate authorities and proxies.
type RegistryOptions struct {
	// Credentials gives the credential for a host, with its port if it has one;
	// the zero Credential where there is none. It may be called at any time and
	// from several goroutines.
	Credentials func(ctx context.Context, host string) (Credential, error)
	// PlainHTTP names hosts, with their port if any, that are spoken to without
	// TLS. Loopback addresses always are.
	PlainHTTP []string
	// TLS has certificate authorities and client certificates by host; the entry
	// for the empty host is for all others.
	TLS map[string]TLSFiles
	// CertificateFolders are laid out as docker's certs.d, HOST[:PORT]/*.crt,
	// *.cert and *.key, for hosts that TLS does not name.
	CertificateFolders []string
	// Transport replaces the HTTP transport beneath retries and time limits; TLS
	// and CertificateFolders then have no effect.
	Transport http.RoundTripper
	// UserAgent is sent with every request.
	UserAgent string
	// Mirrors says where plugins are really fetched from: the longest key that a
	// name begins with, at a slash, is replaced by its value. Policies, receipts
	// and folders go by the name before.
	Mirrors map[string]string
	// Logger receives retries and warnings.
	Logger *slog.Logger
}

// Credential is what a registry asks for. The zero value means none.
type Credential struct {
	Username, Password string
	// IdentityToken is an OAuth2 refresh token.
	IdentityToken string
	// AccessToken is sent as a bearer token as it is.
	AccessToken string
}

// TLSFiles names files in PEM form. Empty fields mean the system's certificate
// authorities, and no client certificate.
type TLSFiles struct{ CAFile, CertFile, KeyFile string }

// Registries opens repositories in registries. It makes no request; it reads the
// files of TLS.
func Registries(opts RegistryOptions) (Opener, error) {
	var settings []ociregistry.Option
	if opts.Credentials != nil {
		settings = append(settings, ociregistry.WithCredentials(func(ctx context.Context, host string) (ociregistry.Credential, error) {
			c, err := opts.Credentials(ctx, host)
			return ociregistry.Credential(c), err
		}))
	}
	settings = append(settings, ociregistry.WithPlainHTTP(opts.PlainHTTP...))
	for host, files := range opts.TLS {
		settings = append(settings, ociregistry.WithHostTLS(host, ociregistry.HostTLS(files)))
	}
	settings = append(settings, ociregistry.WithCertificateFolders(opts.CertificateFolders...))
	if opts.Transport != nil {
		settings = append(settings, ociregistry.WithTransport(opts.Transport))
	}
	if opts.UserAgent != "" {
		settings = append(settings, ociregistry.WithUserAgent(opts.UserAgent))
	}
	if opts.Logger != nil {
		settings = append(settings, ociregistry.WithLogger(opts.Logger))
	}
	client, err := ociregistry.NewClient(settings...)
	if err != nil {
		return nil, err
	}
	return WithMirrors(FromRegistries(client), opts.Mirrors), nil
}

// WithMirrors lets an opener look elsewhere than references say; see
// [RegistryOptions]. A mirror needs no trust: what comes from it is verified like
// everything else.
func WithMirrors(open Opener, mirrors map[string]string) Opener {
	if len(mirrors) == 0 {
		return open
	}
	return func(ctx context.Context, ref Reference) (Source, error) {
		name, ok := mirrored(ref.Name(), mirrors)
		if !ok {
			return open(ctx, ref)
		}
		elsewhere, err := ParseReference(name)
		if err != nil {
			return nil, err
		}
		return open(ctx, elsewhere)
	}
}

// mirrored replaces the longest prefix of the name that has a mirror.
func mirrored(name string, mirrors map[string]string) (string, bool) {
	best, found := "", false
	for from := range mirrors {
		if (name == from || strings.HasPrefix(name, from+"/")) && (!found || len(from) > len(best)) {
			best, found = from, true
		}
	}
	if !found {
		return "", false
	}
	return mirrors[best] + strings.TrimPrefix(name, best), true
}
