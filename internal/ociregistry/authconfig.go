package ociregistry

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry"

	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

// authConfigLimit bounds a configuration, in bytes.
const authConfigLimit = 4 << 20

// authConfig is a configuration in Docker's format, as far as it is about
// credentials.
type authConfig struct {
	// name is the file, or the variable, that it is from.
	name string

	Auths       map[string]authEntry `json:"auths"`
	CredHelpers map[string]string    `json:"credHelpers"`
	CredsStore  string               `json:"credsStore"`
}

// authEntry is an entry of auths.
type authEntry struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

func readAuthConfig(path string) (*authConfig, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &authConfig{name: path}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, authConfigLimit+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return parseAuthConfig(path, content)
}

func parseAuthConfig(name string, content []byte) (*authConfig, error) {
	c := &authConfig{name: name}
	if len(content) > authConfigLimit {
		return nil, fmt.Errorf("%w: %s: over %d bytes", ErrConfig, name, authConfigLimit)
	}
	content, err := textfile.UTF8(content)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, name, err)
	}
	if content = bytes.TrimSpace(content); len(content) == 0 {
		return c, nil
	}
	// The text of the decoder's error could have part of a password in it.
	if err := json.Unmarshal(content, c); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, fmt.Errorf("%w: %s: %s is a %s", ErrConfig, name, wrong.Field, wrong.Value)
		}
		return nil, fmt.Errorf("%w: %s is not JSON", ErrConfig, name)
	}
	return c, nil
}

// get finds the most specific entry for a name: one of auths with more of its path
// than the host, else the helper of the host, its entry in auths, and at last the
// helper for everything. An entry without anything in it is what docker leaves
// where a helper has the secret.
func (c *authConfig) get(ctx context.Context, name string, timeout time.Duration) (Credential, error) {
	host := serverOf(name)
	keys := slices.Sorted(maps.Keys(c.Auths))
	slices.SortStableFunc(keys, func(a, b string) int { return len(entryName(b)) - len(entryName(a)) })
	helper, hasHelper := c.hostHelper(host)
	for _, key := range keys {
		entry := entryName(key)
		if entry != canonical(name) && !strings.HasPrefix(canonical(name), entry+"/") || c.Auths[key] == (authEntry{}) {
			continue
		}
		if hasHelper && entry == host {
			break
		}
		return c.Auths[key].credential(c.name, key)
	}
	if !hasHelper {
		helper, hasHelper = c.storeHelper()
	}
	if !hasHelper {
		return Credential{}, nil
	}
	return helper.get(ctx, serverAddress(host), timeout)
}

// helperFor is the helper that keeps the credential of a host.
func (c *authConfig) helperFor(host string) (helper, bool) {
	if h, ok := c.hostHelper(host); ok {
		return h, true
	}
	return c.storeHelper()
}

func (c *authConfig) hostHelper(host string) (helper, bool) {
	for _, key := range slices.Sorted(maps.Keys(c.CredHelpers)) {
		if serverOf(key) == host && c.CredHelpers[key] != "" {
			return helper{name: c.CredHelpers[key], config: c.name, key: fmt.Sprintf("credHelpers, for %s", key)}, true
		}
	}
	return helper{}, false
}

func (c *authConfig) storeHelper() (helper, bool) {
	return helper{name: c.CredsStore, config: c.name, key: "credsStore"}, c.CredsStore != ""
}

// spellings are the keys of auths for a whole registry.
func (c *authConfig) spellings(host string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Auths)), func(key string) bool { return entryName(key) != host })
}

func (e authEntry) credential(config, key string) (Credential, error) {
	c := Credential{
		Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken, AccessToken: e.RegistryToken,
	}
	if e.Auth == "" {
		return c, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(e.Auth)
	user, password, ok := strings.Cut(strings.TrimRight(string(decoded), "\x00"), ":")
	if err != nil || !ok {
		return Credential{}, fmt.Errorf("%w: %s: auth of %s is not user:password in base64", ErrConfig, config, key)
	}
	c.Username, c.Password = user, password
	return c, nil
}

// canonical brings the spellings of a name into one: no scheme, the host in lower
// case, and one name for Docker Hub.
func canonical(name string) string {
	name, _ = withoutScheme(name)
	host, path, found := strings.Cut(name, "/")
	host = strings.ToLower(host)
	switch host {
	case "docker.io", "index.docker.io", "registry-1.docker.io":
		host = "docker.io"
	}
	if !found {
		return host
	}
	return host + "/" + path
}

// withoutScheme takes http:// or https:// off a name, and says whether it was the
// latter.
func withoutScheme(name string) (rest string, isTLS bool) {
	scheme, rest, found := strings.Cut(name, "://")
	switch {
	case found && strings.EqualFold(scheme, "https"):
		return rest, true
	case found && strings.EqualFold(scheme, "http"):
		return rest, false
	}
	return name, false
}

// ParseServer reads the name of a registry as people write it,
// "[https://]host[:port][/]", and says whether it has to have TLS. Docker ends
// addresses in /v1/ or /v2/, which is left out. What names no registry, more than
// one, or plain HTTP, is [ErrInvalid].
func ParseServer(text string) (host string, mustTLS bool, err error) {
	_, mustTLS = withoutScheme(text)
	host = entryName(text)
	ref := registry.Reference{Registry: host}
	switch scheme, _, found := strings.Cut(text, "://"); {
	case found && !mustTLS:
		return "", false, fmt.Errorf("%w: registry %q: %s:// cannot be asked for", ErrInvalid, text, scheme)
	case strings.Contains(host, "/"):
		return "", false, fmt.Errorf("%w: registry %q: it has a path", ErrInvalid, text)
	case host == "" || ref.ValidateRegistry() != nil:
		return "", false, fmt.Errorf("%w: registry %q: want HOST or HOST:PORT", ErrInvalid, text)
	}
	return host, mustTLS, nil
}

// entryName is what an entry of auths is about. Docker ends the addresses of
// registries in the version of their interface.
func entryName(key string) string {
	name := strings.TrimRight(canonical(key), "/")
	host, path, _ := strings.Cut(name, "/")
	if strings.EqualFold(path, "v1") || strings.EqualFold(path, "v2") {
		return host
	}
	return name
}

// serverOf is the host of a name or address.
func serverOf(name string) string {
	host, _, _ := strings.Cut(canonical(name), "/")
	return host
}

// serverAddress is how docker writes the address of a host.
func serverAddress(host string) string {
	if host == "docker.io" {
		return "https://index.docker.io/v1/"
	}
	return host
}
