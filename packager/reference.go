package packager

import (
	"fmt"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
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

// Version is the version of an artifact; see [ParseVersion].
type Version = version.Version

// ParseVersion reads MAJOR.MINOR.PATCH[-prerelease] of Semantic Versioning 2.0.0 as
// installers do; one leading "v" is taken off, so a git tag can be given. Build
// metadata is refused with [ErrVersion], because neither tags nor the runner's
// installer can carry the "+".
func ParseVersion(s string) (Version, error) {
	bare := strings.TrimPrefix(s, "v")
	v, err := version.Parse(bare)
	switch {
	case err != nil:
		return Version{}, fmt.Errorf("%w %q: it must be MAJOR.MINOR.PATCH or MAJOR.MINOR.PATCH-PRERELEASE, such as 1.2.3", ErrVersion, s)
	case v.Build() != "":
		return Version{}, fmt.Errorf("%w %q: build metadata (+%s) cannot be part of a tag; omit it", ErrVersion, s, v.Build())
	case len(bare) > maxTag:
		return Version{}, fmt.Errorf("%w %q: a tag has at most %d characters", ErrVersion, s, maxTag)
	}
	return v, nil
}

// maxTag is the longest tag of the OCI distribution specification v1.1.1.
const maxTag = 128

// Aliases returns the tags that may point to a version: "1.2", "1" and "latest";
// none for a prerelease.
func Aliases(v Version) []string {
	if v.IsPrerelease() {
		return nil
	}
	return []string{fmt.Sprintf("%d.%d", v.Major(), v.Minor()), fmt.Sprint(v.Major()), latest}
}

const latest = "latest"
