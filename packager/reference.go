package packager

import (
	"fmt"
	"strings"
)

// ParseReference splits "host[:port]/path:tag" or "host[:port]/path@digest"
// into the repository's name and the tag or digest, which is empty if the
// reference has none. A reference without a host is refused with
// [ErrReference]: publishing to a guessed registry helps nobody.
func ParseReference(s string) (repository, identifier string, err error) {
	if _, rest, ok := strings.Cut(s, "://"); ok {
		return "", "", fmt.Errorf("%w %q: it has a scheme: write %s", ErrReference, s, rest)
	}
	name, digest, hasDigest := strings.Cut(s, "@")
	repository, identifier = name, digest
	if !hasDigest {
		if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
			repository, identifier = name[:i], name[i+1:]
			if identifier == "" {
				return "", "", fmt.Errorf("%w %q: nothing follows the colon", ErrReference, s)
			}
		}
	}
	host, path, ok := strings.Cut(repository, "/")
	if !ok || host == "" || path == "" || (!strings.ContainsAny(host, ".:") && host != "localhost") {
		return "", "", fmt.Errorf("%w %q: it must name the registry, as in registry.example.com/group/plugin:1.2.3", ErrReference, s)
	}
	if hasDigest && !strings.HasPrefix(digest, "sha256:") {
		return "", "", fmt.Errorf("%w %q: what follows the @ must be a sha256 digest", ErrReference, s)
	}
	return repository, identifier, nil
}
