package packager_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// pushBlob stores content in a repository.
func pushBlob(t testing.TB, repo *ociregistry.Repository, mediaType string, content []byte) ocispec.Descriptor {
	t.Helper()
	desc := artifact.Describe(mediaType, content)
	if _, err := repo.PushBlob(t.Context(), desc, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }); err != nil {
		t.Fatal(err)
	}
	return desc
}

func pushManifest(t testing.TB, repo *ociregistry.Repository, in artifact.ManifestInput) ocispec.Descriptor {
	t.Helper()
	desc, content, err := artifact.EncodeManifest(in)
	if err == nil {
		err = repo.PushManifest(t.Context(), desc, content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return desc
}

// made makes something in a repository that is not one of the releases there, and
// returns its digest.
type made func(t *testing.T, repo *ociregistry.Repository) digest.Digest

// image is one that is not a fleeting plugin.
func image(title, version string, platforms ...string) made {
	return func(t *testing.T, repo *ociregistry.Repository) digest.Digest {
		t.Helper()
		return pushIndex(t, repo, title, version, platforms, nil)
	}
}

// plugin is one for a platform for each version, of which a sound one has the same
// for all.
func plugin(title string, versions ...string) made {
	return func(t *testing.T, repo *ociregistry.Repository) digest.Digest {
		t.Helper()
		return pushIndex(t, repo, title, versions[0], []string{"linux/amd64", "linux/arm64"}[:len(versions)], versions)
	}
}

// document is a manifest that is no image.
func document(t *testing.T, repo *ociregistry.Repository) digest.Digest {
	t.Helper()
	layer := pushBlob(t, repo, "application/spdx+json", []byte("{}"))
	return pushManifest(t, repo, artifact.ManifestInput{
		Config: pushBlob(t, repo, "application/vnd.example.config", []byte("{}")), Layers: []ocispec.Descriptor{layer},
	}).Digest
}

// pushIndex pushes an index. The layers are marked as a plugin of the versions, if
// there are any.
func pushIndex(t testing.TB, repo *ociregistry.Repository, title, version string, platforms, versions []string) digest.Digest {
	t.Helper()
	var entries []ocispec.Descriptor
	for i, name := range platforms {
		platform, err := artifact.ParsePlatform(name)
		if err != nil {
			t.Fatal(err)
		}
		layer := pushBlob(t, repo, ocispec.MediaTypeImageLayer, []byte(title+version+name))
		in := artifact.ConfigInput{Platform: platform, Version: version, DiffIDs: []digest.Digest{layer.Digest}}
		_, config, err := artifact.EncodeConfig(in)
		if err != nil {
			t.Fatal(err)
		}
		configured := pushBlob(t, repo, ocispec.MediaTypeImageConfig, config)
		if versions != nil {
			layer.Annotations = map[string]string{artifact.AnnotationLayer: versions[i]}
		}
		entry := pushManifest(t, repo, artifact.ManifestInput{Config: configured, Layers: []ocispec.Descriptor{layer}})
		oci := platform.OCI()
		entry.Platform = &oci
		entries = append(entries, entry)
	}
	annotations := map[string]string{ocispec.AnnotationTitle: title}
	if version != "" {
		annotations[ocispec.AnnotationVersion] = version
	}
	desc, content, err := artifact.EncodeIndex(entries, annotations)
	if err == nil {
		err = repo.PushManifest(t.Context(), desc, content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return desc.Digest
}
