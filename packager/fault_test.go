package packager_test

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// complete fails unless everything that a tag leads to is there.
func complete(t testing.TB, repo *ociregistry.Repository, when string) {
	t.Helper()
	for tag := range tags(t, repo) {
		desc, err := repo.Resolve(t.Context(), tag)
		if err != nil {
			t.Errorf("%s: tag %s: %v", when, tag, err)
			continue
		}
		content, err := repo.FetchAll(t.Context(), desc, artifact.ManifestLimit)
		if err != nil {
			t.Errorf("%s: tag %s points at content that is not there: %v", when, tag, err)
			continue
		}
		index, err := artifact.DecodeIndex(desc.MediaType, content)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range index.Manifests {
			content, err := repo.FetchAll(t.Context(), d, artifact.ManifestLimit)
			if err != nil {
				t.Errorf("%s: tag %s: manifest %s: %v", when, tag, d.Digest, err)
				continue
			}
			m, err := artifact.DecodeManifest(d.MediaType, content)
			if err != nil {
				t.Fatal(err)
			}
			for _, blob := range append(m.Layers, m.Config) {
				if there, err := repo.Exists(t.Context(), blob); err != nil || !there {
					t.Errorf("%s: tag %s: blob %s is not there: %v", when, tag, blob.Digest, err)
				}
			}
		}
	}
}

// TestEveryRequestFails is INTEROP C25, C27 and 33: it breaks one request after
// the other, in every way, and then lets the registry recover.
func TestEveryRequestFails(t *testing.T) {
	t.Parallel()
	signer, _ := keyPair(t)
	older := scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64"))
	scanned := scan(t, sampleplugin.Dist(t, "1.0.1", "linux/amd64"))
	opts := packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata(), Parallel: 1}, Signer: signer}
	reg := registrytest.New(t)
	// A release that nothing disturbs tells how many requests there are.
	calm := repository(t, reg.Host+"/calm")
	for _, d := range []struct {
		scanned *dist.Dist
		version string
	}{{older, "1.0.0"}, {scanned, "1.0.1"}} {
		reg.Gate.Forget()
		if _, err := packager.Release(t.Context(), d.scanned, version(t, d.version), calm, opts); err != nil {
			t.Fatal(err)
		}
	}
	requests := len(reg.Gate.Requests())
	if requests < 20 {
		t.Fatalf("only %d requests", requests)
	}
	for i, kind := range faults() {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			breakEach(t, opts, older, scanned, kind, i, requests)
		})
	}
}

// full breaks every single request in every way, which takes minutes; without
// it, each of many requests is broken in one way.
var full = flag.Bool("full", false, "break every request in every way")

// kind is a way to break requests.
type kind struct {
	name  string
	fault registrytest.Fault
}

func faults() []kind {
	return []kind{
		{"403", registrytest.Fault{Status: 403}},
		{"429", registrytest.Fault{Status: 429, Header: map[string]string{"Retry-After": "0"}}},
		{"500", registrytest.Fault{Status: 500}},
		{"503", registrytest.Fault{Status: 503}},
		{"reset", registrytest.Fault{Reset: true}},
		{"stall", registrytest.Fault{Reset: true}},
	}
}

// client is impatient where requests stall.
func (k kind) client(t testing.TB, name string, retries int) *ociregistry.Repository {
	t.Helper()
	opts := ociregistry.Options{Retries: retries}
	if retries == 0 {
		opts.Retries = -1
	}
	if k.name == "stall" {
		opts.StallTimeout = 500 * time.Millisecond
	}
	return open(t, name, opts)
}

// strike breaks requests from the one after skip on; times is how many, 0 for
// all. The returned function ends it.
func (k kind) strike(t testing.TB, gate *registrytest.Gate, skip, times int) func() {
	t.Helper()
	k.fault.Skip, k.fault.Times = skip, times
	stalled := make(chan struct{})
	if k.name == "stall" {
		// No answer at all, until the client has given up; nothing was done.
		k.fault.Before = func() { <-stalled }
	}
	gate.Break(t, k.fault)
	return func() {
		close(stalled)
		gate.Mend()
	}
}

