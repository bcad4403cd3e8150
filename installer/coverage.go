package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// VerifyAllPlatforms is [Installer.Verify] for those who hand on the digest of an
// index: what they give it to, such as a cluster, takes the manifest for its own
// platform and verifies nothing. So evidence counts only if it is about the index
// itself, and nothing in it may be denied by digest. A single manifest is its own
// index. Where the plugin is not published for the installer's platform, another
// one stands in for it, which [Installer.InstallVerified] refuses.
//
// Evidence that is about one platform's manifest only is a refusal that matches
// [ErrRefused] (one-platform); other errors are those of [Installer.Verify].
func (i *Installer) VerifyAllPlatforms(ctx context.Context, ref Reference) (Verified, error) {
	verified, err := i.onAnyPlatform().verifyBy(ctx, ref, pick)
	if err != nil {
		return Verified{}, err
	}
	if err := i.vouchedForAll(ctx, verified); err != nil {
		return Verified{}, failed("verifying", exactly(verified.Resolution), err)
	}
	return verified, nil
}

// onAnyPlatform is the installer, for what is not to run here.
func (i *Installer) onAnyPlatform() *Installer {
	other := *i
	other.anyPlatform = true
	return &other
}

// Digest is what was verified, which may be less than what was resolved: the
// index if the evidence is about it, else the one manifest for Platform. So it
// can be handed on; the index of [Resolution] can be only if it is the same.
// Where the policy asks for no evidence it is what was resolved.
func (v Verified) Digest() digest.Digest {
	if v.Verification.Covers == "" {
		return v.Resolution.Digest()
	}
	return v.Verification.Covers
}

// coversAll says whether the evidence is about all that was resolved.
func (v Verified) coversAll() bool { return v.Digest() == v.Resolution.Digest() }

// coveredDigest is the digest that all pieces of evidence vouch for together: an index
// vouches for its manifests, not the other way round.
func coveredDigest(r Resolution, found []Evidence) digest.Digest {
	if len(found) == 0 {
		return ""
	}
	if slices.ContainsFunc(found, func(e Evidence) bool { return e.Subject != r.Digest() }) {
		return r.Manifest
	}
	return r.Digest()
}

func (i *Installer) vouchedForAll(ctx context.Context, verified Verified) error {
	if !verified.coversAll() {
		if err := verified.unavailable; err != nil {
			return err
		}
		return fmt.Errorf("%w: no signature covers index %s, only its manifest for %s",
			errOnePlatform, verified.Index, verified.Platform)
	}
	return i.vouched(ctx, verified, func(ocispec.Descriptor) bool { return true })
}

// vouched says whether the policy allows each wanted entry of the index that was
// resolved. What the index has a signature for may still be denied; without one
// each entry needs its own, and has to be of the same version.
func (i *Installer) vouched(ctx context.Context, verified Verified, wants func(ocispec.Descriptor) bool) error {
	if verified.Index == "" {
		return nil
	}
	rule, err := i.policy.ruleFor(verified.Reference.Name())
	if err != nil {
		return err
	}
	top, err := fetchDocument(ctx, verified.source, verified.chain.Subjects()[0])
	if err != nil {
		return err
	}
	index, err := artifact.DecodeIndex(top.Descriptor.MediaType, top.Content)
	if err != nil {
		return err
	}
	for _, entry := range index.Manifests {
		if !wants(entry) {
			continue
		}
		if err := i.vouchedEntry(ctx, verified, rule, top, entry); err != nil {
			return fmt.Errorf("entry %s of the index: %w", entry.Digest, partial(ctx, verified.source, index, entry, err))
		}
	}
	return nil
}

func (i *Installer) vouchedEntry(ctx context.Context, verified Verified, rule compiledRule, top admission.Document, entry ocispec.Descriptor) error {
	if !artifact.IsManifest(entry.MediaType) {
		if verified.coversAll() {
			return nil
		}
		return fmt.Errorf("%w: the index is not signed, and %q cannot be verified by itself", ErrRefused, entry.MediaType)
	}
	document, err := fetchDocument(ctx, verified.source, ocispec.Descriptor{MediaType: entry.MediaType, Digest: entry.Digest, Size: entry.Size})
	if err != nil {
		return err
	}
	chain, err := admission.NewChain(&top, document)
	if err != nil {
		return err
	}
	if verified.coversAll() {
		return rule.requirements.Denied(verified.Version, chain)
	}
	chain = chain.ManifestOnly()
	if platform, ok := entryPlatform(entry); ok {
		p, err := findPayload(ctx, verified.source, chain, platform.String())
		if err == nil {
			_, _, err = p.settleVersion(picked{version: verified.Version, known: true})
		}
		if err != nil && !errors.Is(err, errNotPlugin) {
			return err
		}
	}
	_, _, err = i.admit(ctx, Resolution{Reference: verified.Reference, Version: verified.Version, source: verified.source, chain: chain}, rule)
	return err
}
