package ociregistry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// Credential is what a registry asks for. The zero value means none.
type Credential struct {
	Username, Password string
	// IdentityToken is an OAuth2 refresh token.
	IdentityToken string
	// AccessToken is sent as a bearer token as it is.
	AccessToken string
}

// IsZero reports whether there is no credential.
func (c Credential) IsZero() bool { return c == Credential{} }

// CredentialFunc returns the credential for a host, with its port if any; the
// zero Credential where there is none.
type CredentialFunc func(ctx context.Context, host string) (Credential, error)

func (f CredentialFunc) oras(ctx context.Context, host string) (auth.Credential, error) {
	c, err := f(ctx, host)
	if err != nil {
		return auth.EmptyCredential, err
	}
	if c.IdentityToken == "" && c.AccessToken == "" && (c.Username == "" || c.Password == "") {
		// Half a credential is none: what is public can be read without, and what
		// is not answers that it wants one.
		return auth.EmptyCredential, nil
	}
	return toORAS(c), nil
}

func toORAS(c Credential) auth.Credential {
	return auth.Credential{
		Username: c.Username, Password: c.Password,
		RefreshToken: c.IdentityToken, AccessToken: c.AccessToken,
	}
}

// FirstCredential tries the functions in order and returns the first
// credential that is not zero.
func FirstCredential(funcs ...CredentialFunc) CredentialFunc {
	return func(ctx context.Context, host string) (Credential, error) {
		for _, f := range funcs {
			c, err := f(ctx, host)
			if err != nil || !c.IsZero() {
				return c, err
			}
		}
		return Credential{}, nil
	}
}

// HelperCredential asks a credential helper, docker-credential-NAME in PATH,
// for the credential of a server; the zero Credential if it has none. A name
// that is more than the end of a file name is [ErrInvalid].
func HelperCredential(ctx context.Context, name, server string) (Credential, error) {
	if name == "" || strings.Trim(name, helperCharacters) != "" {
		return Credential{}, fmt.Errorf("%w: credential helper %q", ErrInvalid, name)
	}
	c, err := credentials.NewNativeStore(name).Get(ctx, server)
	if err != nil {
		return Credential{}, fmt.Errorf("credential helper %s: %w", name, err)
	}
	return Credential{
		Username: c.Username, Password: c.Password, IdentityToken: c.RefreshToken, AccessToken: c.AccessToken,
	}, nil
}

const helperCharacters = "-_.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// CredentialStore is one or more config files in Docker's format, with the
// credential helpers that they name. Podman's auth.json has the same format.
type CredentialStore struct{ store credentials.Store }

// OpenCredentialStore opens config files. The first is written to; the others
// are read where it has nothing. Files that do not exist count as empty.
// Passwords are written in plain text only if no helper is configured and
// allowPlainText is set.
func OpenCredentialStore(allowPlainText bool, paths ...string) (*CredentialStore, error) {
	var stores []credentials.Store
	for _, p := range paths {
		s, err := credentials.NewStore(p, credentials.StoreOptions{
			AllowPlaintextPut: allowPlainText, DetectDefaultNativeStore: false,
		})
		if err != nil {
			return nil, fmt.Errorf("credentials %s: %w", p, err)
		}
		stores = append(stores, s)
	}
	if len(stores) == 0 {
		return nil, fmt.Errorf("%w: no credential file named", ErrInvalid)
	}
	return &CredentialStore{credentials.NewStoreWithFallbacks(stores[0], stores[1:]...)}, nil
}

// Get returns the credential for a host. It is a CredentialFunc.
func (s *CredentialStore) Get(ctx context.Context, host string) (Credential, error) {
	c, err := credentials.Credential(s.store)(ctx, host)
	if err != nil {
		return Credential{}, fmt.Errorf("credentials for %s: %w", host, err)
	}
	return Credential{
		Username: c.Username, Password: c.Password,
		IdentityToken: c.RefreshToken, AccessToken: c.AccessToken,
	}, nil
}

// Login tries the credential against the registry and stores it only if the
// registry takes it. Where plain text is not allowed and there is no credential
// helper, the error is [ErrNoHelper].
func (s *CredentialStore) Login(ctx context.Context, c *Client, host string, cred Credential) error {
	reg, err := remote.NewRegistry(host)
	if err != nil {
		return fmt.Errorf("%w: registry %q: %w", ErrInvalid, host, err)
	}
	reg.PlainHTTP = c.isPlainHTTP(host)
	// Login rejects a client with a credential function of its own, and a
	// shared token cache could answer for the credential that is being tried.
	a := &auth.Client{Client: c.http}
	a.SetUserAgent(c.userAgent)
	reg.Client = a
	err = withoutPartial(credentials.Login(ctx, s.store, reg, toORAS(cred)))
	if errors.Is(err, credentials.ErrPlaintextPutDisabled) {
		err = ErrNoHelper
	}
	return wrap("log in to", host, err)
}

// Logout forgets the credential of a host. Where none is kept, it is
// [ErrNotFound].
func (s *CredentialStore) Logout(ctx context.Context, host string) error {
	kept, err := s.Get(ctx, host)
	if err == nil && kept.IsZero() {
		err = fmt.Errorf("%w: no credentials are stored for it", ErrNotFound)
	}
	if err != nil {
		return wrap("log out of", host, err)
	}
	return wrap("log out of", host, withoutPartial(credentials.Logout(ctx, s.store, host)))
}

// partialFile is how the names of the files begin that oras-go writes
// credentials to before it puts them into place; it leaves one whose writing
// failed, with some of the credentials in it.
const partialFile = "oras_credstore_temp_"

func withoutPartial(err error) error {
	failed, ok := errors.AsType[*fs.PathError](err)
	if !ok || !strings.HasPrefix(filepath.Base(failed.Path), partialFile) {
		return err
	}
	if removal := os.Remove(failed.Path); removal != nil && !errors.Is(removal, fs.ErrNotExist) {
		return errors.Join(err, removal)
	}
	return err
}
