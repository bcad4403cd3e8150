package evidence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/evidence"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// place is a repository in memory that notes what it is asked for, and fails
// where it is told to.
type place struct {
	tags      map[string]ocispec.Descriptor
	content   map[digest.Digest][]byte
	referrers []ocispec.Descriptor
	broken    map[string]error
	asked     []string
}

func newPlace() *place {
	return &place{tags: map[string]ocispec.Descriptor{}, content: map[digest.Digest][]byte{}, broken: map[string]error{}}
}

func (p *place) ask(what string) error {
	p.asked = append(p.asked, what)
	return p.broken[what]
}

func (p *place) Resolve(_ context.Context, reference string) (ocispec.Descriptor, error) {
	if err := p.ask(reference); err != nil {
		return ocispec.Descriptor{}, err
	}
	desc, ok := p.tags[reference]
	if !ok {
		return desc, fmt.Errorf("%s: %w", reference, ociregistry.ErrNotFound)
	}
	return desc, nil
}

func (p *place) FetchAll(_ context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	if err := p.ask(desc.Digest.String()); err != nil {
		return nil, err
	}
	if desc.Size > limit {
		return nil, ociregistry.ErrTooLarge
	}
	content, ok := p.content[desc.Digest]
	if !ok {
		return nil, ociregistry.ErrNotFound
	}
	if int64(len(content)) != desc.Size {
		return nil, ociregistry.ErrDigestMismatch
	}
	return content, nil
}

func (p *place) Referrers(context.Context, ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	return p.referrers, p.ask("referrers")
}

func (p *place) put(mediaType string, content []byte) ocispec.Descriptor {
	desc := artifact.Describe(mediaType, content)
	p.content[desc.Digest] = content
	return desc
}

// manifest stores a manifest with one layer for each payload.
func (p *place) manifest(tb testing.TB, mediaType string, payloads ...string) ocispec.Descriptor {
	tb.Helper()
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: p.put(ocispec.MediaTypeEmptyJSON, []byte("{}"))}
	m.SchemaVersion = 2
	for _, payload := range payloads {
		m.Layers = append(m.Layers, p.put(mediaType, []byte(payload)))
	}
	content, err := json.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return p.put(ocispec.MediaTypeImageManifest, content)
}

// lie stores a manifest that names a bundle with another size.
func (p *place) lie(tb testing.TB, payload string) ocispec.Descriptor {
	tb.Helper()
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: p.put(ocispec.MediaTypeEmptyJSON, []byte("{}"))}
	m.SchemaVersion = 2
	m.Layers = []ocispec.Descriptor{artifact.Describe(bundle, []byte(payload))}
	m.Layers[0].Size--
	content, err := json.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return p.put(ocispec.MediaTypeImageManifest, content)
}

func (p *place) attach(desc ocispec.Descriptor, artifactType string) {
	desc.ArtifactType = artifactType
	p.referrers = append(p.referrers, desc)
}

// subject is what evidence is looked for about.
func subject() ocispec.Descriptor {
	return artifact.Describe(ocispec.MediaTypeImageIndex, []byte("an index"))
}

// discover lists the payloads that were handed over, until stop of them were.
func discover(tb testing.TB, p *place, stop int) ([]string, error) {
	tb.Helper()
	var payloads []string
	var search evidence.Search
	err := search.Discover(tb.Context(), p, subject(), func(found evidence.Found) bool {
		payloads = append(payloads, string(found.Payload))
		return len(payloads) < stop
	})
	return payloads, err
}

const (
	bundle = artifact.MediaTypeBundle
	all    = 1 << 20
)

// dressed has evidence in every place.
func dressed(tb testing.TB) *place {
	tb.Helper()
	p := newPlace()
	p.tags[artifact.SignatureTag(subject().Digest)] = p.manifest(tb, artifact.MediaTypeSimpleSigning, "signature")
	p.tags[artifact.AttestationTag(subject().Digest)] = p.manifest(tb, artifact.MediaTypeDSSE, "attestation")
	p.attach(p.manifest(tb, bundle, "of no type"), "")
	p.attach(p.manifest(tb, "text/plain", "a document"), artifact.MediaTypeSPDX)
	p.attach(p.manifest(tb, bundle, "a bundle"), bundle)
	return p
}

