package packager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// Alias is where one of the moving tags stands after a push.
type Alias struct {
	// Tag is "1.2", "1" or "latest".
	Tag string `json:"tag"`
	// Version that it points to, as far as that is known.
	Version Version `json:"version"`
	// Moved says whether this push moved it.
	Moved bool `json:"moved"`
	// Fixed is why it stays where it is although it should have been moved: the
	// registry moves no tags.
	Fixed string `json:"fixed,omitempty"`
}

// fixed warns of the aliases that the registry did not move.
func fixed(repo Repository, aliases []Alias) []Warning {
	var warnings []Warning
	for _, a := range aliases {
		if a.Fixed == "" {
			continue
		}
		at := "what it was on"
		if !a.Version.IsZero() {
			at = a.Version.String()
		}
		warnings = append(warnings, Warning{repo.Name() + ":" + a.Tag, fmt.Sprintf(
			"the alias stays on %s: %s; fleeting-plugin lists versions and is not affected, installers that take the tag as it is get that one; --no-aliases leaves aliases alone",
			at, a.Fixed)})
	}
	return warnings
}

// aliasRounds bounds how often aliases are looked at again. Each further round
// needs another release of the same plugin at the very same moment.
const aliasRounds = 10

// published is a version and where its tag points.
type published struct {
	version Version
	tag     string
}

// moveAliases brings the aliases of a version to the highest version that they
// may stand for, and looks again until nothing had to be moved: another release
// may have written between reading and writing. Every release writes its
// version tag before it reads the tags, so whoever writes an alias last sees
// all versions when it looks again.
func moveAliases(ctx context.Context, repo Repository, version Version, index ocispec.Descriptor, report func(Event)) ([]Alias, []Warning, error) {
	names := version.Aliases()
	result := make([]Alias, len(names))
	for i, name := range names {
		result[i] = Alias{Tag: name}
	}
	for range aliasRounds {
		tags, err := repo.Tags(ctx)
		if ociregistry.ListingRefused(err) {
			warnings, err := moveBlindly(ctx, repo, version, index, result, report)
			return result, append(warnings, fixed(repo, result)...), err
		}
		if err != nil {
			return result, nil, fmt.Errorf("listing the versions: %w", err)
		}
		moved := false
		var problems []error
		for i := range result {
			// The own version is there, even if the listing lags behind.
			m, err := result[i].move(ctx, repo, versionsOf(append(tags, version.String())), report)
			moved = moved || m
			problems = append(problems, err)
		}
		if err := errors.Join(problems...); err != nil || !moved {
			return result, fixed(repo, result), err
		}
	}
	return result, nil, fmt.Errorf("aliases did not settle in %d rounds: another release moves them all the time", aliasRounds)
}

// planAliases says where the aliases would stand after a version was published
// with a digest.
func planAliases(ctx context.Context, repo Repository, version Version, index digest.Digest) ([]Alias, error) {
	tags, err := repo.Tags(ctx)
	if err != nil && !ociregistry.ListingRefused(err) {
		return nil, fmt.Errorf("listing the versions: %w", err)
	}
	versions := versionsOf(append(tags, version.String()))
	var all []Alias
	for _, name := range version.Aliases() {
		i := slices.IndexFunc(versions, func(p published) bool {
			return p.version.Compare(version) <= 0 && slices.Contains(p.version.Aliases(), name)
		})
		best, _, err := highest(ctx, repo, name, versions[:i])
		if err != nil {
			return nil, err
		}
		have, current, err := currently(ctx, repo, name)
		if err != nil {
			return nil, err
		}
		if current.Compare(best.version) > 0 {
			best.version = current
		}
		if version.Compare(best.version) >= 0 {
			best.version = version
		}
		all = append(all, Alias{Tag: name, Version: best.version, Moved: best.version.Compare(version) == 0 && have.Digest != index})
	}
	return all, nil
}

// currently returns what an alias points to, and which version that is; zero
// values for an alias that does not exist.
func currently(ctx context.Context, repo Repository, alias string) (ocispec.Descriptor, Version, error) {
	have, err := repo.Resolve(ctx, alias)
	if errors.Is(err, ociregistry.ErrNotFound) {
		return ocispec.Descriptor{}, Version{}, nil
	}
	if err != nil {
		return ocispec.Descriptor{}, Version{}, fmt.Errorf("alias %s: %w", alias, err)
	}
	version, err := versionOf(ctx, repo, have)
	if err != nil {
		return have, version, fmt.Errorf("alias %s: %w", alias, err)
	}
	return have, version, nil
}

