package installer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
)

// TestResolveTags publishes some versions and asks for constraints.
func TestResolveTags(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	repo := repository(t, registry.Host, "team/plugin")
	digests := map[string]string{}
	for _, v := range []struct{ version, tags string }{
		{"1.2.3", "1.2.3 1.2"},
		{"1.10.0", "v1.10.0"},
		{"1.9.0", "1.9.0 1"}, // a floating tag that lags behind
		{"2.0.0-alpha.1", "2.0.0-alpha.1 2 latest"},
		{"0.9.0", "0.9.0_build.5"},
	} {
		p := plugintest.Publish(t, repo, plugintest.Plugin{Version: v.version, Body: v.version}, strings.Fields(v.tags)...)
		digests[v.version] = p.Index.Digest.String()
	}
	i := newInstaller(t, installer.Policy{})
	for constraint, want := range map[string]string{
		":1":                         "1.10.0", // INTEROP C6: the runner fetches 1 as a tag, which lags behind
		":1.2":                       "1.2.3",
		":~1.10":                     "1.10.0", // INTEROP C6: no tag 1.10
		":1.2.3":                     "1.2.3",
		":v1.2.3":                    "1.2.3",  // INTEROP 2: publishers tag their releases so
		":1.10.0":                    "1.10.0", // its only tag has a v
		":0.9.0":                     "0.9.0",
		":~1.9":                      "1.9.0",
		":>=1.2 <1.10":               "1.9.0",
		":":                          "",
		":latest":                    "1.10.0", // INTEROP C7: the tag latest is a prerelease
		"":                           "1.10.0",
		":2.0.0-alpha.1":             "2.0.0-alpha.1",
		":>=2.0.0-alpha":             "2.0.0-alpha.1",
		"@" + digests["1.2.3"]:       "1.2.3", // INTEROP C9
		":1@" + digests["1.9.0"]:     "1.9.0",
		":2@" + digests["1.9.0"]:     "",
		":1.2.3@" + digests["1.9.0"]: "",
		":2":                         "",
		":3":                         "",
		":9.9.9":                     "",
		"@" + someDigest:             "",
	} {
		if constraint == ":" {
			continue
		}
		r, err := i.Resolve(t.Context(), reference(t, registry.Host+"/team/plugin"+constraint))
		switch {
		case want == "" && !errors.Is(err, installer.Reason("no-version")) && !errors.Is(err, installer.ErrNotFound):
			t.Errorf("%q: %v, %v; want not found", constraint, r.Version, err)
		case want != "" && (err != nil || r.Version.String() != want || r.Digest().String() != digests[want]):
			t.Errorf("%q: %v, %v; want %s", constraint, r.Version, err, want)
		}
	}
}

// TestResolveWithoutListing takes the floating tag where tags may not be listed.
func TestResolveWithoutListing(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	repo := repository(t, registry.Host, "team/plugin")
	plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3"}, "1.2.3", "1.2", "1", "latest")
	i := newInstaller(t, installer.Policy{})
	for status, ok := range map[int]bool{401: true, 403: true, 404: true, 405: true, 500: false, 429: false} {
		registry.Gate.Break(t, registrytest.Fault{Path: "/tags/list", Status: status})
		for constraint, want := range map[string]bool{"1": ok, "latest": ok, "1.2.3": true, "^1": false} {
			_, err := i.Resolve(t.Context(), reference(t, registry.Host+"/team/plugin:"+constraint))
			if (err == nil) != want {
				t.Errorf("listing answers %d, %q: %v; want success = %v", status, constraint, err, want)
			}
		}
		registry.Gate.Mend()
	}
}

// TestMovedTag is INTEROP C8, and a tag that was pointed back in time.
func TestMovedTag(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	repo := repository(t, registry.Host, "team/plugin")
	plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.0.0"}, "3.0.0", "latest")
	i := newInstaller(t, installer.Policy{})
	for _, constraint := range []string{"3.0.0", "3", "latest"} {
		_, err := i.Resolve(t.Context(), reference(t, registry.Host+"/team/plugin:"+constraint))
		if !errors.Is(err, installer.Reason("mismatch")) {
			t.Errorf("%s: got %v; want mismatch", constraint, err)
		}
	}
}

// TestPlatforms is INTEROP C17 and its neighbours: what is chosen for a host
// among what an index offers, whatever the order. INTEROP 4: gitlab-runner !5090.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	for n, test := range []struct{ host, offered, want string }{
		{"linux/amd64", "linux/386", ""},
		{"linux/amd64", "linux/386 linux/amd64", "linux/amd64"},
		{"linux/arm64", "linux/arm/v7 linux/arm/v6 linux/arm", ""},
		{"linux/arm64", "linux/arm/v7 linux/arm64", "linux/arm64"},
		{"linux/arm/v7", "linux/arm/v5 linux/arm/v6", "linux/arm/v6"},
		{"linux/arm/v7", "linux/arm/v7 linux/arm/v6", "linux/arm/v7"},
		{"linux/arm/v6", "linux/arm/v7", ""},
		{"linux/amd64", "linux/amd64/v3 linux/amd64/v2", ""},
		{"linux/amd64", "darwin/amd64 windows/amd64", ""},
		{"darwin/arm64", "darwin/amd64", ""},
		{"windows/amd64", "linux/amd64 windows/amd64", "windows/amd64"},
	} {
		platforms := strings.Fields(test.offered)
		for _, order := range [][]string{platforms, reversed(platforms)} {
			repo := repository(t, registry.Host, "p"+string(rune('a'+n)))
			plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.0.0", Platforms: order}, "1.0.0")
			i := newInstaller(t, installer.Policy{}, installer.WithPlatform(test.host))
			r, err := i.Resolve(t.Context(), reference(t, registry.Host+"/p"+string(rune('a'+n))+":1"))
			if test.want == "" && !errors.Is(err, installer.Reason("no-platform")) || test.want != "" && r.Platform != test.want {
				t.Errorf("%s among %v: %q, %v; want %q", test.host, order, r.Platform, err, test.want)
			}
		}
	}
}

