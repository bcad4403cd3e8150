package installer

import (
	"context"
	"fmt"
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
//
// Keys and values are a registry, or a registry and the beginning of a repository;
// both are read as a [Reference] is. A key that no name begins with, and two keys
// for the same names, are [ErrInvalid] (reference).
func WithMirrors(open Opener, mirrors map[string]string) (Opener, error) {
	prefixes := map[string]string{}
	for from, to := range mirrors {
		key, err := parsePrefix(from)
		if err == nil {
			_, err = parsePrefix(to)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: mirror %s=%s: %w", errInvalidReference, from, to, err)
		}
		if _, twice := prefixes[key]; twice {
			return nil, fmt.Errorf("%w: two mirrors for %s", errInvalidReference, key)
		}
		prefixes[key] = to
	}
	if len(prefixes) == 0 {
		return open, nil
	}
	return func(ctx context.Context, ref Reference) (Source, error) {
		name, ok := mirrored(ref.Name(), prefixes)
		if !ok {
			return open(ctx, ref)
		}
		elsewhere, err := ParseReference(name)
		if err != nil {
			return nil, err
		}
		return open(ctx, elsewhere)
	}, nil
}

// parsePrefix reads a registry, or a registry and the beginning of a repository,
// and gives it in one spelling.
func parsePrefix(text string) (string, error) {
	registry, repository, nested := strings.Cut(text, "/")
	if !looksLikeHost(registry) {
		return "", fmt.Errorf("%q begins with no registry", text)
	}
	if err := checkRegistry(registry); err != nil {
		return "", err
	}
	if !nested {
		return oneHost(registry), nil
	}
	if err := checkRepository(repository); err != nil {
		return "", err
	}
	return oneHost(registry) + "/" + repository, nil
}

// mirrored replaces the longest prefix of the name that has a mirror.
func mirrored(name string, mirrors map[string]string) (string, bool) {
	name = oneSpelling(name)
	best, found := "", false
	for from := range mirrors {
		// An official image of Docker Hub has a short name, too.
		official := name == strings.Replace(from, dockerHub+"/", dockerHub+"/library/", 1)
		if (name == from || official || strings.HasPrefix(name, from+"/")) && (!found || len(from) > len(best)) {
			best, found = from, true
		}
	}
	switch rest, beneath := strings.CutPrefix(name, best); {
	case !found:
		return "", false
	case beneath:
		return mirrors[best] + rest, true
	}
	return mirrors[best], true
}
