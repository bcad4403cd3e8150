// Package admission decides whether an artifact may be installed, and is the
// only place where the answer yes can be made.
//
// A [Chain] binds an index, one image manifest in it and that manifest's layers
// by their digests. [Evaluation] judges a chain by the evidence found
// for it. The [Admission] that comes out has no other constructor, apart from
// [Unsafe] which says by its name what it does; the store takes nothing else.
//
// The package fetches nothing.
package admission

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// ErrBroken is a chain whose parts do not belong together.
var ErrBroken = errors.New("artifact is inconsistent")

// Chain is an image manifest, bound by digest to what names it. The zero value
// binds nothing.
type Chain struct {
	index    *ocispec.Descriptor
	manifest ocispec.Descriptor
	decoded  ocispec.Manifest
	// around are annotations of the index and of its entry, which only evidence
	// about the index covers.
	around map[string]string
}

// Document is a descriptor and the bytes that it describes.
type Document = artifact.Document

// check compares the bytes with the descriptor. Whoever fetched them did the
// same; a chain does not rely on it.
func check(d Document) error {
	if err := artifact.CheckDescriptor(d.Descriptor); err != nil {
		return err
	}
	if got := d.Descriptor.Digest.Algorithm().FromBytes(d.Content); got != d.Descriptor.Digest {
		return fmt.Errorf("%w: content of %s has digest %s", ErrBroken, d.Descriptor.Digest, got)
	}
	return nil
}

// NewChain binds an image manifest, and the index it is in, if there is one.
// Errors match [ErrBroken] or say that a document cannot be read.
func NewChain(index *Document, manifest Document) (Chain, error) {
	if err := check(manifest); err != nil {
		return Chain{}, err
	}
	decoded, err := artifact.DecodeManifest(manifest.Descriptor.MediaType, manifest.Content)
	if err != nil {
		return Chain{}, fmt.Errorf("manifest %s: %w", manifest.Descriptor.Digest, err)
	}
	chain := Chain{manifest: manifest.Descriptor, decoded: decoded}
	if index != nil {
		if err := chain.bind(*index); err != nil {
			return Chain{}, err
		}
	}
	return chain, nil
}

func (c *Chain) bind(index Document) error {
	if err := check(index); err != nil {
		return err
	}
	decoded, err := artifact.DecodeIndex(index.Descriptor.MediaType, index.Content)
	if err != nil {
		return fmt.Errorf("index %s: %w", index.Descriptor.Digest, err)
	}
	at := slices.IndexFunc(decoded.Manifests, func(d ocispec.Descriptor) bool {
		return d.Digest == c.manifest.Digest && d.Size == c.manifest.Size && d.MediaType == c.manifest.MediaType
	})
	if at < 0 {
		return fmt.Errorf("%w: manifest %s is not in index %s", ErrBroken, c.manifest.Digest, index.Descriptor.Digest)
	}
	c.around = map[string]string{}
	maps.Copy(c.around, decoded.Annotations)
	maps.Copy(c.around, decoded.Manifests[at].Annotations)
	c.index = &index.Descriptor
	return nil
}

// ManifestOnly is the chain without what the index says about the manifest: all
// that evidence about the manifest alone covers.
func (c Chain) ManifestOnly() Chain {
	c.around = nil
	return c
}

// Subjects are the digests whose signature covers the chain, the widest first.
func (c Chain) Subjects() []ocispec.Descriptor {
	if c.manifest.Digest == "" {
		return nil
	}
	if c.index == nil {
		return []ocispec.Descriptor{c.manifest}
	}
	return []ocispec.Descriptor{*c.index, c.manifest}
}

// Index is the digest of the index, "" for a single manifest.
func (c Chain) Index() digest.Digest {
	if c.index == nil {
		return ""
	}
	return c.index.Digest
}

// Manifest is the decoded image manifest.
func (c Chain) Manifest() ocispec.Manifest { return c.decoded }

// ManifestDigest is the digest of the image manifest.
func (c Chain) ManifestDigest() digest.Digest { return c.manifest.Digest }

// Annotation gives an annotation of the manifest, else of its entry in the
// index, else of the index.
func (c Chain) Annotation(key string) string {
	if value, ok := c.decoded.Annotations[key]; ok {
		return value
	}
	return c.around[key]
}

// Contains says whether the chain covers a layer or the config.
func (c Chain) Contains(d ocispec.Descriptor) bool {
	same := func(o ocispec.Descriptor) bool { return o.Digest == d.Digest && o.Size == d.Size }
	return same(c.decoded.Config) || slices.ContainsFunc(c.decoded.Layers, same)
}
