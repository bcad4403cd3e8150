package installer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// LockOptions are the choices for one entry of a lock. The zero value is right for
// most.
type LockOptions struct {
	// As is the name to install under, as in [InstallOptions].
	As string
	// ChangeOptions are about the entry that was there before, if any.
	ChangeOptions
	// AcceptDigestChange lets the same version have other digests than before.
	AcceptDigestChange bool
}

// Lock resolves and verifies a reference and gives a lock that has it, with the
// digests for all platforms: manifests are read, no layers. Against an entry
// that before has for the reference, changes other than to a newer version by
// the same signer are refused with [ErrRefused] (moved), [ErrRefused] (signer-changed) or
// [ErrRefused] (downgrade); opts allow them. [Locked.Changes] returns what changed.
//
// A signature on a platform's manifest vouches for that platform only. So a lock
// needs one on the index, unless the policy asks for none.
func (i *Installer) Lock(ctx context.Context, before Lock, ref Reference, opts LockOptions) (Lock, error) {
	verified, err := i.onAnyPlatform().verifyBy(ctx, ref, pick)
	if err != nil {
		return Lock{}, err
	}
	entry, err := i.lockEntry(ctx, verified, opts.As)
	if err != nil {
		return Lock{}, failed("locking", ref.String(), err)
	}
	if earlier, err := before.Find(ref); err == nil {
		if err := opts.allow(earlier, entry, verified); err != nil {
			return Lock{}, failed("locking", ref.String(), err)
		}
	}
	return before.With(entry), nil
}

// allow compares a new entry with the one before.
func (o LockOptions) allow(earlier, now Locked, verified Verified) error {
	before := chosen{earlier.Version, earlier.Index, earlier.Signers}
	if o.AcceptDigestChange {
		before.digest = now.Index
	} else if err := earlier.moved(now); err != nil {
		return err
	}
	return o.check(before, verified)
}

func (i *Installer) lockEntry(ctx context.Context, verified Verified, as string) (Locked, error) {
	if as != "" || i.folder != nil {
		plugin, err := storePlugin(verified.Reference, as)
		if err != nil {
			return Locked{}, err
		}
		if verified, err = i.under(ctx, plugin, verified); err != nil {
			return Locked{}, err
		}
	}
	entry := Locked{
		Reference: verified.Reference, As: as, Version: verified.Version, Index: verified.Resolution.Digest(),
		Signers: verified.Verification.Signers(),
	}
	if verified.Index == "" {
		entry.Platforms = []LockedPlatform{{
			Platform: verified.Platform, Manifest: verified.Manifest, Layer: verified.Layer, Executable: verified.Executable,
		}}
		if len(verified.payload.layers) > 1 {
			entry.Platforms[0].Layer = "" // which one it is in, extracting tells
		}
		return entry, nil
	}
	if err := i.vouchedForAll(ctx, verified); err != nil {
		return Locked{}, err
	}
	platforms, err := lockPlatforms(ctx, verified)
	if err != nil {
		return Locked{}, err
	}
	entry.Platforms = platforms
	return entry, nil
}

// lockPlatforms reads the manifests of all platforms of the verified index.
func lockPlatforms(ctx context.Context, verified Verified) ([]LockedPlatform, error) {
	desc := verified.chain.Subjects()[0]
	top, err := fetchDocument(ctx, verified.source, desc)
	if err != nil {
		return nil, err
	}
	index, err := artifact.DecodeIndex(desc.MediaType, top.Content)
	if err != nil {
		return nil, err
	}
	var platforms []LockedPlatform
	for _, entry := range index.Manifests {
		platform, ok := entryPlatform(entry)
		if !ok {
			continue
		}
		locked, err := lockPlatform(ctx, verified.source, top, entry, platform.String())
		if errors.Is(err, errNotPlugin) {
			continue
		}
		if err != nil {
			return nil, partial(ctx, verified.source, index, entry, err)
		}
		platforms = append(platforms, locked)
	}
	slices.SortStableFunc(platforms, func(a, b LockedPlatform) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.Manifest, b.Manifest))
	})
	return slices.CompactFunc(platforms, func(a, b LockedPlatform) bool { return a.Platform == b.Platform }), nil
}

