package packager_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

var (
	randomCases = flag.Int("alias-cases", 150, "how many random repositories TestRandomRepositories releases to")
	randomSeed  = flag.Uint64("alias-seed", 0, "seed of TestRandomRepositories, to repeat a run; 0 for a new one")
)

// thing is what a tag of a random repository holds, as whoever put it there knows.
type thing struct {
	digest  digest.Digest
	plugin  bool
	title   string
	version string
	// vouched says that the publisher stands behind it.
	vouched bool
}

// ofDemo says whether a thing is a version of the plugin that is released.
func (x thing) ofDemo() bool { return x.plugin && x.title == "demo" && x.vouched }

// TestRandomRepositories releases to repositories in which anything may be under
// any tag. What `--dry-run` says, what the release does, and what this test works
// out from what it put there are the same.
func TestRandomRepositories(t *testing.T) {
	t.Parallel()
	seed := *randomSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("%d random repositories; repeat them with -alias-seed %d", *randomCases, seed)
	reg := registrytest.NewReferrers(t)
	refused := 0
	for n := range *randomCases {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		name := fmt.Sprintf("case %d of seed %d", n, seed)
		repo := repository(t, fmt.Sprintf("%s/random%d", reg.Host, n))
		have := fill(t, r, repo)
		v := randomVersion(r)
		delete(have, v)
		if oneCase(t, r, name, repo, have, v) {
			refused++
		}
		if t.Failed() {
			t.Fatalf("%s: %d cases before it were right", name, n)
		}
	}
	t.Logf("%d released, %d refused for an alias", *randomCases-refused, refused)
	if *randomCases >= 100 && (refused == 0 || refused == *randomCases) {
		t.Errorf("%d of %d refused: the cases are all of one kind", refused, *randomCases)
	}
}

func randomVersion(r *rand.Rand) string {
	v := fmt.Sprintf("%d.%d.%d", r.IntN(3), r.IntN(3), r.IntN(3))
	if r.IntN(6) == 0 {
		v += "-rc.1"
	}
	return v
}

// fill puts things under tags, versions and aliases among them, and returns what
// is where.
func fill(t *testing.T, r *rand.Rand, repo *ociregistry.Repository) map[string]thing {
	t.Helper()
	have, vouched := map[string]thing{}, map[digest.Digest]bool{}
	for range r.IntN(6) {
		v := randomVersion(r)
		x := thing{plugin: true, title: "demo", version: v, vouched: true}
		under := v
		switch r.IntN(10) {
		case 0:
			x.title = "other"
		case 1:
			x.plugin = false
		case 2:
			x.vouched = false
		case 3:
			x.version = randomVersion(r)
		case 4:
			under = "v" + v
		case 5:
			x.plugin, under = false, fmt.Sprintf("%d.1.0", 2020+r.IntN(5))
		}
		if x.plugin {
			x.digest = plugin(x.title, x.version)(t, repo)
		} else {
			x.digest = image(x.title, x.version, "linux/amd64")(t, repo)
		}
		if before, made := vouched[x.digest]; made {
			x.vouched = before // it is the same
		}
		vouched[x.digest] = x.vouched
		have[under] = x
		// Aliases, mostly where they belong.
		for _, alias := range packager.Aliases(version(t, x.version)) {
			if had, there := have[alias]; r.IntN(3) > 0 && (x.ofDemo() || r.IntN(3) == 0) && (!there || had.version < x.version || r.IntN(4) == 0) {
				have[alias] = x
			}
		}
	}
	for name, x := range have {
		tag(t, repo, x.digest, name)
	}
	return have
}

