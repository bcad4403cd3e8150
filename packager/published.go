package packager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// PublishedError says that a version is published with other content, and how
// that differs from what was to be published. It wraps [ErrPublished].
type PublishedError struct {
	// Reference is "host[:port]/path:version".
	Reference string
	// Published is the digest of the index that is there, New that of the one
	// that was to take its place.
	Published, New digest.Digest
	// Differences are those that the two indexes show; none where what is there
	// cannot be read.
	Differences []Difference
	// Overtaken is set if another publisher published the version at the same time,
	// and this one comes too late.
	Overtaken bool
}

// Difference is one thing that is not the same in two artifacts.
type Difference struct {
	// Annotation is the last part of the name of an annotation of the image
	// specification, such as "created", or "minimum-runner"; "" for what is none.
	Annotation string
	// What says what differs, where it is no annotation.
	What string
	// Published and New are the annotation's values; "" for none.
	Published, New string
}

// String says it in words.
func (d Difference) String() string {
	if d.Annotation == "" {
		return d.What
	}
	quote := func(value string) string {
		if value == "" {
			return "not there"
		}
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprintf("%s was %s and would be %s", d.Annotation, quote(d.Published), quote(d.New))
}

// Error names both digests and the differences.
func (e *PublishedError) Error() string {
	text := fmt.Sprintf("%s: %v: it is %s there and would become %s", e.Reference, ErrPublished, e.Published, e.New)
	if e.Overtaken {
		text = fmt.Sprintf("%s: %v, by another publisher at the same time: it is %s there, and not %s", e.Reference, ErrPublished, e.Published, e.New)
	}
	if len(e.Differences) == 0 {
		return text
	}
	words := make([]string, len(e.Differences))
	for i, d := range e.Differences {
		words[i] = d.String()
	}
	return text + ": " + strings.Join(words, "; ")
}

// Unwrap returns [ErrPublished].
func (*PublishedError) Unwrap() error { return ErrPublished }

// unlessHidden passes over a 403. Some registries answer that for a repository that
// is not there yet; once something is in it, they list its tags, and the version is
// looked for again before its tag is written.
func unlessHidden(err error) error {
	if errors.Is(err, ociregistry.ErrForbidden) {
		return nil
	}
	return err
}

// checkVersionTag returns what the version's tag points to, "" if it is not there.
// That is the index, or with replace what it replaces.
func checkVersionTag(ctx context.Context, repo Repository, version Version, index blob, replace bool) (digest.Digest, error) {
	have, err := repo.Resolve(ctx, version.String())
	switch {
	case errors.Is(err, ociregistry.ErrNotFound):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("looking for version %s: %w", version, err)
	case have.Digest == index.desc.Digest, replace:
		return have.Digest, nil
	}
	return "", isOther(ctx, repo, version, have, index)
}

// isOther is the error of a version that is there with other content.
func isOther(ctx context.Context, repo Repository, version Version, have ocispec.Descriptor, index blob) *PublishedError {
	refusal := &PublishedError{Reference: repo.Name() + ":" + version.String(), Published: have.Digest, New: index.desc.Digest}
	// It is refused whether the reason can be told or not.
	if content, err := repo.FetchAll(ctx, plain(have), artifact.ManifestLimit); err == nil {
		refusal.Differences = differences(blob{have, content}, index)
	}
	return refusal
}

// moveVersionTag publishes the version, and returns the digest that the tag had
// before, if it was replaced.
//
// The tag is looked at immediately before and after it is written, and once more
// by [stillPublished] when all else is done. The first write of a version asks the
// registry not to move a tag that is there (If-None-Match), which settles it where
// that is honoured, or tags are immutable. Elsewhere one case is left: another
// publisher looks before this one writes, and writes after this one looked for the
// last time. Then both have published, and the later has replaced the earlier
// unnoticed.
func moveVersionTag(ctx context.Context, repo Repository, version Version, index blob, replace bool, report func(Event)) (digest.Digest, error) {
	have, err := checkVersionTag(ctx, repo, version, index, replace)
	if err != nil {
		return "", overtaken(err)
	}
	write := repo.Tag
	switch have {
	case "":
		write = repo.TagNew
	case index.desc.Digest:
		report(Event{Kind: EventTagKept, Subject: version.String()})
		return "", nil
	}
	if err := write(ctx, index.desc, version.String()); err != nil {
		if other := stillPublished(ctx, repo, version, index, have); errors.Is(other, ErrPublished) {
			return "", other
		}
		return "", fmt.Errorf("publishing version %s: %w", version, err)
	}
	report(Event{Kind: EventTagged, Subject: version.String()})
	return have, stillPublished(ctx, repo, version, index, have)
}

// stillPublished fails if the version's tag points to something else than what was
// published here. A registry that does not show what was written yet is no
// failure.
func stillPublished(ctx context.Context, repo Repository, version Version, index blob, replaced digest.Digest) error {
	have, err := repo.Resolve(ctx, version.String())
	switch {
	case errors.Is(err, ociregistry.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("looking at version %s: %w", version, err)
	case have.Digest == index.desc.Digest, have.Digest == replaced:
		return nil
	}
	return overtaken(isOther(ctx, repo, version, have, index))
}

// overtaken marks the error of a version that was not there a moment ago.
func overtaken(err error) error {
	if published, ok := errors.AsType[*PublishedError](err); ok {
		published.Overtaken = true
	}
	return err
}

// differences compares two indexes; what cannot be read has none.
func differences(published, replacement blob) []Difference {
	was, err := artifact.DecodeIndex(published.desc.MediaType, published.content)
	if err != nil {
		return []Difference{{What: "what is there is no index"}}
	}
	would, err := artifact.DecodeIndex(replacement.desc.MediaType, replacement.content)
	if err != nil {
		return nil
	}
	found := differentEntries(was, would)
	a, b := toldBy(was), toldBy(would)
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a[name] != b[name] {
			found = append(found, Difference{Annotation: name, Published: a[name], New: b[name]})
		}
	}
	if len(found) == 0 {
		found = []Difference{{What: "executables and annotations are the same, layers are not, as when another version of fleeting-plugin packaged them"}}
	}
	return found
}

// toldBy gives the annotations of an index that flags can set, by the names of
// the flags.
func toldBy(index ocispec.Index) map[string]string {
	told := map[string]string{}
	for name, value := range index.Annotations {
		if short, ok := strings.CutPrefix(name, "org.opencontainers.image."); ok {
			told[short] = value
		}
	}
	if extra, err := artifact.DecodeMetadata(index.Annotations[artifact.AnnotationMetadata]); err == nil && extra.MinimumRunner != "" {
		told["minimum-runner"] = extra.MinimumRunner
	}
	return told
}

// differentEntries compares platforms and their executables.
func differentEntries(was, would ocispec.Index) []Difference {
	a, b := executablesOf(was), executablesOf(would)
	all := maps.Clone(a)
	maps.Copy(all, b)
	var gone, added, changed []string
	for _, platform := range slices.Sorted(maps.Keys(all)) {
		before, isThere := a[platform]
		after, willBe := b[platform]
		switch {
		case !willBe:
			gone = append(gone, platform)
		case !isThere:
			added = append(added, platform)
		case before != after && before != "":
			changed = append(changed, platform)
		}
	}
	var found []Difference
	for _, list := range []struct {
		platforms []string
		text      string
	}{{changed, "other executables for "}, {gone, "none any more for "}, {added, "new for "}} {
		if len(list.platforms) > 0 {
			found = append(found, Difference{What: list.text + strings.Join(list.platforms, ", ")})
		}
	}
	return found
}

// executablesOf gives the digests of executables by platform; "" where the index
// does not say it.
func executablesOf(index ocispec.Index) map[string]string {
	found := map[string]string{}
	for _, entry := range index.Manifests {
		if entry.Platform == nil {
			continue
		}
		if p, err := artifact.PlatformFromOCI(*entry.Platform); err == nil {
			found[p.String()] = entry.Annotations[artifact.AnnotationExecutable]
		}
	}
	return found
}
