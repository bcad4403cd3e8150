package packager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// Alias is where one of the moving tags stands after a push.
type Alias struct {
	// Tag is "1.2", "1" or "latest".
	Tag string `json:"tag"`
	// Version that it points to.
	Version Version `json:"version"`
	// Moved says whether this push moved it.
	Moved bool `json:"moved"`
	// Fixed is why it stays where it is although it should have been moved: the
	// registry moves no tags.
	Fixed string `json:"fixed,omitempty"`
}

// fixed warns of the aliases that the registry did not move.
func fixed(repo Repository, aliases []Alias) []dist.Warning {
	var warnings []dist.Warning
	for _, a := range aliases {
		if a.Fixed == "" {
			continue
		}
		at := "what it was on"
		if !a.Version.IsZero() {
			at = a.Version.String()
		}
		warnings = append(warnings, dist.Warning{Subject: repo.Name() + ":" + a.Tag, Message: fmt.Sprintf(
			"the alias stays on %s: %s; fleeting-plugin resolves versions itself and is not affected, installers that read the tag get that one; --no-aliases moves no aliases",
			at, a.Fixed)})
	}
	return warnings
}

// Vouch says whether the publisher stands behind what a digest names: "" if it
// does, else why not. An error is for what could not be found out.
type Vouch func(ctx context.Context, d digest.Digest) (why string, err error)

// AliasError says that the name of an alias holds something else than a version
// of this plugin by this publisher. It wraps [ErrAliasTaken].
type AliasError struct {
	// Reference is "host[:port]/path:alias", Digest what it resolves to.
	Reference string
	Digest    digest.Digest
	// Holds says what that is.
	Holds string
}

// Error names the alias and what holds it.
func (e *AliasError) Error() string {
	return fmt.Sprintf("%s: %v: it is %s, %s", e.Reference, ErrAliasTaken, e.Digest, e.Holds)
}

// Unwrap returns [ErrAliasTaken].
func (*AliasError) Unwrap() error { return ErrAliasTaken }

// aliasRounds bounds how often aliases are looked at again. Each further round
// needs another release of the same plugin at the very same moment.
const aliasRounds = 10

// candidateLimit bounds how many tags that look like higher versions are looked
// into.
const candidateLimit = 1000

// held is what a tag or digest holds, as far as aliases care.
type held struct {
	desc ocispec.Descriptor
	// plugin says whether it is a fleeting plugin; version is that of its layers,
	// or of an image that is none.
	plugin  bool
	version Version
	title   string
	// platforms are those of its images.
	platforms []string
}

// String says what it is.
func (h held) String() string {
	kind := "an image of no version"
	switch {
	case h.plugin:
		kind = "the plugin"
	case !h.version.IsZero():
		kind = "an image"
	}
	if h.title != "" {
		kind += fmt.Sprintf(" %q", h.title)
	}
	if !h.version.IsZero() {
		kind += " " + h.version.String()
	}
	if !h.plugin && len(h.platforms) > 0 {
		kind += " for " + strings.Join(h.platforms, ", ")
	}
	if !h.plugin {
		kind += ", which is not a fleeting plugin"
	}
	return kind
}

// lookInto reads what a tag or digest holds. What cannot be read as an image is
// described, and is never an error; what cannot be fetched is.
func lookInto(ctx context.Context, from Source, reference string) (held, error) {
	t, err := readTree(ctx, from, reference)
	if errors.Is(err, ErrNotPlugin) {
		desc, err := from.Resolve(ctx, reference)
		return held{desc: plain(desc)}, err
	}
	if err != nil {
		return held{}, err
	}
	h := held{desc: t.top, title: t.annotations[ocispec.AnnotationTitle]}
	h.version, _ = ParseVersion(t.annotations[ocispec.AnnotationVersion])
	for _, entry := range t.entries {
		if entry.Platform == nil || entry.Platform.OS == "unknown" {
			continue
		}
		p, err := inspectPlatform(ctx, from, entry)
		switch {
		case errors.Is(err, ociregistry.ErrNotFound):
			// A plugin of which a part was deleted is none that installs.
			return held{desc: h.desc, title: h.title, platforms: []string{p.Platform + " (not there)"}}, nil
		case err != nil && !errors.Is(err, artifact.ErrInvalid):
			return held{}, err
		}
		h.platforms = append(h.platforms, p.Platform)
		if p.Layer == "" {
			continue
		}
		v, err := ParseVersion(p.Version)
		if err != nil || h.plugin && v.Compare(h.version) != 0 {
			// Installers name the folder by it, so this is no version of anything.
			return held{desc: h.desc, title: h.title, platforms: h.platforms}, nil //nolint:nilerr // an unknown version is no error
		}
		h.plugin, h.version = true, v
	}
	return h, nil
}

