package packager_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// publish releases versions one after the other, and returns what each tag
// points to, by version.
func publish(t *testing.T, reg *registrytest.Registry, name string, versions ...string) map[string]string {
	t.Helper()
	repo := repository(t, reg.Host+"/"+name)
	byDigest := map[string]string{}
	for _, v := range versions {
		done := releasePlain(t, repo, v)
		byDigest[done.Digest.String()] = v
	}
	got := map[string]string{}
	for tag, d := range tags(t, repo) {
		got[tag] = byDigest[d]
	}
	return got
}

func releasePlain(t *testing.T, repo *ociregistry.Repository, v string) *packager.Released {
	t.Helper()
	done, err := packager.Release(t.Context(), distOf(t, v), version(t, v), repo,
		packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata(), SkipSBOM: true}})
	if err != nil {
		t.Fatalf("%s: %v", v, err)
	}
	return done
}

// TestAliases is INTEROP C7: of the runner project's releaser, a prerelease takes
// over the aliases, and 0.0.0 gets none.
func TestAliases(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	tests := []struct {
		name     string
		versions []string
		want     map[string]string
	}{
		{"forward", []string{"1.0.0", "1.0.1"}, map[string]string{"1.0": "1.0.1", "1": "1.0.1", "latest": "1.0.1"}},
		{
			"an old line is repaired",
			[]string{"1.0.0", "1.1.0", "2.0.0", "1.0.1"},
			map[string]string{"1.0": "1.0.1", "1.1": "1.1.0", "1": "1.1.0", "2.0": "2.0.0", "2": "2.0.0", "latest": "2.0.0"},
		},
		{"prereleases never", []string{"1.0.0", "2.0.0-rc.1"}, map[string]string{"1.0": "1.0.0", "1": "1.0.0", "latest": "1.0.0"}},
		{"only a prerelease", []string{"0.1.0-alpha"}, map[string]string{}},
		{"zero", []string{"0.0.0", "0.0.1"}, map[string]string{"0.0": "0.0.1", "0": "0.0.1", "latest": "0.0.1"}},
		{"numbers, not text", []string{"1.9.0", "1.10.0"}, map[string]string{"1.9": "1.9.0", "1.10": "1.10.0", "1": "1.10.0", "latest": "1.10.0"}},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, v := range tt.versions {
				tt.want[v] = v
			}
			if diff := cmp.Diff(tt.want, publish(t, reg, fmt.Sprintf("alias%d", i), tt.versions...)); diff != "" {
				t.Errorf("tags (-want +got):\n%s", diff)
			}
		})
	}
}

