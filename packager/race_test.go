package packager_test

import (
	"errors"
	"flag"
	"fmt"
	"sync"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

var races = flag.Int("races", 25, "how many races TestTwoPublishersOfOneVersion runs on each registry")

// titled is the release of one of several publishers of a version.
func titled(title string) packager.ReleaseOptions {
	options := packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata(), SkipSBOM: true}}
	options.Metadata.Description = title
	return options
}

// TestTwoPublishersOfOneVersion: of two who publish a version at the same time,
// one publishes it, and the other has [packager.PublishedError]. Where the registry
// honours If-None-Match, or has immutable tags, nothing else can happen; elsewhere
// the window is counted.
func TestTwoPublishersOfOneVersion(t *testing.T) {
	t.Parallel()
	for _, registry := range []struct {
		name, behaviour string
		exact           bool
	}{
		{"a registry that promises nothing", "", false},
		{"If-None-Match", "a tag that is there is left alone, if asked to", true},
		{"immutable version tags", "version tags are never written twice", true},
	} {
		t.Run(registry.name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.NewReferrers(t)
			if registry.behaviour != "" {
				reg.Behave(t, registrytest.Named(t, registry.behaviour))
			}
			both := 0
			for n := range *races {
				won := race(t, repository(t, fmt.Sprintf("%s/race%d", reg.Host, n)))
				if won == 2 {
					both++
				}
				if won == 0 || registry.exact && won == 2 {
					t.Fatalf("race %d: %d of 2 publishers have published the version", n, won)
				}
			}
			t.Logf("%d races, both have published in %d", *races, both)
		})
	}
}

// race lets two publishers release a version, and returns how many believe that
// they did. What the tags show is one of those.
func race(t *testing.T, repo *ociregistry.Repository) int {
	t.Helper()
	var start, done sync.WaitGroup
	start.Add(1)
	results := make([]*packager.Released, 2)
	for i := range results {
		scanned := distOf(t, "1.0.0")
		done.Go(func() {
			start.Wait()
			var err error
			results[i], err = packager.Release(t.Context(), scanned, version(t, "1.0.0"), repo, titled(fmt.Sprint("publisher ", i)))
			published, ok := errors.AsType[*packager.PublishedError](err)
			if err != nil && (!ok || published.Published == published.New) {
				t.Errorf("publisher %d: %v", i, err)
			}
		})
	}
	start.Done()
	done.Wait()
	got, won := tags(t, repo), 0
	known := false
	for _, r := range results {
		if r != nil {
			won++
			known = known || got["1.0.0"] == r.Digest.String()
		}
	}
	for _, alias := range []string{"1.0", "1", "latest"} {
		known = known && got[alias] == got["1.0.0"]
	}
	if !known {
		t.Errorf("tags %v are of none who has published", got)
	}
	return won
}

// TestOvertaken lets another publisher publish the version at each point where it
// matters. This one learns of it, and no alias is left where it put it.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	const versionTag, anyAlias = "/manifests/1\\.0\\.0$", "/manifests/(1\\.0|1|latest)$"
	tests := []struct {
		name      string
		fault     registrytest.Fault
		behaviour string
		// remains is the one case that a registry without promises leaves open: the
		// other has looked for the last time.
		remains bool
	}{
		{"before it looks", registrytest.Fault{Method: "GET", Path: versionTag, Skip: 4}, "", false},
		{"between looking and writing", registrytest.Fault{Method: "PUT", Path: versionTag}, "", true},
		{"between looking and writing, If-None-Match", registrytest.Fault{Method: "PUT", Path: versionTag}, "a tag that is there is left alone, if asked to", false},
		{"between looking and writing, immutable tags", registrytest.Fault{Method: "PUT", Path: versionTag}, "version tags are never written twice", false},
		{"after writing", registrytest.Fault{Method: "GET", Path: versionTag, Skip: 5}, "", false},
		{"before the aliases", registrytest.Fault{Method: "GET", Path: "/tags/list$", Skip: 1}, "", false},
		{"between the aliases", registrytest.Fault{Method: "PUT", Path: anyAlias, Skip: 1}, "", false},
		{"after the aliases", registrytest.Fault{Method: "PUT", Path: anyAlias, Skip: 2}, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.NewReferrers(t)
			if tt.behaviour != "" {
				reg.Behave(t, registrytest.Named(t, tt.behaviour))
			}
			repo := repository(t, reg.Host+"/demo")
			var other *packager.Released
			tt.fault.Times = 1
			tt.fault.Before = func() {
				reg.Gate.Mend()
				var err error
				// With an older tool, which overwrites what is there.
				options := titled("the other")
				options.Replace = true
				if tt.behaviour != "" {
					options.Replace = false
				}
				if other, err = packager.Release(t.Context(), distOf(t, "1.0.0"), version(t, "1.0.0"), repo, options); err != nil {
					t.Error(err)
				}
			}
			reg.Gate.Break(t, tt.fault)
			done, err := packager.Release(t.Context(), distOf(t, "1.0.0"), version(t, "1.0.0"), repo, titled("this one"))
			if other == nil {
				t.Fatal("the other has not published")
			}
			got := tags(t, repo)
			if tt.remains {
				if err != nil || got["1.0.0"] != done.Digest.String() {
					t.Errorf("error = %v; if this is noticed now, the documentation has to say so", err)
				}
				return
			}
			published, ok := errors.AsType[*packager.PublishedError](err)
			if !ok || !published.Overtaken || published.Published != other.Digest {
				t.Fatalf("error = %v, want that %s came first", err, other.Digest)
			}
			for _, name := range []string{"1.0.0", "1.0", "1", "latest"} {
				if got[name] != other.Digest.String() {
					t.Errorf("tag %s is %s, want that of the other, %s", name, got[name], other.Digest)
				}
			}
		})
	}
}