// aliaser decides where aliases go. It looks at what tags hold, never at their
// names alone.
type aliaser struct {
	repo Repository
	// own is what is being published. Nobody needs to vouch for it.
	own   held
	vouch Vouch
	// known are the answers of vouch.
	known map[digest.Digest]string
	// passed are the tags that were not counted, and why.
	passed map[string]string
}

func newAliaser(repo Repository, own held, vouch Vouch) *aliaser {
	return &aliaser{repo: repo, own: own, vouch: vouch, known: map[digest.Digest]string{}, passed: map[string]string{}}
}

// counts says why what a tag holds is not a version of what is being published,
// "" if it is. A tag that is a version holds that one, or does not count.
func (a *aliaser) counts(ctx context.Context, h held, tag Version) (string, error) {
	switch {
	case h.desc.Digest == a.own.desc.Digest:
		return "", nil
	case h.plugin != a.own.plugin, h.version.IsZero(), h.title != "" && a.own.title != "" && h.title != a.own.title:
		return h.String(), nil
	case !tag.IsZero() && h.version.Compare(tag) != 0:
		return fmt.Sprintf("%s, not %s", h, tag), nil
	case a.vouch == nil:
		return "", nil
	}
	why, ok := a.known[h.desc.Digest]
	if !ok {
		var err error
		if why, err = a.vouch(ctx, h.desc.Digest); err != nil {
			return "", err
		}
		a.known[h.desc.Digest] = why
	}
	if why != "" {
		why = h.String() + ", which this publisher did not sign: " + why
	}
	return why, nil
}

// decision is where an alias goes.
type decision struct {
	alias string
	// target is what it has to point to, current what it points to now; there is
	// none if that has no digest.
	target, current held
}

// moves says whether the alias has to be moved: only forward.
func (d decision) moves() bool {
	return d.current.desc.Digest != d.target.desc.Digest && d.current.version.Compare(d.target.version) <= 0
}

func (d decision) result() Alias {
	if d.current.desc.Digest != "" && !d.moves() {
		return Alias{Tag: d.alias, Version: d.current.version}
	}
	return Alias{Tag: d.alias, Version: d.target.version, Moved: true}
}

// decide says where the aliases of the version go, given all tags. It changes
// nothing. An alias that holds something else is an [*AliasError]. Early says that
// the repository may not be there yet.
func (a *aliaser) decide(ctx context.Context, tags []string, early bool) ([]decision, error) {
	versions := versionsOf(tags)
	var all []decision
	var problems []error
	for _, name := range Aliases(a.own.version) {
		d := decision{alias: name}
		var err error
		if d.target, err = a.highest(ctx, name, versions); err != nil {
			return nil, fmt.Errorf("alias %s: %w", name, err)
		}
		d.current, err = lookInto(ctx, a.repo, name)
		switch {
		case errors.Is(err, ociregistry.ErrNotFound), early && errors.Is(err, ociregistry.ErrForbidden):
			d.current = held{}
		case err != nil:
			return nil, fmt.Errorf("alias %s: %w", name, err)
		default:
			why, err := a.counts(ctx, d.current, Version{})
			if err != nil {
				return nil, fmt.Errorf("alias %s: %w", name, err)
			}
			if why != "" {
				problems = append(problems, &AliasError{Reference: a.repo.Name() + ":" + name, Digest: d.current.desc.Digest, Holds: why})
				continue
			}
		}
		all = append(all, d)
	}
	return all, errors.Join(problems...)
}

