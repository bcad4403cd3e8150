package packager_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
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
	dir := t.TempDir()
	writeFile(t, dir+"/linux/amd64/plugin", append(elfFile(), v...), 0o755)
	done, err := packager.Release(t.Context(), scan(t, dir), version(t, v), repo,
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

// TestForeignAlias: a tag that somebody put on something else is taken over, a
// version with a "v" counts, and an alias that is ahead stays.
func TestForeignAlias(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	repo := repository(t, reg.Host+"/foreign")
	first := releasePlain(t, repo, "1.5.0")
	desc, err := repo.Resolve(t.Context(), "1.5.0")
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.Tag(t.Context(), desc, "v3.0.0"); err != nil {
		t.Fatal(err)
	}
	second := releasePlain(t, repo, "1.6.0")
	got := tags(t, repo)
	if got["latest"] != first.Digest.String() {
		t.Errorf("latest is %s, want v3.0.0, %s", got["latest"], first.Digest)
	}
	if got["1"] != second.Digest.String() {
		t.Errorf("1 is %s, want 1.6.0", got["1"])
	}
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
