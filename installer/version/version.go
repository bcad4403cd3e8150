package version

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxLength is the longest text, in bytes, that [Parse], [ParseTag] and
// [ParseConstraint] look at. An OCI tag has at most 128 characters; constraints
// have several versions in them.
const MaxLength = 512

// ErrInvalid is returned for text that is neither a version nor a constraint.
var ErrInvalid = errors.New("invalid version")

// Version is a semantic version (SemVer 2.0.0): MAJOR.MINOR.PATCH, an optional
// prerelease, and optional build metadata that takes no part in comparisons.
//
// The zero value is no version, see [Version.IsZero]; it compares as 0.0.0. Compare
// versions with [Version.Compare], not with ==.
type Version struct {
	parsed              bool
	major, minor, patch uint64
	prerelease          []string
	build               string
}

// Parse reads MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]. It is strict: three
// numbers without leading zeros, no v, no spaces. This is the form that the
// runner demands in the annotation com.gitlab.fleeting.layer, except that the
// runner refuses build metadata there; see [Version.Core].
//
// Errors match [ErrInvalid].
func Parse(text string) (Version, error) {
	if len(text) > MaxLength {
		return Version{}, fmt.Errorf("%w: longer than %d bytes", ErrInvalid, MaxLength)
	}
	rest, build, hasBuild := strings.Cut(text, "+")
	rest, pre, hasPre := strings.Cut(rest, "-")
	v := Version{parsed: true}
	if hasBuild {
		if _, err := identifiers(build, true); err != nil {
			return Version{}, fmt.Errorf("%w %q: build metadata: %w", ErrInvalid, text, err)
		}
		v.build = build
	}
	if hasPre {
		ids, err := identifiers(pre, false)
		if err != nil {
			return Version{}, fmt.Errorf("%w %q: prerelease: %w", ErrInvalid, text, err)
		}
		v.prerelease = ids
	}
	parts := strings.Split(rest, ".")
	if len(parts) != 3 {
		return Version{}, fmt.Errorf("%w %q: want MAJOR.MINOR.PATCH", ErrInvalid, text)
	}
	for i, into := range []*uint64{&v.major, &v.minor, &v.patch} {
		n, err := number(parts[i])
		if err != nil {
			return Version{}, fmt.Errorf("%w %q: %w", ErrInvalid, text, err)
		}
		*into = n
	}
	return v, nil
}

// ParseTag reads a version as publishers write it in a tag: as [Parse], but
// with an optional leading v, and with _ in place of + (a tag may not contain
// +; Helm set the custom).
//
// Errors match [ErrInvalid].
func ParseTag(tag string) (Version, error) {
	text := strings.TrimPrefix(tag, "v")
	if !strings.Contains(text, "+") {
		text = strings.Replace(text, "_", "+", 1)
	}
	v, err := Parse(text)
	if err != nil {
		return Version{}, fmt.Errorf("tag %q: %w", tag, err)
	}
	return v, nil
}

// IsZero reports whether v is the zero value, which is no version.
func (v Version) IsZero() bool { return !v.parsed }

// Major is the first number.
func (v Version) Major() uint64 { return v.major }

// Minor is the second number.
func (v Version) Minor() uint64 { return v.minor }

// Patch is the third number.
func (v Version) Patch() uint64 { return v.patch }

// IsPrerelease says whether the version has a prerelease part. Such versions
// are chosen only when asked for.
func (v Version) IsPrerelease() bool { return len(v.prerelease) > 0 }

// Prerelease is the text after the hyphen, "" for a release.
func (v Version) Prerelease() string { return strings.Join(v.prerelease, ".") }

// Build is the text after the plus, "" without build metadata.
func (v Version) Build() string { return v.build }

// Core is the version without build metadata: the form that names folders,
// because the runner does not find a folder whose name has a plus in it.
func (v Version) Core() Version {
	v.build = ""
	return v
}

// String is the canonical text; Parse(v.String()) gives v again.
func (v Version) String() string {
	var b strings.Builder
	b.WriteString(strconv.FormatUint(v.major, 10))
	b.WriteByte('.')
	b.WriteString(strconv.FormatUint(v.minor, 10))
	b.WriteByte('.')
	b.WriteString(strconv.FormatUint(v.patch, 10))
	if len(v.prerelease) > 0 {
		b.WriteByte('-')
		b.WriteString(v.Prerelease())
	}
	if v.build != "" {
		b.WriteByte('+')
		b.WriteString(v.build)
	}
	return b.String()
}

// Tag is the text of the version in an OCI tag, with _ for +.
func (v Version) Tag() string {
	return strings.Replace(v.String(), "+", "_", 1)
}

// Compare gives -1, 0 or 1 by SemVer 2.0.0, section 11. Build metadata is
// ignored.
func (v Version) Compare(other Version) int {
	if c := cmp.Or(
		cmp.Compare(v.major, other.major),
		cmp.Compare(v.minor, other.minor),
		cmp.Compare(v.patch, other.patch),
	); c != 0 {
		return c
	}
	switch {
	case len(v.prerelease) == 0 && len(other.prerelease) == 0:
		return 0
	case len(v.prerelease) == 0:
		return 1
	case len(other.prerelease) == 0:
		return -1
	}
	return slices.CompareFunc(v.prerelease, other.prerelease, compareIdentifiers)
}

// Equal says whether both have the same precedence; build metadata is ignored.
func (v Version) Equal(other Version) bool { return v.Compare(other) == 0 }

// MarshalText writes [Version.String].
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads as [Parse].
func (v *Version) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*v = parsed
	return nil
}

// compareIdentifiers orders two prerelease identifiers: numbers by value and
// before text, text in ASCII order. Numbers of any length are allowed, so they
// are compared as digits, never converted.
func compareIdentifiers(a, b string) int {
	aNum, bNum := isNumeric(a), isNumeric(b)
	switch {
	case aNum && bNum:
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	case aNum:
		return -1
	case bNum:
		return 1
	}
	return cmp.Compare(a, b)
}

func isNumeric(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// identifiers splits and checks dot-separated identifiers. Leading zeros are
// refused in numeric prerelease identifiers and allowed in build metadata.
func identifiers(text string, zeros bool) ([]string, error) {
	ids := strings.Split(text, ".")
	for _, id := range ids {
		if id == "" {
			return nil, errors.New("empty identifier")
		}
		for i := range len(id) {
			if !isIdentifierByte(id[i]) {
				return nil, fmt.Errorf("character %q", id[i])
			}
		}
		if !zeros && len(id) > 1 && id[0] == '0' && isNumeric(id) {
			return nil, fmt.Errorf("leading zero in %q", id)
		}
	}
	return ids, nil
}

func isIdentifierByte(b byte) bool {
	return b == '-' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

func number(text string) (uint64, error) {
	if !isNumeric(text) {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	if len(text) > 1 && text[0] == '0' {
		return 0, fmt.Errorf("leading zero in %q", text)
	}
	// The runner keeps int64; a larger number would be a version for us and not for it.
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is too large", text)
	}
	return uint64(n), nil //nolint:gosec // digits only, so not negative
}