// versionsOf picks the tags that are versions, the highest first.
func versionsOf(tags []string) []published {
	var all []published
	for _, tag := range tags {
		if v, err := ParseVersion(tag); err == nil {
			all = append(all, published{v, tag})
		}
	}
	slices.SortStableFunc(all, func(a, b published) int {
		if c := b.version.Compare(a.version); c != 0 {
			return c
		}
		return len(a.tag) - len(b.tag) // "1.2.3" before "v1.2.3"
	})
	return all
}

// move points the alias at the highest version that it may stand for, and says
// whether it had to.
func (a *Alias) move(ctx context.Context, repo Repository, versions []published, report func(Event)) (bool, error) {
	best, want, err := highest(ctx, repo, a.Tag, versions)
	if err != nil || best.version.IsZero() {
		return false, err
	}
	have, current, err := currently(ctx, repo, a.Tag)
	if err != nil {
		return false, err
	}
	if have.Digest == want.Digest || current.Compare(best.version) > 0 {
		a.Version = current
		report(Event{Kind: EventTagKept, Subject: a.Tag})
		return false, nil
	}
	err = repo.Tag(ctx, want, a.Tag)
	if errors.Is(err, ociregistry.ErrImmutable) {
		a.Version, a.Fixed = current, err.Error()
		report(Event{Kind: EventTagKept, Subject: a.Tag})
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("alias %s: %w", a.Tag, err)
	}
	a.Version, a.Moved = best.version, true
	report(Event{Kind: EventTagged, Subject: a.Tag})
	return true, nil
}

// highest returns the highest version that an alias may stand for, and where it
// points. One that is listed and not there was deleted: some registries go on
// listing it.
func highest(ctx context.Context, repo Repository, alias string, versions []published) (published, ocispec.Descriptor, error) {
	for _, p := range versions {
		if !slices.Contains(p.version.Aliases(), alias) {
			continue
		}
		desc, err := repo.Resolve(ctx, p.tag)
		if err == nil {
			return p, desc, nil
		}
		if !errors.Is(err, ociregistry.ErrNotFound) {
			return published{}, ocispec.Descriptor{}, fmt.Errorf("alias %s: version %s: %w", alias, p.tag, err)
		}
	}
	return published{}, ocispec.Descriptor{}, nil
}

// versionOf reads which version an alias stands for; the zero Version if the
// content does not say.
func versionOf(ctx context.Context, from Content, desc ocispec.Descriptor) (Version, error) {
	content, err := from.FetchAll(ctx, desc, artifact.ManifestLimit)
	if err != nil {
		return Version{}, err
	}
	var index ocispec.Index
	if index, err = artifact.DecodeIndex(desc.MediaType, content); err != nil {
		return Version{}, nil //nolint:nilerr // an alias that was put on something else is free to be moved
	}
	candidates := []string{index.Annotations[ocispec.AnnotationVersion]}
	for _, m := range index.Manifests {
		candidates = append(candidates, m.Annotations[ocispec.AnnotationVersion])
	}
	for _, s := range candidates {
		if v, err := ParseVersion(s); err == nil {
			return v, nil
		}
	}
	return Version{}, nil
}

// moveBlindly moves aliases where tags cannot be listed: forward from what each
// alias itself says.
func moveBlindly(ctx context.Context, repo Repository, version Version, index ocispec.Descriptor, aliases []Alias, report func(Event)) ([]Warning, error) {
	warning := Warning{repo.Name(), "the registry does not list tags, so aliases were only compared with what they pointed to; another release at the same time may have been missed"}
	var problems []error
	for i := range aliases {
		_, err := aliases[i].move(ctx, repo, []published{{version, version.String()}}, report)
		problems = append(problems, err)
	}
	// Looked at again, because two releases may have done the above at once.
	for i := range aliases {
		have, err := repo.Resolve(ctx, aliases[i].Tag)
		problems = append(problems, err)
		if err == nil && have.Digest != index.Digest {
			_, err = aliases[i].move(ctx, repo, []published{{version, version.String()}}, report)
			problems = append(problems, err)
		}
	}
	return []Warning{warning}, errors.Join(problems...)
}