func reversed(in []string) []string {
	out := slices.Clone(in)
	slices.Reverse(out)
	return out
}

// TestIndexEntries changes the entries of an index: INTEROP C14, C15, C17, and
// what buildx adds. INTEROP 31: https://github.com/docker/buildx/issues/3047
func TestIndexEntries(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	host := artifact.HostPlatform()
	unknown := ocispec.Descriptor{
		MediaType: ocispec.MediaTypeImageManifest, Digest: someDigest, Size: 1,
		Platform: &ocispec.Platform{OS: "unknown", Architecture: "unknown"},
	}
	for name, test := range map[string]struct {
		change func(*ocispec.Index)
		want   error
	}{
		"C14 no platform at all": {func(index *ocispec.Index) {
			for n := range index.Manifests {
				index.Manifests[n].Platform = nil
			}
		}, nil},
		"attestations of buildx, before": {func(index *ocispec.Index) {
			index.Manifests = append([]ocispec.Descriptor{unknown}, index.Manifests...)
		}, nil},
		"an attestation without a platform": {func(index *ocispec.Index) {
			broken := unknown
			broken.Platform = nil
			index.Manifests = append(index.Manifests, broken)
		}, nil},
		"C15 the child is missing": {func(index *ocispec.Index) {
			index.Manifests = index.Manifests[:1]
			index.Manifests[0].Digest = someDigest
		}, installer.ErrNotFound},
		"C12 no entries": {func(index *ocispec.Index) { index.Manifests = nil }, installer.Reason("no-platform")},
		"C17 a version of the system that nobody has": {func(index *ocispec.Index) {
			other := index.Manifests[0]
			other.Digest, other.Platform = someDigest, &ocispec.Platform{OS: host.OS(), Architecture: host.Arch(), Variant: host.Variant(), OSVersion: "99"}
			index.Manifests = append([]ocispec.Descriptor{other}, index.Manifests...)
		}, nil},
		"wrong size of the child": {func(index *ocispec.Index) {
			index.Manifests = index.Manifests[:1]
			index.Manifests[0].Size++
		}, errAny},
		"the child is an index": {func(index *ocispec.Index) {
			index.Manifests = index.Manifests[:1]
			index.Manifests[0].MediaType = ocispec.MediaTypeImageIndex
		}, installer.Reason("no-platform")},
		"wrong media type of the child": {func(index *ocispec.Index) {
			index.Manifests = index.Manifests[:1]
			index.Manifests[0].MediaType = artifact.MediaTypeDockerManifest
		}, errAny},
		"many entries": {func(index *ocispec.Index) {
			for range 900 {
				index.Manifests = append(index.Manifests, unknown)
			}
		}, nil},
		"as many entries as fit into 4 MiB": {func(index *ocispec.Index) {
			entry := ocispec.Descriptor{MediaType: "a", Digest: someDigest, Size: 1}
			index.Manifests = slices.Repeat([]ocispec.Descriptor{entry}, 30_000)
		}, installer.Reason("not-plugin")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repoName := strings.ToLower(strings.NewReplacer(" ", "-", ",", "").Replace(name))
			var published plugintest.Published
			layout := newLayout(t) // takes what a registry would refuse
			published = plugintest.Publish(t, layout, plugintest.Plugin{Version: "1.0.0", Index: test.change}, "1.0.0")
			i := newInstaller(t, installer.Policy{}, installer.WithSource(installer.FromLayout(layout.Name())))
			r, err := i.Resolve(t.Context(), reference(t, registry.Host+"/"+repoName+":1"))
			switch {
			case test.want == nil && (err != nil || r.Manifest != published.Manifests[host.String()].Digest):
				t.Errorf("%s, %v", r.Manifest, err)
			case test.want != nil && err == nil, test.want != nil && !errors.Is(test.want, errAny) && !errors.Is(err, test.want):
				t.Errorf("got %v; want %v", err, test.want)
			}
		})
	}
}

// errAny stands for any error.
var errAny = errors.New("any error")

// TestOutdatedElsewhere: a newest release for other platforms only is an error, as
// an upgrade to it would be, and not "no newer release".
func TestOutdatedElsewhere(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	repo := repository(t, registry.Host, "p")
	plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.0.0", Platforms: []string{"linux/amd64"}}, "1.0.0")
	i := newInstaller(t, installer.UnsafeNoVerification(), installer.WithPlatform("linux/amd64"))
	installed, err := i.Install(t.Context(), reference(t, registry.Host+"/p:1"), installer.InstallOptions{As: alias})
	if err != nil {
		t.Fatal(err)
	}
	plugintest.Publish(t, repo, plugintest.Plugin{Version: "2.0.0", Platforms: []string{"darwin/arm64"}}, "2.0.0")
	if outdated, err := i.Outdated(t.Context(), installed); !errors.Is(err, installer.Reason("no-platform")) {
		t.Errorf("%+v, %v; want no-platform", outdated, err)
	}
}
