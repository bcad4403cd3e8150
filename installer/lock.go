package installer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/pelletier/go-toml/v2"

	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

const (
	lockVersion = 1
	lockLimit   = 4 << 20
)

// Lock is what was chosen and verified for some references, written down. It is
// a value: methods give a new one. The zero value is an empty lock.
type Lock struct{ plugins []Locked }

// Locked is the choice for one reference, for all platforms.
type Locked struct {
	// Reference is what was asked for; it is what entries are found by.
	Reference Reference `toml:"reference" json:"reference"`
	// As is the name that the plugin is installed under, if it is another.
	As      string          `toml:"as,omitempty" json:"as,omitempty"`
	Version version.Version `toml:"version" json:"version"`
	// Index is what was signed, or the single manifest where there is no index.
	Index digest.Digest `toml:"index" json:"index"`
	// Signers are those whose signature was verified; empty if the policy asked
	// for none.
	Signers []string `toml:"signers" json:"signers"`
	// Platforms are all that the index has, sorted.
	Platforms []LockedPlatform `toml:"platform" json:"platforms"`
}

// LockedPlatform has the digests for one platform.
type LockedPlatform struct {
	Platform string        `toml:"platform" json:"platform"`
	Manifest digest.Digest `toml:"manifest" json:"manifest"`
	// Layer is the layer with the plugin, "" if that is known only after
	// extracting: of an image without our annotation it may be any.
	Layer digest.Digest `toml:"layer,omitempty" json:"layer,omitempty"`
	// Executable is known if the publisher's index announces it, as ours do.
	Executable digest.Digest `toml:"executable,omitempty" json:"executable,omitempty"`
}

// Plugins gives the entries, sorted by reference.
func (l Lock) Plugins() []Locked { return slices.Clone(l.plugins) }

// Find gives the entry for a reference, exactly as it was locked.
func (l Lock) Find(ref Reference) (Locked, error) {
	for _, locked := range l.plugins {
		if locked.Reference.String() == ref.String() {
			return locked, nil
		}
	}
	return Locked{}, failed("looking up", ref.String(), errNotLocked)
}

// For finds the entry that an installed version belongs to: the same name and
// version, whatever its receipt says otherwise.
func (l Lock) For(installed Installed) (Locked, bool) {
	for _, locked := range l.plugins {
		if locked.Name() == installed.Receipt.Name && locked.Version.Core().Equal(installed.Receipt.Version.Core()) {
			return locked, true
		}
	}
	return Locked{}, false
}

// Name is the name that the plugin is installed under.
func (l Locked) Name() string {
	if l.As == "" {
		return l.Reference.Name()
	}
	plugin, err := storePlugin(l.Reference, l.As)
	if err != nil {
		return l.As // which nothing is installed under; ParseLock refuses it
	}
	return plugin.Name()
}

// With gives a lock that has the entry, in place of an earlier one for the same
// reference.
func (l Lock) With(entry Locked) Lock {
	plugins := slices.DeleteFunc(slices.Clone(l.plugins), func(p Locked) bool {
		return p.Reference.String() == entry.Reference.String()
	})
	plugins = append(plugins, entry)
	slices.SortFunc(plugins, func(a, b Locked) int { return cmp.Compare(a.Reference.String(), b.Reference.String()) })
	return Lock{plugins}
}

// platform gives the digests for a platform, nil if there are none.
func (l Locked) platform(name string) *LockedPlatform {
	for i := range l.Platforms {
		if l.Platforms[i].Platform == name {
			return &l.Platforms[i]
		}
	}
	return nil
}

// lockFile is the form of a lock on disk.
type lockFile struct {
	Version int      `toml:"version"`
	Plugins []Locked `toml:"plugin"`
}

const lockHeader = "# Written by fleeting-plugin lock; do not edit. Keep it in version control.\n"

// Encode writes the lock as TOML: the same lock gives the same bytes.
func (l Lock) Encode() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(lockHeader)
	encoder := toml.NewEncoder(&b)
	err := encoder.Encode(lockFile{Version: lockVersion, Plugins: l.plugins})
	return b.Bytes(), err
}

// ParseLock reads what [Lock.Encode] wrote. It is strict; errors match
// [ErrInvalid] (lock).
func ParseLock(content []byte) (Lock, error) {
	if len(content) > lockLimit {
		return Lock{}, fmt.Errorf("%w: longer than %d bytes", errInvalidLock, lockLimit)
	}
	content, err := textfile.UTF8(content)
	if err != nil {
		return Lock{}, fmt.Errorf("%w: %w", errInvalidLock, err)
	}
	var file lockFile
	if err := toml.NewDecoder(bytes.NewReader(content)).DisallowUnknownFields().Decode(&file); err != nil {
		return Lock{}, fmt.Errorf("%w: %w", errInvalidLock, readable(err))
	}
	if file.Version != lockVersion {
		return Lock{}, fmt.Errorf("%w: version = %d; this program reads version = %d", errInvalidLock, file.Version, lockVersion)
	}
	var lock Lock
	for _, p := range file.Plugins {
		if err := p.check(); err != nil {
			return Lock{}, fmt.Errorf("%w: %s: %w", errInvalidLock, p.Reference, err)
		}
		if _, err := lock.Find(p.Reference); err == nil {
			return Lock{}, fmt.Errorf("%w: %s: twice", errInvalidLock, p.Reference)
		}
		lock = lock.With(p)
	}
	return lock, nil
}

