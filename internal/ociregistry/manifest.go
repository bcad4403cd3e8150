package ociregistry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// manifestTypes are what a registry keeps as manifests; all else are blobs. The
// last one is of release candidates of the image specification 1.1.
func manifestTypes() []string {
	return []string{
		ocispec.MediaTypeImageIndex, ocispec.MediaTypeImageManifest,
		"application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.docker.distribution.manifest.v2+json",
		"application/vnd.oci.artifact.manifest.v1+json",
	}
}

func isManifest(mediaType string) bool { return slices.Contains(manifestTypes(), mediaType) }

// manifest asks for a manifest by tag or digest, and describes what came: by the
// bytes themselves, not by headers. Registries leave headers out, send those of
// something else, and do not all answer HEAD; and whoever resolves a tag nearly
// always wants the manifest as well.
func (r *Repository) manifest(ctx context.Context, reference string) (ocispec.Descriptor, []byte, error) {
	content, resp, err := r.document(ctx, request{method: http.MethodGet, path: "manifests/" + reference, header: map[string]string{ //nolint:bodyclose // document has read and closed it
		"Accept": strings.Join(append(manifestTypes(), "*/*;q=0.1"), ", "),
	}}, artifact.ManifestLimit)
	want, unpinned := digest.Parse(reference)
	asked := unpinned == nil && content != nil && want.Algorithm().FromBytes(content) == want
	if err != nil && !asked {
		return ocispec.Descriptor{}, nil, err // else it is what was pushed, whatever it looks like
	}
	desc := ocispec.Descriptor{Digest: digest.FromBytes(content), Size: int64(len(content))}
	if unpinned == nil {
		if desc.Digest = want.Algorithm().FromBytes(content); desc.Digest != want {
			return ocispec.Descriptor{}, nil, fmt.Errorf("%w: content is %s, want %s", ErrDigestMismatch, desc.Digest, want)
		}
	}
	if desc.MediaType, err = manifestType(mediaType(resp.Header), content); err != nil {
		if asked {
			err = fmt.Errorf("%w: %w", artifact.ErrInvalid, err)
		}
		return ocispec.Descriptor{}, nil, err
	}
	r.known.add(desc.Digest, content)
	return desc, content, nil
}

// manifestType is what the registry calls a manifest, else what that calls
// itself, else what it looks like.
func manifestType(said string, content []byte) (string, error) {
	if isManifest(said) {
		return said, nil
	}
	var m struct {
		MediaType string          `json:"mediaType"`
		Manifests json.RawMessage `json:"manifests"`
		Config    *struct {
			MediaType string `json:"mediaType"`
		} `json:"config"`
	}
	if err := json.Unmarshal(content, &m); err != nil {
		return "", fmt.Errorf("%w: a manifest that is not JSON: %w", ErrAnswer, err)
	}
	switch {
	case isManifest(m.MediaType):
		return m.MediaType, nil
	case m.MediaType == "" && m.Manifests != nil && m.Config == nil:
		return ocispec.MediaTypeImageIndex, nil
	case m.MediaType == "" && m.Manifests == nil && m.Config != nil:
		if strings.HasPrefix(m.Config.MediaType, "application/vnd.docker.") {
			return "application/vnd.docker.distribution.manifest.v2+json", nil
		}
		return ocispec.MediaTypeImageManifest, nil
	}
	return "", fmt.Errorf("%w: neither an index nor a manifest: Content-Type %q, media type %q", ErrAnswer, line(said), line(m.MediaType))
}

// resolve is manifest for a tag or digest that may not be there. Some registries
// answer 403 for a tag that is not there, and mean it for one that is: the list of
// tags tells the two apart.
func (r *Repository) resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	desc, _, err := r.manifest(ctx, reference)
	if !errors.Is(err, ErrForbidden) || strings.Contains(reference, ":") {
		return desc, err
	}
	tags, cut, listErr := r.tags(ctx)
	absent := errors.Is(listErr, ErrNotFound) || listErr == nil && !cut && !slices.Contains(tags, reference)
	if absent {
		return desc, fmt.Errorf("%w, by the list of tags; asked for it, the registry answers: %s", ErrNotFound, err.Error())
	}
	return desc, err
}

// manifestMemory bounds what is remembered of one repository, in bytes.
const manifestMemory = 8 << 20

// manifests remembers manifests by their digests, so that one that was resolved
// is not asked for again.
type manifests struct {
	mu      sync.Mutex
	content map[digest.Digest][]byte
	size    int
}

func newManifests() *manifests { return &manifests{content: map[digest.Digest][]byte{}} }

func (m *manifests) get(d digest.Digest) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	content, ok := m.content[d]
	return slices.Clone(content), ok
}

func (m *manifests) add(d digest.Digest, content []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.content[d]; ok || len(content) > manifestMemory/4 {
		return
	}
	if m.size += len(content); m.size > manifestMemory {
		clear(m.content)
		m.size = len(content)
	}
	m.content[d] = slices.Clone(content)
}
