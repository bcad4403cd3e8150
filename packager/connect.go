package packager

import (
	"fmt"
	"log/slog"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// ConnectOptions say how to speak to registries. The zero value reads public
// repositories over TLS.
type ConnectOptions struct {
	// CredentialFiles are files in Docker's format, the first that knows a
	// registry wins; credential helpers that they name are used.
	CredentialFiles []string
	// CAFile holds certificate authorities in PEM, in place of the system's.
	CAFile string
	// PlainHTTP names registries, "host[:port]", that are spoken to without TLS.
	// Loopback addresses always are.
	PlainHTTP []string
	// Logger gets retries and warnings; nil discards them.
	Logger *slog.Logger
}

// Connect opens a repository, "host[:port]/path". It makes no request, so it
// says nothing about whether the repository exists. A malformed name is
// [ErrReference].
func Connect(name string, opts ConnectOptions) (Repository, error) {
	repository, identifier, err := ParseReference(name)
	if err != nil {
		return nil, err
	}
	if identifier != "" {
		return nil, fmt.Errorf("%w %q: leave out what follows the repository", ErrReference, name)
	}
	options := []ociregistry.Option{ociregistry.WithPlainHTTP(opts.PlainHTTP...)}
	if opts.Logger != nil {
		options = append(options, ociregistry.WithLogger(opts.Logger))
	}
	if opts.CAFile != "" {
		options = append(options, ociregistry.WithHostTLS("", ociregistry.HostTLS{CAFile: opts.CAFile}))
	}
	if len(opts.CredentialFiles) > 0 {
		store, err := ociregistry.OpenCredentialStore(false, opts.CredentialFiles...)
		if err != nil {
			return nil, err
		}
		options = append(options, ociregistry.WithCredentials(store.Get))
	}
	client, err := ociregistry.NewClient(options...)
	if err != nil {
		return nil, err
	}
	repo, err := client.Repository(repository)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReference, err)
	}
	return repo, nil
}
