package installer

import (
	"context"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// RegistryOptions say how registries are spoken to. The zero value reads what is
// public, over TLS, with the system's certificate authorities and proxies. The
// fields, each with its own zero value for a default:
//
//   - Credentials func(ctx, host) (Credential, error), and CredentialFiles in
//     Docker's format for hosts that it has nothing for;
//   - TLS map[string]TLSFiles by host, "" for all others; CertificateFolders laid
//     out as docker's and podman's certs.d; PlainHTTP hosts to speak to without;
//   - Retries of a failed request (0 is five, negative none), FirstWait before the
//     first (0 is 250 ms, it doubles up to 5 s), StallTimeout after which a silent
//     connection is cut (0 is 30 s);
//   - Transport beneath all that, UserAgent, and a Logger for retries.
type RegistryOptions = ociregistry.Options

// Credential is what a registry asks for: Username and Password, or an
// IdentityToken or AccessToken. The zero value means none.
type Credential = ociregistry.Credential

// TLSFiles names PEM files of one host in [RegistryOptions]: CAFile, a file or a
// folder of *.crt, and CertFile with KeyFile for a client certificate.
type TLSFiles = ociregistry.TLSFiles

// Registries opens repositories in the registries that references name. It is
// safe for concurrent use; what it opens shares connections and tokens.
type Registries struct{ client *ociregistry.Client }

// NewRegistries makes no request; it reads the files of the options, and fails
// if one cannot be used.
func NewRegistries(opts RegistryOptions) (*Registries, error) {
	client, err := ociregistry.NewClient(opts)
	if err != nil {
		return nil, err
	}
	return &Registries{client}, nil
}

// Open is an [Opener].
func (r *Registries) Open(_ context.Context, ref Reference) (Source, error) {
	repo, err := r.client.Repository(ref.pullName())
	if err != nil {
		return nil, err
	}
	return repo, nil
}

// Destination is a repository to mirror to, "host[:port]/path".
func (r *Registries) Destination(name string) (Destination, error) {
	repo, err := r.client.Repository(name)
	if err != nil {
		return nil, err
	}
	return repo, nil
}

// WithMirrors lets an opener look elsewhere than references say: of the keys that
// a name begins with, at a slash, the longest is replaced by its value. Policies,
// receipts and folders go by the name before. A mirror needs no trust: what comes
// from it is verified like everything else.
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