// TestManyTags needs several pages of tags.
func TestManyTags(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	repo := repository(t, reg.Host+"/many")
	high := releasePlain(t, repo, "9.0.0")
	desc, err := repo.Resolve(t.Context(), "9.0.0")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 150 {
		if err := repo.Tag(t.Context(), desc, fmt.Sprintf("build-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	low := releasePlain(t, repo, "1.0.0")
	got := tags(t, repo)
	if got["latest"] != high.Digest.String() || got["1"] != low.Digest.String() {
		t.Errorf("latest %s, 1 %s", got["latest"], got["1"])
	}
}

// TestRegistryThatListsNoTags falls back to what the aliases themselves say.
func TestRegistryThatListsNoTags(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403, 404, 405} {
		reg := registrytest.New(t)
		reg.Gate.Break(t, registrytest.Fault{Path: "/tags/list$", Status: status})
		repo := repository(t, reg.Host+"/demo")
		one := releasePlain(t, repo, "1.0.0")
		two := releasePlain(t, repo, "1.0.1")
		old := releasePlain(t, repo, "0.9.0")
		for name, r := range map[string]*packager.Released{"1.0.0": one, "1.0.1": two, "0.9.0": old} {
			if len(r.Warnings) == 0 || !strings.Contains(r.Warnings[len(r.Warnings)-1].Message, "does not list tags") {
				t.Errorf("%d: %s: warnings %v", status, name, r.Warnings)
			}
		}
		reg.Gate.Mend()
		got := tags(t, repo)
		want := map[string]string{
			"1.0.0": one.Digest.String(), "1.0.1": two.Digest.String(), "0.9.0": old.Digest.String(), "0.9": old.Digest.String(),
			"0": old.Digest.String(), "1.0": two.Digest.String(), "1": two.Digest.String(), "latest": two.Digest.String(),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d: tags (-want +got):\n%s", status, diff)
		}
	}
}

// TestAliasesByContent: a tag counts for what it holds, not for its name. What is
// not a version of the plugin by its publisher is neither moved to nor taken over.
func TestAliasesByContent(t *testing.T) {
	t.Parallel()
	reg := registrytest.NewReferrers(t)
	tests := []struct {
		name string
		// tag holds something else while 1.6.0 is released after 1.5.0.
		tag  string
		make func(t *testing.T, repo *ociregistry.Repository) digest.Digest
		// want is why it does not count, and refused says that it keeps the release
		// from being made.
		want    string
		refused bool
	}{
		{"an image under a version", "2024.1.0", image("application", "", "linux/amd64"), `it is an image of no version "application" for linux/amd64, which is not a fleeting plugin`, false},
		{"an image with a version", "2024.1.0", image("application", "2024.1.0", "linux/amd64"), `it is an image "application" 2024.1.0 for linux/amd64, which is not a fleeting plugin`, false},
		{"an image of two platforms", "v3.0.0", image("demo", "3.0.0", "linux/amd64", "linux/arm64"), `linux/amd64, linux/arm64, which is not a fleeting plugin`, false},
		{"an application's latest", "latest", image("application", "", "linux/amd64"), `it is sha256:`, true},
		{"something else under 1", "1", document, `which is not a fleeting plugin`, true},
		{"a document under a version", "9.9.9", document, `which is not a fleeting plugin`, false},
		{"another plugin", "3.0.0", plugin("other", "3.0.0"), `it is the plugin "other" 3.0.0`, false},
		{"another plugin under latest", "latest", plugin("other", "3.0.0"), `the plugin "other" 3.0.0`, true},
		{"a version under another", "v3.0.0", plugin("demo", "1.4.0"), `it is the plugin "demo" 1.4.0, not 3.0.0`, false},
		{"a plugin of two versions", "3.0.0", plugin("demo", "3.0.0", "3.0.1"), `which is not a fleeting plugin`, false},
		{"a version that nobody vouches for", "3.0.0", plugin("demo", "3.0.0"), `it is the plugin "demo" 3.0.0, which this publisher did not sign: it is a stranger's`, false},
		{"a latest that nobody vouches for", "latest", plugin("demo", "3.0.0"), `which this publisher did not sign: it is a stranger's`, true},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			repo := repository(t, fmt.Sprintf("%s/content%d", reg.Host, i))
			first := releasePlain(t, repo, "1.5.0")
			foreign := tt.make(t, repo)
			tag(t, repo, foreign, tt.tag)
			before := tags(t, repo)
			options := packager.ReleaseOptions{
				PackOptions: packager.PackOptions{Metadata: metadata(), SkipSBOM: true},
				Vouch: func(_ context.Context, d digest.Digest) (string, error) {
					if d == first.Digest {
						return "", nil
					}
					return "it is a stranger's", nil
				},
			}
			scanned := distOf(t, "1.6.0")
			options.DryRun = true
			planned, planErr := packager.Release(t.Context(), scanned, version(t, "1.6.0"), repo, options)
			options.DryRun = false
			done, err := packager.Release(t.Context(), scanned, version(t, "1.6.0"), repo, options)
			if tt.refused {
				for _, err := range []error{planErr, err} {
					taken, ok := errors.AsType[*packager.AliasError](err)
					if !ok || !errors.Is(err, packager.ErrAliasTaken) || taken.Digest != foreign || !strings.Contains(err.Error(), tt.want) {
						t.Errorf("error = %v, want one that says %q of %s", err, tt.want, foreign)
					}
				}
				if diff := cmp.Diff(before, tags(t, repo)); diff != "" {
					t.Errorf("tags moved (-before +after):\n%s", diff)
				}
				return
			}
			if planErr != nil || err != nil {
				t.Fatal(planErr, err)
			}
			if plan, run := fmt.Sprint(planned.Aliases), fmt.Sprint(done.Aliases); plan != run {
				t.Errorf("aliases: planned %s, done %s", plan, run)
			}
			for _, warnings := range [][]dist.Warning{planned.Warnings, done.Warnings} {
				if text := fmt.Sprint(warnings); !strings.Contains(text, ":"+tt.tag+": it is not counted as a version: ") || !strings.Contains(text, tt.want) {
					t.Errorf("warnings %v, want %q", warnings, tt.want)
				}
			}
			before["1.6.0"], before["1.6"], before["1"], before["latest"] = done.Digest.String(), done.Digest.String(), done.Digest.String(), done.Digest.String()
			if diff := cmp.Diff(before, tags(t, repo)); diff != "" {
				t.Errorf("tags (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAliasesGoOnOverKnownVersions: an alias that is ahead stays, and a higher
// version under a tag with a "v" counts.
func TestAliasesGoOnOverKnownVersions(t *testing.T) {
	t.Parallel()
	repo := repository(t, registrytest.NewReferrers(t).Host+"/ahead")
	tag(t, repo, plugin("demo", "3.0.0")(t, repo), "v3.0.0")
	done := releasePlain(t, repo, "1.6.0")
	got := tags(t, repo)
	if got["latest"] != got["v3.0.0"] || got["1"] != done.Digest.String() {
		t.Errorf("latest %s, 1 %s; want %s and %s", got["latest"], got["1"], got["v3.0.0"], done.Digest)
	}
}

func tag(t testing.TB, repo *ociregistry.Repository, d digest.Digest, name string) {
	t.Helper()
	desc, err := repo.Resolve(t.Context(), d.String())
	if err == nil {
		err = repo.Tag(t.Context(), desc, name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func distOf(t testing.TB, v string) *dist.Dist {
	t.Helper()
	dir := t.TempDir()
	sampleplugin.Write(t, dir+"/linux/amd64/plugin", append(sampleplugin.ELF(), v...), 0o755)
	return scan(t, dir)
}

func TestParseReferenceTable(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, repository, identifier string }{
		{"registry.example.com/group/plugin:1.2.3", "registry.example.com/group/plugin", "1.2.3"},
		{"registry.example.com:5000/plugin", "registry.example.com:5000/plugin", ""},
		{"localhost/plugin:v1", "localhost/plugin", "v1"},
		{"127.0.0.1:5000/a@sha256:00", "127.0.0.1:5000/a", "sha256:00"},
		{"plugin:1.2.3", "", ""},
		{"group/plugin:1.2.3", "", ""},
		{"a.b/c:", "", ""},
		{"a.b/c@md5:00", "", ""},
		{"", "", ""},
	}
	for _, tt := range tests {
		repository, identifier, err := packager.ParseReference(tt.in)
		if (err != nil) != (tt.repository == "") || (err == nil && (repository != tt.repository || identifier != tt.identifier)) {
			t.Errorf("%q: %q, %q, %v", tt.in, repository, identifier, err)
		}
	}
}