// TestEveryPlace finds what is there, most likely signatures first, and reads
// nothing that cannot be evidence.
func TestEveryPlace(t *testing.T) {
	t.Parallel()
	p := dressed(t)
	got, err := discover(t, p, all)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"signature", "a bundle", "of no type", "attestation"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if document := digest.FromString("a document").String(); slices.Contains(p.asked, document) {
		t.Error("a document was read")
	}
}

// TestEnough stops asking when what was found is enough.
func TestEnough(t *testing.T) {
	t.Parallel()
	for n, want := range [][]string{1: {"signature"}, 2: {"signature", "a bundle"}, 3: {"signature", "a bundle", "of no type"}} {
		if n == 0 {
			continue
		}
		p := dressed(t)
		got, err := discover(t, p, n)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%d wanted: %v (-want +got):\n%s", n, err, diff)
		}
		if slices.Contains(p.asked, artifact.AttestationTag(subject().Digest)) {
			t.Errorf("%d wanted: went on to %v", n, p.asked)
		}
	}
}

// TestNothing is no error, and no evidence.
func TestNothing(t *testing.T) {
	t.Parallel()
	if got, err := discover(t, newPlace(), all); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestCannotFetch breaks one request at a time: that is never an absence, what
// else there is counts, and a registry that is down is asked no more.
func TestCannotFetch(t *testing.T) {
	t.Parallel()
	places := func(p *place) []string {
		out := []string{artifact.SignatureTag(subject().Digest), artifact.AttestationTag(subject().Digest), "referrers"}
		for _, desc := range p.tags {
			out = append(out, desc.Digest.String())
		}
		for _, desc := range p.referrers {
			out = append(out, desc.Digest.String())
		}
		for _, payload := range []string{"signature", "attestation", "a bundle", "of no type"} {
			out = append(out, digest.FromString(payload).String())
		}
		return out
	}
	for n, what := range places(dressed(t)) {
		for _, cause := range []error{
			ociregistry.ErrUnauthorized, ociregistry.ErrForbidden, ociregistry.ErrDigestMismatch, ociregistry.ErrInvalid,
			ociregistry.ErrUnavailable, ociregistry.ErrRateLimited, ociregistry.ErrNotFound, errors.New("something else"),
		} {
			if n < 2 && errors.Is(cause, ociregistry.ErrNotFound) {
				continue // the tag is not there: an absence, which TestNothing is about
			}
			p := dressed(t)
			p.broken[what] = cause
			got, err := discover(t, p, all)
			if !errors.Is(err, evidence.ErrUnavailable) || !errors.Is(err, cause) {
				t.Errorf("%s broken by %v: %v", what, cause, err)
			}
			if down := p.asked[len(p.asked)-1] == what; evidence.Hopeless(cause) && !down || !evidence.Hopeless(cause) && len(got) == 0 {
				t.Errorf("%s broken by %v: found %v, asked %v", what, cause, got, p.asked)
			}
		}
	}
}

// TestBounds holds that strangers who attach much cost little, and are told of.
func TestBounds(t *testing.T) {
	t.Parallel()
	many := newPlace()
	for n := range 300 {
		many.attach(many.manifest(t, bundle, fmt.Sprint("bundle ", n)), bundle)
	}
	layered := newPlace()
	var payloads []string
	for n := range 200 {
		payloads = append(payloads, fmt.Sprint("layer ", n))
	}
	layered.attach(layered.manifest(t, bundle, payloads...), bundle)
	large := newPlace()
	large.attach(large.manifest(t, bundle, strings.Repeat("x", trust.MaxPayload+1), "a bundle"), bundle)
	heavy, pieces := newPlace(), newPlace()
	for n := range 10 {
		heavy.attach(heavy.manifest(t, bundle, fmt.Sprint(n)+strings.Repeat("x", trust.MaxPayload-1)), bundle)
		var payloads []string
		for layer := range 100 {
			payloads = append(payloads, fmt.Sprint(n, " ", layer))
		}
		pieces.attach(pieces.manifest(t, bundle, payloads...), bundle)
	}
	same := newPlace()
	same.attach(same.manifest(t, artifact.MediaTypeDSSE, slices.Repeat([]string{strings.Repeat("x", 1<<20)}, 100)...), "")
	again := newPlace()
	again.attach(again.manifest(t, bundle, slices.Repeat([]string{"a bundle"}, 100)...), bundle)
	again.attach(again.manifest(t, bundle, "a bundle", "another"), "")
	for name, c := range map[string]struct {
		place *place
		want  int
	}{
		"referrers":          {many, 256},
		"layers":             {layered, 128},
		"bytes of one piece": {large, 1},
		"bytes in all":       {heavy, 4},
		"pieces in all":      {pieces, 512},
		"the same piece":     {same, 32},
	} {
		got, err := discover(t, c.place, all)
		if !errors.Is(err, evidence.ErrUnavailable) || !errors.Is(err, ociregistry.ErrTooLarge) || len(got) != c.want {
			t.Errorf("%s: %d pieces, %v; want %d, and that there are more", name, len(got), err, c.want)
		}
		asked := map[string]int{}
		for _, what := range c.place.asked {
			if asked[what]++; asked[what] > 1 {
				t.Errorf("%s: asked for %s again", name, what)
			}
		}
	}
	if got, err := discover(t, again, all); err != nil || !slices.Equal(got, []string{"a bundle", "another"}) {
		t.Errorf("one bundle in many places: %v, %v", got, err)
	}
}

// TestOneSearch holds that what is found about several subjects counts together.
func TestOneSearch(t *testing.T) {
	t.Parallel()
	p := newPlace()
	p.attach(p.manifest(t, bundle, strings.Repeat("x", trust.MaxPayload)), bundle)
	var search evidence.Search
	n, failed := 0, error(nil)
	for range 5 {
		failed = search.Discover(t.Context(), p, subject(), func(evidence.Found) bool {
			n++
			return true
		})
	}
	if n != 4 || !errors.Is(failed, ociregistry.ErrTooLarge) {
		t.Errorf("%d pieces, %v", n, failed)
	}
}

// TestOddities are things that registries and strangers put in the places.
func TestOddities(t *testing.T) {
	t.Parallel()
	twice := newPlace()
	same := twice.manifest(t, bundle, "a bundle")
	twice.tags[artifact.SignatureTag(subject().Digest)] = same
	twice.attach(same, bundle)
	twice.attach(same, "")
	index := newPlace()
	index.attach(index.put(ocispec.MediaTypeImageIndex, []byte(`{"schemaVersion":2,"manifests":[]}`)), bundle)
	broken := newPlace()
	broken.attach(broken.put(ocispec.MediaTypeImageManifest, []byte(`{"schemaVersion":`)), bundle)
	missing := newPlace()
	missing.attach(artifact.Describe(ocispec.MediaTypeImageManifest, []byte("not there")), bundle)
	lying := newPlace()
	lying.tags[artifact.SignatureTag(subject().Digest)] = lying.lie(t, "a bundle")
	lying.attach(lying.manifest(t, bundle, "a bundle"), bundle)
	for name, c := range map[string]struct {
		place *place
		want  []string
		fails bool
	}{
		"another size for it":          {lying, []string{"a bundle"}, true},
		"one manifest in three places": {twice, []string{"a bundle"}, false},
		"an index":                     {index, nil, false},
		"no manifest at all":           {broken, nil, true},
		"a referrer that is not there": {missing, nil, true},
	} {
		got, err := discover(t, c.place, all)
		if diff := cmp.Diff(c.want, got); diff != "" || errors.Is(err, evidence.ErrUnavailable) != c.fails {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestCancelled asks for nothing, and says why.
func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := dressed(t)
	err := new(evidence.Search).Discover(ctx, p, subject(), func(evidence.Found) bool { return true })
	if !errors.Is(err, context.Canceled) || len(p.asked) > 0 {
		t.Errorf("%v, asked %v", err, p.asked)
	}
}