// breakEach runs a release for each request, with that request and all after
// it broken, and one that recovers.
func breakEach(t *testing.T, opts packager.ReleaseOptions, older, scanned *dist.Dist, k kind, first, requests int) {
	t.Helper()
	reg := registrytest.New(t)
	if k.name != "503" { // keeping all in memory is faster
		reg = registrytest.NewReferrers(t)
	}
	failed := 0
	step := func(n int) int { return n + 3*len(faults()) - 1 }
	if *full {
		first, step = 0, func(n int) int { return n + 1 }
	}
	for n := first; n < requests; n = step(n) {
		repo := repository(t, fmt.Sprintf("%s/n%d", reg.Host, n))
		reg.Gate.Mend()
		if _, err := packager.Release(t.Context(), older, version(t, "1.0.0"), repo, opts); err != nil {
			t.Fatal(err)
		}
		before := tags(t, repo)
		mend := k.strike(t, reg.Gate, n, 0)
		_, err := packager.Release(t.Context(), scanned, version(t, "1.0.1"), k.client(t, repo.Name(), 1), opts)
		mend()
		if err != nil {
			failed++
		}
		when := fmt.Sprintf("broken from request %d on (%v)", n, err)
		complete(t, repo, when)
		after := tags(t, repo)
		for tag, d := range before {
			if after[tag] != d && after[tag] != after["1.0.1"] {
				t.Errorf("%s: tag %s moved from %s to %s", when, tag, d, after[tag])
			}
		}
		if _, published := after["1.0.1"]; err == nil && !published {
			t.Errorf("%s: a release that succeeded is not published", when)
		}
		done, err := packager.Release(t.Context(), scanned, version(t, "1.0.1"), repo, opts)
		if err != nil {
			t.Fatalf("%s: run again: %v", when, err)
		}
		d := done.Digest.String()
		want := map[string]string{"1.0.0": before["1.0.0"], "1.0.1": d, "1.0": d, "1": d, "latest": d}
		for tag, digest := range tags(t, repo) {
			if want[tag] != digest {
				t.Errorf("%s: run again: %s is %s, want %s", when, tag, digest, want[tag])
			}
		}
	}
	if failed == 0 {
		t.Error("no release failed: the test proves nothing")
	}
}

// TestOneFaultIsRetried breaks each request once: nobody notices.
func TestOneFaultIsRetried(t *testing.T) {
	t.Parallel()
	scanned := scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64"))
	for i, k := range faults()[1:] {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t)
			for n := i; n < 30; n += 5 {
				mend := k.strike(t, reg.Gate, n, 1)
				repo := k.client(t, fmt.Sprintf("%s/n%d", reg.Host, n), 3)
				_, err := packager.Release(t.Context(), scanned, version(t, "1.0.0"), repo,
					packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata()}})
				mend()
				if err != nil {
					t.Errorf("request %d: %v", n, err)
					continue
				}
				complete(t, repo, fmt.Sprintf("request %d", n))
			}
		})
	}
}

// TestTwoReleasesAtOnce is INTEROP C26: it lets 1.0.1 read the tags before 1.0.2 is there, and
// write its aliases after 1.0.2 wrote its own.
func TestTwoReleasesAtOnce(t *testing.T) {
	t.Parallel()
	slow := scan(t, sampleplugin.Dist(t, "1.0.1", "linux/amd64"))
	fast := scan(t, sampleplugin.Dist(t, "1.0.2", "linux/amd64"))
	opts := packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata(), SkipSBOM: true}}
	reg := registrytest.New(t)
	for round := range 20 {
		name := fmt.Sprintf("%s/round%d", reg.Host, round)
		var wanted digest.Digest
		var once sync.Once
		// Just before the slow one writes its first alias, the fast one runs
		// from start to end.
		tag := []string{"1.0", "1", "latest"}[round%3]
		reg.Gate.Break(t, registrytest.Fault{
			Method: "PUT", Path: fmt.Sprintf("/round%d/manifests/%s$", round, tag), Times: 1,
			Before: func() {
				once.Do(func() {
					done, err := packager.Release(t.Context(), fast, version(t, "1.0.2"), repository(t, name), opts)
					if err != nil {
						t.Errorf("round %d: %v", round, err)
						return
					}
					wanted = done.Digest
				})
			},
		})
		if _, err := packager.Release(t.Context(), slow, version(t, "1.0.1"), repository(t, name), opts); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		reg.Gate.Mend()
		got := tags(t, repository(t, name))
		for _, alias := range []string{"1.0", "1", "latest"} {
			if wanted == "" || got[alias] != wanted.String() {
				t.Errorf("round %d: %s is %s, want 1.0.2, %s", round, alias, got[alias], wanted)
			}
		}
	}
}

// TestReleasesInParallel runs both without any order.
func TestReleasesInParallel(t *testing.T) {
	t.Parallel()
	opts := packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata(), SkipSBOM: true}}
	reg := registrytest.NewReferrers(t)
	versions := []string{"1.0.1", "1.0.2", "1.1.0", "2.0.0-rc.1"}
	dists := map[string]*dist.Dist{}
	for _, v := range versions {
		dists[v] = scan(t, sampleplugin.Dist(t, v, "linux/amd64"))
	}
	for round := range 5 {
		name := fmt.Sprintf("%s/round%d", reg.Host, round)
		var wg sync.WaitGroup
		for _, v := range versions {
			wg.Go(func() {
				if _, err := packager.Release(t.Context(), dists[v], version(t, v), repository(t, name), opts); err != nil {
					t.Errorf("%s: %v", v, err)
				}
			})
		}
		wg.Wait()
		got := tags(t, repository(t, name))
		for alias, want := range map[string]string{"1.0": "1.0.2", "1.1": "1.1.0", "1": "1.1.0", "latest": "1.1.0"} {
			if got[alias] != got[want] {
				t.Errorf("round %d: %s does not point to %s", round, alias, want)
			}
		}
		for _, none := range []string{"2", "2.0"} {
			if got[none] != "" {
				t.Errorf("round %d: a prerelease has the alias %s", round, none)
			}
		}
	}
}