// highest returns the highest version that an alias may point to: what is being
// published, or a higher version that counts. One that is listed and not there was
// deleted: some registries go on listing it.
func (a *aliaser) highest(ctx context.Context, alias string, versions []taggedVersion) (held, error) {
	looked := 0
	for _, v := range versions {
		if v.version.Compare(a.own.version) <= 0 {
			break
		}
		if !slices.Contains(Aliases(v.version), alias) || a.passed[v.tag] != "" {
			continue
		}
		if looked++; looked > candidateLimit {
			return held{}, fmt.Errorf("%w: more than %d tags look like higher versions and are none of this plugin; publish to a repository of its own, or leave the aliases alone", ErrAliasTaken, candidateLimit)
		}
		h, err := lookInto(ctx, a.repo, v.tag)
		if errors.Is(err, ociregistry.ErrNotFound) {
			continue
		}
		if err != nil {
			return held{}, fmt.Errorf("version %s: %w", v.tag, err)
		}
		why, err := a.counts(ctx, h, v.version)
		if err != nil {
			return held{}, fmt.Errorf("version %s: %w", v.tag, err)
		}
		if why == "" {
			return h, nil
		}
		a.passed[v.tag] = why
	}
	return a.own, nil
}

// warnings name the tags that were not counted.
func (a *aliaser) warnings() []dist.Warning {
	var all []dist.Warning
	for tag, why := range a.passed {
		all = append(all, dist.Warning{Subject: a.repo.Name() + ":" + tag, Message: "it is not counted as a version: it is " + why})
	}
	slices.SortFunc(all, func(a, b dist.Warning) int { return strings.Compare(a.Subject, b.Subject) })
	return all
}

// plan says where the aliases would stand after the version was published.
func (a *aliaser) plan(ctx context.Context) ([]Alias, []dist.Warning, error) {
	if a.own.version.IsPrerelease() {
		return []Alias{}, nil, nil
	}
	tags, limits, err := a.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	decisions, err := a.decide(ctx, tags, true)
	all := []Alias{}
	for _, d := range decisions {
		all = append(all, d.result())
	}
	return all, append(a.warnings(), limits...), err
}

// list returns the tags of the repository. Where they cannot be listed, the
// aliases are only compared with what they point to.
func (a *aliaser) list(ctx context.Context) ([]string, []dist.Warning, error) {
	tags, err := a.repo.Tags(ctx)
	if ociregistry.ListingRefused(err) {
		if errors.Is(err, ociregistry.ErrNotFound) {
			if _, err := a.repo.Resolve(ctx, a.own.version.String()); errors.Is(err, ociregistry.ErrNotFound) {
				return nil, nil, nil // there is no repository yet
			}
		}
		return nil, []dist.Warning{{Subject: a.repo.Name(), Message: "the registry does not list tags, so aliases were only compared with what they pointed to; another release at the same time may have been missed"}}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("listing the versions: %w", err)
	}
	return tags, nil, nil
}

// settle moves the aliases, and looks again until nothing had to be moved: another
// release may have written between reading and writing. Every release writes its
// version tag before it reads the tags, so whoever writes an alias last sees all
// versions when it looks again. Before each round, still says whether the version
// is still published.
func (a *aliaser) settle(ctx context.Context, still func() error, report func(Event)) ([]Alias, []dist.Warning, error) {
	all := []Alias{}
	if a.own.version.IsPrerelease() {
		return all, nil, still()
	}
	for range aliasRounds {
		if err := still(); err != nil {
			return all, a.warnings(), err
		}
		tags, limits, err := a.list(ctx)
		if err != nil {
			return all, a.warnings(), err
		}
		decisions, err := a.decide(ctx, tags, false)
		if err != nil {
			return all, a.warnings(), err
		}
		moved, err := a.move(ctx, decisions, &all, report)
		if err != nil || !moved {
			return all, slices.Concat(a.warnings(), limits, fixed(a.repo, all)), err
		}
	}
	return all, a.warnings(), fmt.Errorf("aliases did not settle in %d rounds: another release moves them all the time", aliasRounds)
}

// giveWay moves the aliases to what another publisher has published as the same
// version, where they were moved to what is published no more.
func (a *aliaser) giveWay(ctx context.Context, report func(Event)) error {
	winner, err := lookInto(ctx, a.repo, a.own.version.String())
	if err != nil {
		return err
	}
	if why, err := a.counts(ctx, winner, a.own.version); why != "" || err != nil {
		return err
	}
	other := newAliaser(a.repo, winner, a.vouch)
	other.known[a.own.desc.Digest] = ""
	_, _, err = other.settle(ctx, func() error { return nil }, report)
	return err
}