// expected works out where the aliases of a version go, or which are held by
// something else.
func expected(t *testing.T, have map[string]thing, v string, own digest.Digest) (aliases map[string]thing, taken []string) {
	t.Helper()
	aliases = map[string]thing{}
	for _, alias := range packager.Aliases(version(t, v)) {
		best := thing{digest: own, version: v}
		for name, x := range have {
			tagged, err := packager.ParseVersion(name)
			if err != nil || !x.ofDemo() || !slices.Contains(packager.Aliases(tagged), alias) || tagged.Compare(version(t, x.version)) != 0 {
				continue
			}
			if c := tagged.Compare(version(t, best.version)); c > 0 || c == 0 && best.digest != own && len(name) == len(tagged.String()) {
				best = x
			}
		}
		current, there := have[alias]
		switch {
		case there && current.digest != own && !current.ofDemo():
			taken = append(taken, alias)
		case there && version(t, current.version).Compare(version(t, best.version)) > 0:
			aliases[alias] = current
		default:
			aliases[alias] = best
		}
	}
	return aliases, taken
}

// oneCase releases a version, and reports whether that was refused.
func oneCase(t *testing.T, r *rand.Rand, name string, repo *ociregistry.Repository, have map[string]thing, v string) bool {
	t.Helper()
	vouched := map[digest.Digest]bool{}
	for _, x := range have {
		vouched[x.digest] = vouched[x.digest] || x.vouched
	}
	vouch := func(_ context.Context, d digest.Digest) (string, error) {
		if vouched[d] {
			return "", nil
		}
		return "not signed", nil
	}
	before := tags(t, repo)
	delete(before, v)
	options := packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata(), SkipSBOM: true}, Vouch: vouch, Replace: true, DryRun: true}
	scanned := distOf(t, v)
	planned, planErr := packager.Release(t.Context(), scanned, version(t, v), repo, options)
	var done packager.Pushed
	var err error
	if r.IntN(3) == 0 {
		layout := filepath.Join(t.TempDir(), "layout")
		if _, err := packager.Pack(t.Context(), scanned, version(t, v), layout, packager.PackOptions{Metadata: metadata(), SkipSBOM: true}); err != nil {
			t.Fatal(err)
		}
		var pushed *packager.Pushed
		if pushed, err = packager.Push(t.Context(), layout, repo, packager.PushOptions{Vouch: vouch, Replace: true}); err == nil {
			done = *pushed
		}
	} else {
		options.DryRun = false
		var released *packager.Released
		if released, err = packager.Release(t.Context(), scanned, version(t, v), repo, options); err == nil {
			done = released.Pushed
		}
	}
	after := tags(t, repo)
	want, taken := expected(t, have, v, done.Digest)
	if len(taken) > 0 {
		for _, err := range []error{planErr, err} {
			if !errors.Is(err, packager.ErrAliasTaken) || slices.ContainsFunc(taken, func(alias string) bool { return !strings.Contains(err.Error(), ":"+alias+": ") }) {
				t.Errorf("%s: %s: error = %v, want one about %v; in %v", name, v, err, taken, have)
			}
		}
		delete(after, v)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s: %s: refused, and tags moved (-before +after):\n%s", name, v, diff)
		}
		return true
	}
	if planErr != nil || err != nil {
		t.Errorf("%s: %s: %v, %v; in %v", name, v, planErr, err, have)
		return false
	}
	if plan, run := fmt.Sprint(planned.Aliases), fmt.Sprint(done.Aliases); plan != run {
		t.Errorf("%s: %s: planned %s, done %s; in %v", name, v, plan, run, have)
	}
	wanted := maps.Clone(before)
	wanted[v] = done.Digest.String()
	for alias, x := range want {
		wanted[alias] = x.digest.String()
		i := slices.IndexFunc(done.Aliases, func(a packager.Alias) bool { return a.Tag == alias })
		if i < 0 || done.Aliases[i].Version.String() != x.version || done.Aliases[i].Moved != (before[alias] != x.digest.String()) {
			t.Errorf("%s: %s: %v, want %s at %s; in %v", name, v, done.Aliases, alias, x.version, have)
		}
	}
	if diff := cmp.Diff(wanted, after); diff != "" {
		t.Errorf("%s: %s: tags (-want +got):\n%s\nin %v", name, v, diff, have)
	}
	return false
}