func entryPlatform(entry ocispec.Descriptor) (artifact.Platform, bool) {
	if entry.Platform == nil || !artifact.IsManifest(entry.MediaType) {
		return artifact.Platform{}, false
	}
	platform, err := artifact.PlatformFromOCI(*entry.Platform)
	return platform, err == nil && platform.OS() != "unknown"
}

func lockPlatform(ctx context.Context, src Source, top admission.Document, entry ocispec.Descriptor, platform string) (LockedPlatform, error) {
	document, err := fetchDocument(ctx, src, entry)
	if err != nil {
		return LockedPlatform{}, err
	}
	document.Descriptor.Platform = nil
	chain, err := admission.NewChain(&top, document)
	if err != nil {
		return LockedPlatform{}, err
	}
	p, err := findPayload(ctx, src, chain, platform)
	if err != nil {
		return LockedPlatform{}, err
	}
	locked := LockedPlatform{Platform: platform, Manifest: entry.Digest}
	if len(p.layers) == 1 {
		locked.Layer = p.layers[0].Digest
	}
	locked.Executable, err = executableOf(chain)
	return locked, err
}

func (r Receipt) executableDigest() digest.Digest {
	for _, f := range r.Files {
		if f.Name == r.Executable {
			return f.Digest
		}
	}
	return ""
}

// InstallLocked installs exactly what the lock has for a reference. What is
// installed already and unchanged needs no request at all. Otherwise the locked
// digest is fetched and held against the policy again, and everything about it
// must be as locked; differences match [ErrRefused] (moved) or [ErrRefused] (signer-changed).
//
// Afterwards the runner takes that version: greater ones that satisfy the
// reference are removed if this package installed them. If something else did, or
// the lock has one for another reference, it is [ErrRefused] (shadowed); if it is needed
// otherwise, [ErrRefused] (needed).
func (i *Installer) InstallLocked(ctx context.Context, lock Lock, ref Reference) (Installed, error) {
	if err := i.needFolder(); err != nil {
		return Installed{}, failed("installing", ref.String(), err)
	}
	entry, err := lock.Find(ref)
	if err != nil {
		return Installed{}, err
	}
	if err := lock.conflict(entry); err != nil {
		return Installed{}, failed("installing", ref.String(), err)
	}
	plugin, err := storePlugin(ref, entry.As)
	if err != nil {
		return Installed{}, failed("installing", ref.String(), err)
	}
	installed, err := i.lockedPresent(ctx, entry)
	if err == nil {
		return installed, failed("installing", ref.String(), i.giveWay(ctx, plugin, ref, entry.Version, true))
	}
	if err := ctx.Err(); err != nil {
		return Installed{}, failed("installing", ref.String(), err)
	}
	i.warnChanged(ctx, err)
	verified, err := i.verifyBy(ctx, ref, entry.pick)
	if err != nil {
		return Installed{}, err
	}
	if err := entry.matches(verified); err != nil {
		return Installed{}, failed("installing", ref.String(), err)
	}
	verified.Executable = cmp.Or(entry.platform(verified.Platform).Executable, verified.Executable)
	installed, err = i.placeUnder(ctx, plugin, verified, InstallOptions{Reinstall: true}, true)
	return installed, failed("installing", ref.String(), err)
}

// pick takes the digest that was locked, whatever the reference's tags point at
// now, and the version that it was locked with: not every image says one.
func (l Locked) pick(ctx context.Context, src Source, _ Reference) (picked, error) {
	desc, err := pickDigest(ctx, src, l.Index)
	if err != nil {
		err = fmt.Errorf("the lock has index %s: %w", l.Index, err)
	}
	return picked{desc: desc, version: l.Version, known: true, locked: true, why: []string{"The lock has the digest; tags were not asked."}}, err
}

