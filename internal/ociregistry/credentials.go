package ociregistry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry"
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

// nameCredentials returns the credential for a repository, "host[:port]/path", or
// for a whole registry, "host[:port]".
type nameCredentials func(ctx context.Context, name string) (Credential, error)

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

// CredentialSources are the places of credentials, in the order in which they are
// asked. The first that has any for a repository decides.
type CredentialSources struct {
	// Contents are configurations in Docker's format that are in no file, such as
	// that in a variable, by their names in messages.
	Contents []NamedContent
	// Files are config files in Docker's format. Podman's auth.json has the same
	// format. Files that do not exist count as empty. The first is written to.
	Files []string
	// Last is asked for a host if nothing else has a credential.
	Last CredentialFunc
	// AllowPlainText lets a password be written into the first file if no helper is
	// configured there.
	AllowPlainText bool
	// HelperTimeout is how long a credential helper may take; 0 means 30 s.
	HelperTimeout time.Duration
}

// NamedContent is a configuration with its name in messages.
type NamedContent struct {
	Name    string
	Content []byte
}

// CredentialStore finds credentials in configurations, and with the credential
// helpers that they name. Get may be called by several goroutines at once.
type CredentialStore struct {
	configs []*authConfig
	sources CredentialSources
}

// OpenCredentialStore reads the configurations. One that cannot be read is
// [ErrConfig], or an error of the file system.
func OpenCredentialStore(sources CredentialSources) (*CredentialStore, error) {
	s := &CredentialStore{sources: sources}
	for _, c := range sources.Contents {
		config, err := parseAuthConfig(c.Name, c.Content)
		if err != nil {
			return nil, err
		}
		s.configs = append(s.configs, config)
	}
	for _, path := range sources.Files {
		config, err := readAuthConfig(path)
		if err != nil {
			return nil, err
		}
		s.configs = append(s.configs, config)
	}
	return s, nil
}

// Get returns the credential for a repository, "host[:port]/path", or for a whole
// registry, "host[:port]"; the zero Credential if there is none. In each
// configuration the most specific entry wins, as containers-auth.json(5) has it.
// Errors are [ErrConfig] and [ErrHelper].
func (s *CredentialStore) Get(ctx context.Context, name string) (Credential, error) {
	for _, config := range s.configs {
		c, err := config.get(ctx, name, s.helperTimeout())
		if err != nil || !c.IsZero() {
			return c, err
		}
	}
	if s.sources.Last == nil {
		return Credential{}, nil
	}
	host, _, _ := strings.Cut(name, "/")
	return s.sources.Last(ctx, host)
}

// TLSHosts are the hosts of which an entry says that they have TLS, as login with
// https:// writes it. Elsewhere than on loopback that goes without saying.
func (s *CredentialStore) TLSHosts() []string {
	var hosts []string
	for _, config := range s.configs {
		for key := range config.Auths {
			if rest, isTLS := withoutScheme(key); isTLS {
				host, _, _ := strings.Cut(rest, "/")
				hosts = append(hosts, strings.ToLower(host))
			}
		}
	}
	return hosts
}

func (s *CredentialStore) helperTimeout() time.Duration {
	return cmp.Or(s.sources.HelperTimeout, 30*time.Second)
}

// own is the configuration that is written to, as it is now, with its file.
func (s *CredentialStore) own() (*authConfig, string, error) {
	if len(s.sources.Files) == 0 {
		return nil, "", fmt.Errorf("%w: no credential file named", ErrInvalid)
	}
	path := s.sources.Files[0]
	config, err := readAuthConfig(path)
	if err == nil {
		s.configs[len(s.sources.Contents)] = config
	}
	return config, path, err
}