// move does what was decided, and notes it in all.
func (a *aliaser) move(ctx context.Context, decisions []decision, all *[]Alias, report func(Event)) (moved bool, err error) {
	var problems []error
	for _, d := range decisions {
		next, kind := d.result(), EventTagKept
		if d.moves() {
			err := a.repo.Tag(ctx, d.target.desc, d.alias)
			switch {
			case errors.Is(err, ociregistry.ErrImmutable):
				next = Alias{Tag: d.alias, Version: d.current.version, Fixed: err.Error()}
			case err != nil:
				problems = append(problems, fmt.Errorf("alias %s: %w", d.alias, err))
				continue
			default:
				moved, kind = true, EventTagged
			}
		}
		report(Event{Kind: kind, Subject: d.alias})
		if i := slices.IndexFunc(*all, func(had Alias) bool { return had.Tag == d.alias }); i >= 0 {
			next.Moved = next.Moved || (*all)[i].Moved
			(*all)[i] = next
		} else {
			*all = append(*all, next)
		}
	}
	return moved, errors.Join(problems...)
}

// taggedVersion is a tag that is a version.
type taggedVersion struct {
	version Version
	tag     string
}

// versionsOf picks the tags that are versions, the highest first.
func versionsOf(tags []string) []taggedVersion {
	var all []taggedVersion
	for _, tag := range tags {
		if v, err := ParseVersion(tag); err == nil {
			all = append(all, taggedVersion{v, tag})
		}
	}
	slices.SortStableFunc(all, func(a, b taggedVersion) int {
		if c := b.version.Compare(a.version); c != 0 {
			return c
		}
		return len(a.tag) - len(b.tag) // "1.2.3" before "v1.2.3"
	})
	return all
}

// PromoteOptions say what [Promote] goes by.
type PromoteOptions struct {
	// Vouch says what is the publisher's, the version itself among it. Nil counts
	// every version of the same plugin.
	Vouch Vouch
	// DryRun changes nothing.
	DryRun bool
	// Report is told of every step.
	Report func(Event)
}

// Promoted says what [Promote] did, or with DryRun would do.
type Promoted struct {
	// Repository is "host[:port]/path".
	Repository string        `json:"repository"`
	Version    Version       `json:"version"`
	Digest     digest.Digest `json:"digest"`
	// Aliases are the tags that may point to the version, and where they do.
	Aliases []Alias `json:"aliases"`
	// Warnings name tags that were not counted, and what the registry cannot do.
	Warnings []dist.Warning `json:"warnings,omitempty"`
}

// ErrNotVouched reports a version that the publisher does not stand behind.
var ErrNotVouched = errors.New("this publisher did not sign it")

// Promote moves the aliases of a version that is published, as [Push] does unless
// its options say SkipAliases: for those who check a version before their users
// follow an alias to it. Errors are those of [Push], and [ErrNotVouched].
func Promote(ctx context.Context, repo Repository, version Version, opts PromoteOptions) (*Promoted, error) {
	own, err := lookInto(ctx, repo, version.String())
	if err != nil {
		return nil, err
	}
	reference := repo.Name() + ":" + version.String()
	if own.version.Compare(version) != 0 || own.version.IsZero() {
		return nil, fmt.Errorf("%s: %w: it is %s", reference, ErrNotPlugin, own)
	}
	if opts.Vouch != nil {
		why, err := opts.Vouch(ctx, own.desc.Digest)
		if err != nil {
			return nil, err
		}
		if why != "" {
			return nil, fmt.Errorf("%s: %w: %s", reference, ErrNotVouched, why)
		}
	}
	out := &Promoted{Repository: repo.Name(), Version: version, Digest: own.desc.Digest, Aliases: []Alias{}}
	a := newAliaser(repo, own, opts.Vouch)
	if opts.DryRun {
		out.Aliases, out.Warnings, err = a.plan(ctx)
		return out, err
	}
	// The bytes of the index do not matter to who looks whether the tag moved.
	still := func() error { return stillPublished(ctx, repo, version, blob{desc: own.desc}, "") }
	out.Aliases, out.Warnings, err = a.settle(ctx, still, reporter(opts.Report))
	return out, err
}
