package packager

import (
	"fmt"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// ConnectOptions say how to speak to registries: credentials, certificates,
// retries. The zero value reads public repositories over TLS.
type ConnectOptions = ociregistry.Options

// Credential is what [ConnectOptions] give a registry; the zero value means none.
type Credential = ociregistry.Credential

// TLSFiles names certificate files in [ConnectOptions].
type TLSFiles = ociregistry.TLSFiles

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
	client, err := ociregistry.NewClient(opts)
	if err != nil {
		return nil, err
	}
	repo, err := client.Repository(repository)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReference, err)
	}
	return repo, nil
}
