package ociregistry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// Manifest is a manifest with its bytes.
type Manifest struct {
	Descriptor ocispec.Descriptor
	Content    []byte
}

// PushManifest uploads a manifest or index and points the tags at it, in
// order. What it names must be there already. A subject is announced as by
// [Repository.Attach]. A tag that the registry does not move is [ErrImmutable].
func (r *Repository) PushManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, tags ...string) error {
	subject, err := subjectOf(content)
	if err != nil {
		return wrap("push manifest", r.at(desc.Digest.String()), err)
	}
	if subject != nil {
		err = r.Attach(ctx, *subject, Manifest{desc, content})
	} else {
		_, err = r.putManifest(ctx, desc, content, desc.Digest.String(), false)
	}
	if err != nil {
		return wrap("push manifest", r.at(desc.Digest.String()), err)
	}
	for _, tag := range tags {
		if err := r.putTag(ctx, desc, content, tag, false); err != nil {
			return wrap("tag", r.at(tag), err)
		}
	}
	return nil
}

// Tag points a tag at a manifest that is there. A tag that the registry does not
// move is [ErrImmutable].
func (r *Repository) Tag(ctx context.Context, desc ocispec.Descriptor, tag string) error {
	content, err := r.FetchAll(ctx, desc, artifact.ManifestLimit)
	if err != nil {
		return err
	}
	return wrap("tag", r.at(tag), r.putTag(ctx, desc, content, tag, false))
}

// TagNew is [Repository.Tag] for a tag that is not there yet: it asks the registry
// to leave one alone that another client has written meanwhile (RFC 9110, section
// 13.1.2). Registries that honour that, or have immutable tags, answer so, which is
// [ErrImmutable]; the others move the tag.
func (r *Repository) TagNew(ctx context.Context, desc ocispec.Descriptor, tag string) error {
	content, err := r.FetchAll(ctx, desc, artifact.ManifestLimit)
	if err != nil {
		return err
	}
	return wrap("tag", r.at(tag), r.putTag(ctx, desc, content, tag, true))
}

func subjectOf(content []byte) (*ocispec.Descriptor, error) {
	var m struct {
		Subject *ocispec.Descriptor `json:"subject"`
	}
	if err := json.Unmarshal(content, &m); err != nil {
		return nil, fmt.Errorf("%w: manifest: %w", ErrInvalid, err)
	}
	return m.Subject, nil
}

// putManifest stores a manifest under its digest or a tag. announced says that the
// registry lists it among the referrers of its subject.
func (r *Repository) putManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, reference string, onlyNew bool) (announced bool, err error) {
	header := map[string]string{"Content-Type": desc.MediaType}
	if onlyNew {
		header["If-None-Match"] = "*"
	}
	resp, err := r.do(ctx, request{
		method: http.MethodPut, path: "manifests/" + reference, push: true, header: header, body: bytes.NewReader(content),
	})
	if err != nil {
		return false, err
	}
	if err := resp.Body.Close(); err != nil {
		return false, err
	}
	// Some registries keep a manifest in another form than they were given, and some
	// servers answer everything with success; what they say about it may be wrong as
	// well. So it is looked for, unless all is as the specification has it.
	stored := resp.Header.Get("Docker-Content-Digest")
	if resp.StatusCode != http.StatusCreated || stored != "" && stored != desc.Digest.String() {
		if _, _, err := r.manifest(ctx, desc.Digest.String()); err != nil {
			return false, fmt.Errorf("status %d, and %s is not there: %w", resp.StatusCode, desc.Digest, err)
		}
	}
	r.known.add(desc.Digest, content)
	return resp.Header.Get("OCI-Subject") != "", nil
}

// putTag points a tag at a manifest. Registries refuse to move a tag with any of a
// dozen statuses, so what is there decides: if the tag is where it should be, all
// is well. onlyNew asks the registry to leave a tag alone that is there.
func (r *Repository) putTag(ctx context.Context, desc ocispec.Descriptor, content []byte, tag string, onlyNew bool) error {
	_, err := r.putManifest(ctx, desc, content, tag, onlyNew)
	status := statusOf(err)
	if err == nil || status < 400 || status >= 500 || status == http.StatusUnauthorized || status == http.StatusTooManyRequests {
		return err
	}
	have, lookErr := r.resolve(ctx, tag)
	switch {
	case onlyNew && errors.Is(lookErr, ErrNotFound):
		// It refuses the condition, and not the tag.
		return r.putTag(ctx, desc, content, tag, false)
	case lookErr != nil:
		return err
	case have.Digest == desc.Digest:
		return nil
	}
	return fmt.Errorf("%w: it is %s: %w", ErrImmutable, have.Digest, err)
}

