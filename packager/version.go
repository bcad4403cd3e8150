package packager

import (
	"fmt"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
)

// Version is the version of an artifact: MAJOR.MINOR.PATCH[-prerelease] of
// Semantic Versioning 2.0.0. Make it with [ParseVersion].
type Version struct {
	v     version.Version
	valid bool // 0.0.0 is a version
}

// ParseVersion reads a version as installers do; one leading "v" is taken off,
// so a git tag can be given. Build metadata is refused with [ErrVersion],
// because neither tags nor the runner's installer can carry the "+".
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
	return Version{v, true}, nil
}

// maxTag is the longest tag of the OCI distribution specification v1.1.1.
const maxTag = 128

// String returns the version without "v", as tag and annotation carry it.
func (v Version) String() string { return v.v.String() }

// IsZero reports whether v is the zero value, which is no version.
func (v Version) IsZero() bool { return !v.valid }

// MarshalText writes the version as [Version.String] does.
func (v Version) MarshalText() ([]byte, error) { return v.v.MarshalText() }

// Prerelease says whether the version is one that no alias ever points to.
func (v Version) Prerelease() bool { return v.v.IsPrerelease() }

// Compare orders versions as Semantic Versioning does.
func (v Version) Compare(o Version) int { return v.v.Compare(o.v) }

// Aliases returns the tags that may point to the version: "1.2", "1" and
// "latest"; none for a prerelease.
func (v Version) Aliases() []string {
	if v.Prerelease() {
		return nil
	}
	return []string{fmt.Sprintf("%d.%d", v.v.Major(), v.v.Minor()), fmt.Sprint(v.v.Major()), latest}
}

const latest = "latest"