// Login tries the credential against a registry, "[https://]host[:port]", and
// stores it only if the registry takes it. With https:// it must have TLS, now and
// later. Where plain text is not allowed and there is no credential helper, the
// error is [ErrNoHelper]; what is no server, and a user name that no registry can
// be told, are [ErrInvalid].
func (s *CredentialStore) Login(ctx context.Context, c *Client, server string, cred Credential) error {
	host, mustTLS, err := ParseServer(server)
	if err != nil {
		return err
	}
	if strings.Contains(cred.Username, ":") {
		// RFC 7617, section 2: the password begins behind the first colon.
		return fmt.Errorf("%w: user name %q: it has a colon in it", ErrInvalid, cred.Username)
	}
	err = c.try(ctx, host, mustTLS, cred)
	if err == nil {
		err = s.put(ctx, host, mustTLS, cred)
	}
	if err == nil {
		_, _, err = s.own() // what was written is found from now on
	}
	return wrap("log in to", host, err)
}

// try asks a registry whether it takes a credential.
func (c *Client) try(ctx context.Context, host string, mustTLS bool, cred Credential) error {
	ref := registry.Reference{Registry: host}
	creds := CredentialFunc(func(context.Context, string) (Credential, error) { return cred, nil })
	a := &auth.Client{Client: &http.Client{Transport: &throttleTransport{creds: creds, base: c.transport}}, Credential: creds.oras}
	a.SetUserAgent(c.userAgent)
	repo := &Repository{ref: ref, name: host, client: c, auth: a, known: newManifests()}
	scheme := "https"
	if !mustTLS {
		plain, err := c.schemes.plainHTTP(ctx, host)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrTLSFiles, err)
		}
		if plain {
			scheme = "http"
		}
	}
	resp, err := repo.do(ctx, request{method: http.MethodGet, url: scheme + "://" + ref.Host() + "/v2/"})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// PlainHTTP says whether a registry is spoken to without TLS.
func (c *Client) PlainHTTP(ctx context.Context, host string) (bool, error) {
	plain, err := c.schemes.plainHTTP(ctx, host)
	return plain, wrap("speak to", host, err)
}

// put stores a credential with the helper that is configured, or in the file.
func (s *CredentialStore) put(ctx context.Context, host string, mustTLS bool, cred Credential) error {
	config, path, err := s.own()
	if err != nil {
		return err
	}
	if h, ok := config.helperFor(host); ok {
		return h.store(ctx, serverAddress(host), cred, s.helperTimeout())
	}
	if !s.sources.AllowPlainText {
		return ErrNoHelper
	}
	file, err := credentials.NewFileStore(linked(path))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	// One entry a host: the other spelling would be found as well.
	key := serverAddress(host)
	if mustTLS && !strings.Contains(key, "/") {
		key = "https://" + host
	}
	for _, old := range config.spellings(host) {
		if old != key {
			if err := withoutPartial(file.Delete(ctx, old)); err != nil {
				return err
			}
		}
	}
	return withoutPartial(file.Put(ctx, key, toORAS(cred)))
}

// Logout forgets the credential of a registry, written as for Login. Where none is
// kept, it is [ErrNotFound].
func (s *CredentialStore) Logout(ctx context.Context, server string) error {
	host, _, err := ParseServer(server)
	if err != nil {
		return err
	}
	err = s.forget(ctx, host)
	if err == nil {
		_, _, err = s.own()
	}
	return wrap("log out of", host, err)
}

func (s *CredentialStore) forget(ctx context.Context, host string) error {
	config, path, err := s.own()
	if err != nil {
		return err
	}
	kept, err := s.Get(ctx, host)
	if err != nil {
		return err
	}
	if kept.IsZero() {
		return fmt.Errorf("%w: no credentials are stored for it", ErrNotFound)
	}
	if h, ok := config.helperFor(host); ok {
		if err := h.erase(ctx, serverAddress(host), s.helperTimeout()); err != nil {
			return err
		}
	}
	file, err := credentials.NewFileStore(linked(path))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	for _, key := range config.spellings(host) {
		if err := withoutPartial(file.Delete(ctx, key)); err != nil {
			return err
		}
	}
	return nil
}

// linksFollowed bounds how many links lead to a file of credentials.
const linksFollowed = 40

// linked is the file that a symbolic link leads to, there or not: putting another
// file in place of the link would leave what it is for as it was.
func linked(path string) string {
	at := path
	for range linksFollowed {
		to, err := os.Readlink(at)
		if err != nil {
			return at
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(at), to)
		}
		at = to
	}
	return path
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