// attachAttempts bounds how often the list of referrers under a tag is written
// again because another client wrote it at the same time.
const attachAttempts = 5

// Attach uploads manifests that have one subject, and sees to it that they are
// listed among its referrers: by the registry itself, or where that has no
// referrers API under the fallback tag (distribution-spec v1.1.1, "Pushing
// Manifests with Subject"). That tag is written once for all of them, which is all
// that a registry with immutable tags takes: a second time is [ErrImmutable]. Of two
// clients that write it within one request of each other, the one that looks again
// first may not see that the other has replaced its list.
func (r *Repository) Attach(ctx context.Context, subject ocispec.Descriptor, referrers ...Manifest) error {
	at := r.at(subject.Digest.String())
	listed := true
	for _, m := range referrers {
		announced, err := r.putManifest(ctx, m.Descriptor, m.Content, m.Descriptor.Digest.String(), false)
		if err != nil {
			return wrap("attach to", at, err)
		}
		listed = listed && announced
	}
	if listed {
		return nil
	}
	return wrap("attach to", at, r.list(ctx, subject, referrers))
}

// list sees to it that manifests are among the referrers of their subject. Not
// every registry that has the API says so when something is pushed.
func (r *Repository) list(ctx context.Context, subject ocispec.Descriptor, referrers []Manifest) error {
	if !r.noReferrers.Load() {
		have, known, err := r.referrers(ctx, subject.Digest)
		if err != nil {
			return err
		}
		if !known {
			r.noReferrers.Store(true)
		}
		if missing, err := notIn(have, referrers); err != nil || len(missing) == 0 {
			return err
		}
	}
	r.attaching.Lock()
	defer r.attaching.Unlock()
	tag := artifact.ReferrersTag(subject.Digest)
	for range attachAttempts {
		have, err := r.taggedReferrers(ctx, subject.Digest)
		if err != nil {
			return err
		}
		// Looked at again after writing: another client may have written what it had
		// read before.
		missing, err := notIn(have, referrers)
		if err != nil || len(missing) == 0 {
			return err
		}
		desc, content, err := encodeReferrers(append(have, missing...))
		if err != nil {
			return err
		}
		if err := r.putTag(ctx, desc, content, tag, false); err != nil {
			return fmt.Errorf("listing referrers under the tag %s: %w", tag, err)
		}
	}
	return fmt.Errorf("%w: other clients write the tag %s all the time", ErrUnavailable, tag)
}

// notIn returns the descriptors of the manifests that a list lacks.
func notIn(list []ocispec.Descriptor, all []Manifest) ([]ocispec.Descriptor, error) {
	var missing []ocispec.Descriptor
	for _, m := range all {
		if slices.ContainsFunc(list, func(d ocispec.Descriptor) bool { return d.Digest == m.Descriptor.Digest }) {
			continue
		}
		var said struct {
			ArtifactType string            `json:"artifactType"`
			Annotations  map[string]string `json:"annotations"`
			Config       struct {
				MediaType string `json:"mediaType"`
			} `json:"config"`
		}
		if err := json.Unmarshal(m.Content, &said); err != nil {
			return nil, fmt.Errorf("%w: manifest %s: %w", ErrInvalid, m.Descriptor.Digest, err)
		}
		desc := plain(m.Descriptor)
		desc.ArtifactType, desc.Annotations = said.ArtifactType, said.Annotations
		if desc.ArtifactType == "" {
			desc.ArtifactType = said.Config.MediaType
		}
		missing = append(missing, desc)
	}
	return missing, nil
}

func encodeReferrers(list []ocispec.Descriptor) (ocispec.Descriptor, []byte, error) {
	content, err := json.Marshal(ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: list,
	})
	return artifact.Describe(ocispec.MediaTypeImageIndex, content), content, err
}