// lockedPresent gives what is installed of a locked entry if it is whole. Of those
// who signed by the receipt it names the locked ones only.
func (i *Installer) lockedPresent(ctx context.Context, entry Locked) (Installed, error) {
	installed, err := i.folder.locked(entry)
	if err != nil {
		return Installed{}, err
	}
	if !i.runs(installed) || !i.allows(installed) {
		return Installed{}, ErrRefused
	}
	if err := installed.VerifyLocked(ctx, entry); err != nil {
		return Installed{}, err
	}
	if len(entry.Signers) > 0 {
		installed.Receipt.Verification.Evidence = slices.DeleteFunc(slices.Clone(installed.Receipt.Verification.Evidence), func(e Evidence) bool {
			return !slices.Contains(entry.Signers, e.Signer())
		})
	}
	return installed, nil
}

// Locked gives the installed version that an entry names, or [ErrNotFound] (not-installed).
// Nothing is compared; see [Installed.VerifyLocked].
func (f *Folder) Locked(entry Locked) (Installed, error) {
	found, err := f.locked(entry)
	return found, failed("looking for", entry.Reference.String(), err)
}

// locked finds the installed version that an entry names.
func (f *Folder) locked(entry Locked) (Installed, error) {
	plugin, err := storePlugin(entry.Reference, entry.As)
	if err != nil {
		return Installed{}, err
	}
	found, err := f.store.Version(plugin, entry.Version)
	if err != nil {
		return Installed{}, err
	}
	return readInstalled(found)
}

// VerifyLocked is [Installed.Verify] that compares the receipt with the lock as
// well, so that it finds a receipt that was changed together with the files. What
// the files are is known if the lock has the digest of the executable: see
// [LockedPlatform]. Differences from the lock match [ErrDiffers] (lock-differs).
func (i Installed) VerifyLocked(ctx context.Context, entry Locked) error {
	if err := i.Verify(ctx); err != nil {
		return err
	}
	r := i.Receipt
	if r.Name != entry.Name() {
		return fmt.Errorf("%s: %w: the lock has %s, installed is %s", i.Dir, errLockDiffers, entry.Name(), r.Name)
	}
	locked := entry.platform(r.Platform)
	if locked == nil {
		return fmt.Errorf("%s: %w: the lock has nothing for %s, the installed platform", i.Dir, errLockDiffers, r.Platform)
	}
	is := LockedPlatform{Manifest: r.Manifest, Layer: r.Layer, Executable: r.executableDigest()}
	if what, want, got := entry.difference(r.Version, r.Digest(), *locked, is); what != "" {
		return fmt.Errorf("%s: %w: the lock has %s %s, installed is %s", i.Dir, errLockDiffers, what, want, got)
	}
	if signers := r.Verification.Signers(); !sameSigners(entry.Signers, signers) {
		return fmt.Errorf("%s: %w: the lock has signer %s, installed is signed by %s", i.Dir, errLockDiffers, listSigners(entry.Signers), listSigners(signers))
	}
	return nil
}

// difference names the first thing in which something differs from the entry for
// its platform, "" for none. What either does not know is not compared.
func (l Locked) difference(v version.Version, index digest.Digest, locked, is LockedPlatform) (what, want, got string) {
	if !v.Equal(l.Version) {
		return "version", l.Version.String(), v.String()
	}
	for _, d := range []struct {
		what      string
		want, got digest.Digest
	}{
		{"index", l.Index, index},
		{"manifest", locked.Manifest, is.Manifest},
		{"layer", locked.Layer, is.Layer},
		{"executable", locked.Executable, is.Executable},
	} {
		if d.want != d.got && d.want != "" && d.got != "" {
			return d.what, d.want.String(), d.got.String()
		}
	}
	return "", "", ""
}

// matches compares what was verified now with the entry.
func (l Locked) matches(verified Verified) error {
	locked := l.platform(verified.Platform)
	if locked == nil {
		return fmt.Errorf("%w: the lock has nothing for %s", errNoPlatform, verified.Platform)
	}
	is := LockedPlatform{Manifest: verified.Manifest, Executable: verified.Executable}
	if len(verified.payload.layers) == 1 {
		is.Layer = verified.Layer
	}
	if what, want, got := l.difference(verified.Version, verified.Resolution.Digest(), *locked, is); what != "" {
		return fmt.Errorf("%w: the lock has %s %s, published is %s", errMoved, what, want, got)
	}
	if !sameSigners(l.Signers, verified.Verification.Signers()) {
		return signerChanged(l.Signers, verified.Verification.Signers())
	}
	return nil
}