func (l Locked) check() error {
	if l.Reference.IsZero() {
		return errors.New("no reference")
	}
	if err := l.Index.Validate(); err != nil {
		return fmt.Errorf("index %q: %w", l.Index, err)
	}
	if l.Reference.Pinned() && l.Reference.Digest() != l.Index {
		return fmt.Errorf("index %s is not the digest of the reference", l.Index)
	}
	if l.As != "" {
		if _, err := storePlugin(l.Reference, l.As); err != nil {
			return fmt.Errorf("as %q: %w", l.As, err)
		}
	}
	if len(l.Platforms) == 0 {
		return errors.New("no platform")
	}
	for n, p := range l.Platforms {
		if l.platform(p.Platform) != &l.Platforms[n] {
			return fmt.Errorf("platform %q: twice", p.Platform)
		}
		for _, d := range []digest.Digest{p.Manifest, cmp.Or(p.Layer, p.Manifest), cmp.Or(p.Executable, p.Manifest)} {
			if err := d.Validate(); err != nil {
				return fmt.Errorf("platform %q: digest %q: %w", p.Platform, d, err)
			}
		}
	}
	return nil
}

// Change is something that two choices for one reference do not have in common.
type Change struct {
	// What is "version", "index", "signers", "as" or "platform", or the digest of a
	// platform, such as "layer of linux/amd64".
	What string `json:"what"`
	// Before and After are "" where there is none.
	Before string `json:"before"`
	After  string `json:"after"`
}

// Changes returns what differs from an earlier choice to a later one, nil for
// nothing. The digests of platforms are compared only if the version or the index
// is the same: another version has others.
func (l Locked) Changes(after Locked) []Change {
	var changes []Change
	compare := func(what, before, after string) {
		if before != after {
			changes = append(changes, Change{what, before, after})
		}
	}
	compare("version", l.Version.String(), after.Version.String())
	compare("index", l.Index.String(), after.Index.String())
	compare("signers", strings.Join(l.Signers, ", "), strings.Join(after.Signers, ", "))
	compare("as", l.As, after.As)
	if !l.same(after) {
		return changes
	}
	for _, was := range l.Platforms {
		is := after.platform(was.Platform)
		if is == nil {
			compare("platform", was.Platform, "")
			continue
		}
		compare("manifest of "+was.Platform, was.Manifest.String(), is.Manifest.String())
		compare("layer of "+was.Platform, was.Layer.String(), is.Layer.String())
		compare("executable of "+was.Platform, was.Executable.String(), is.Executable.String())
	}
	for _, is := range after.Platforms {
		if l.platform(is.Platform) == nil {
			compare("platform", "", is.Platform)
		}
	}
	return changes
}

// same reports that two choices must have the same digests.
func (l Locked) same(other Locked) bool {
	return l.Version.Equal(other.Version) || l.Index == other.Index
}

// moved returns [ErrRefused] (moved) with all that differs though it must not. A digest that
// only one of the choices knows is no difference.
func (l Locked) moved(now Locked) error {
	if !l.same(now) {
		return nil
	}
	var differences []string
	for _, c := range l.Changes(now) {
		if c.Before != "" && c.After != "" && c.What != "signers" && c.What != "as" || c.What == "platform" {
			differences = append(differences, fmt.Sprintf("%s: the lock has %s, published is %s", c.What, cmp.Or(c.Before, "none"), cmp.Or(c.After, "none")))
		}
	}
	if differences == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", errMoved, strings.Join(differences, "; "))
}

// ChangeOptions allow changes against what was chosen before. The zero value
// allows none but newer versions by the same signers.
type ChangeOptions struct {
	// AcceptSignerChange lets another signer of the policy take over.
	AcceptSignerChange bool
	// AllowDowngrade lets an older version follow; an upgrade then removes the
	// newer ones that satisfy the reference.
	AllowDowngrade bool
}

// check compares what was verified now with what was chosen before.
func (o ChangeOptions) check(before chosen, now Verified) error {
	switch c := now.Version.Compare(before.version); {
	case c == 0 && now.Resolution.Digest() != before.digest:
		return fmt.Errorf("%w: %s was %s, is %s", errMoved, now.Version, before.digest, now.Resolution.Digest())
	case c < 0 && !o.AllowDowngrade:
		return fmt.Errorf("%w: %s was chosen, now it is %s", errDowngrade, before.version, now.Version)
	}
	if !o.AcceptSignerChange && !sameSigners(before.signers, now.Verification.Signers()) {
		return signerChanged(before.signers, now.Verification.Signers())
	}
	return nil
}

// signerChanged names the signers before and now.
func signerChanged(before, now []string) error {
	return fmt.Errorf("%w: was %s, is %s", errSignerChanged, listSigners(before), listSigners(now))
}

// listSigners writes signers for people.
func listSigners(signers []string) string {
	return cmp.Or(strings.Join(signers, ", "), "nobody")
}

// chosen is a version that was chosen, with what identifies it.
type chosen struct {
	version version.Version
	digest  digest.Digest
	signers []string
}

// sameSigners says whether some signer vouched before and vouches now. What
// nobody vouched for before, anybody may vouch for now; the reverse is a change.
func sameSigners(before, now []string) bool {
	return len(before) == 0 || slices.ContainsFunc(before, func(s string) bool { return slices.Contains(now, s) })
}
