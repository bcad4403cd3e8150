package installer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// many is how many manifests a hostile index names: some 30 MB of JSON.
const many = 100_000

// metered counts what a client reads of answers.
type metered struct{ read, requests atomic.Int64 }

func (m *metered) RoundTrip(r *http.Request) (*http.Response, error) {
	m.requests.Add(1)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		resp.Body = meteredBody{resp.Body, m}
	}
	return resp, err
}

type meteredBody struct {
	io.ReadCloser
	meter *metered
}

func (b meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.meter.read.Add(int64(n))
	return n, err
}

func (m *metered) source(tb testing.TB) installer.Option {
	tb.Helper()
	r, err := installer.NewRegistries(installer.RegistryOptions{Transport: m})
	if err != nil {
		tb.Fatal(err)
	}
	return installer.WithSource(r.Open)
}

// TestManyManifests publishes an index of 100,000 manifests, signed and all: it
// is refused by its size, before any of it is read. A registry that announces no
// length is read up to the limit.
func TestManyManifests(t *testing.T) {
	t.Parallel()
	registry, key := registrytest.NewReferrers(t), trusttest.NewKey(t)
	repo := repository(t, registry.Host, "team/plugin")
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	manifests := slices.Repeat([]ocispec.Descriptor{p.Manifests[artifact.HostPlatform().String()]}, many)
	index := putIndex(t, repo.Name(), "1.2.3", manifests)
	plugintest.Sign(t, repo, key, index)
	for name, c := range map[string]struct {
		fault *registrytest.Fault
		most  int64
	}{
		"as it is": {nil, 64 << 10},
		"not": {&registrytest.Fault{
			Method: http.MethodGet, Path: "/manifests/1.2.3$", Status: http.StatusOK, Header: map[string]string{"Content-Type": index.MediaType}, Body: indexOf(t, manifests),
		}, artifact.ManifestLimit + 64<<10},
	} {
		if c.fault != nil {
			registry.Gate.Break(t, *c.fault)
		}
		meter := &metered{}
		i := newInstaller(t, trusting(t, key), meter.source(t))
		_, err := i.Install(t.Context(), reference(t, registry.Host+"/team/plugin:1"), installer.InstallOptions{As: alias})
		registry.Gate.Mend()
		if !errors.Is(err, installer.Reason("too-large")) || !strings.Contains(err.Error(), fmt.Sprint(artifact.ManifestLimit)) {
			t.Errorf("announced %s: %v; want too-large, and the limit in it", name, err)
		}
		if meter.read.Load() > c.most {
			t.Errorf("announced %s: %d bytes were read; want at most %d", name, meter.read.Load(), c.most)
		}
		mustBeEmpty(t, i.Folder().Dir())
	}
}

// putIndex pushes an index that our own client refuses to push.
func putIndex(tb testing.TB, repository, tag string, manifests []ocispec.Descriptor) ocispec.Descriptor {
	tb.Helper()
	host, name, _ := strings.Cut(repository, "/")
	content := indexOf(tb, manifests)
	desc := artifact.Describe(ocispec.MediaTypeImageIndex, []byte(content))
	put, err := http.NewRequestWithContext(tb.Context(), http.MethodPut, "http://"+host+"/v2/"+name+"/manifests/"+tag, strings.NewReader(content))
	if err != nil {
		tb.Fatal(err)
	}
	put.Header.Set("Content-Type", desc.MediaType)
	resp, err := http.DefaultTransport.RoundTrip(put)
	if err != nil || resp.StatusCode != http.StatusCreated || desc.Size < 10<<20 {
		tb.Fatalf("pushing %d bytes: %v, %v", desc.Size, resp, err)
	}
	if err := resp.Body.Close(); err != nil {
		tb.Fatal(err)
	}
	return desc
}

// page is an index of n manifests that are not there.
func page(tb testing.TB, n int) string {
	tb.Helper()
	return indexOf(tb, slices.Repeat([]ocispec.Descriptor{{
		MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifact.MediaTypeBundle, Digest: someDigest, Size: 1000,
	}}, n))
}

func indexOf(tb testing.TB, manifests []ocispec.Descriptor) string {
	tb.Helper()
	index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: manifests}
	index.SchemaVersion = 2
	content, err := json.Marshal(index)
	if err != nil {
		tb.Fatal(err)
	}
	return string(content)
}

// TestHundredThousandReferrers gives an artifact 100,000 referrers and more, in
// pages of the API and in one index under the fallback tag: that is refused
// after a bounded number of requests and bytes, as too many and not as unsigned;
// and a signature under its tag counts all the same.
func TestHundredThousandReferrers(t *testing.T) {
	t.Parallel()
	all := page(t, many)
	for name, c := range map[string]struct {
		registry *registrytest.Registry
		path     string
		header   map[string]string
		body     string
	}{
		// Every page names the same next one: there is no end.
		"pages": {registrytest.NewReferrers(t), "/referrers/", map[string]string{
			"Link": `</v2/team/plugin/referrers/` + someDigest + `?page=next>; rel="next"`, "Content-Type": ocispec.MediaTypeImageIndex,
		}, page(t, 100)},
		"fallback tag": {registrytest.New(t), "/manifests/sha256-[0-9a-f]{64}$", map[string]string{
			"Content-Type": ocispec.MediaTypeImageIndex, "Content-Length": fmt.Sprint(len(all)),
			"Docker-Content-Digest": artifact.Describe(ocispec.MediaTypeImageIndex, []byte(all)).Digest.String(),
		}, all},
	} {
		for _, signed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, signed %v", name, signed), func(t *testing.T) {
				key := trusttest.NewKey(t)
				version := map[bool]string{false: "1.0.0", true: "2.0.0"}[signed]
				repo := repository(t, c.registry.Host, "team/plugin")
				p := plugintest.Publish(t, repo, plugintest.Plugin{Version: version, Body: version}, version)
				if signed {
					plugintest.Sign(t, repo, key, p.Index)
				}
				c.registry.Gate.Break(t, registrytest.Fault{Path: c.path, Status: http.StatusOK, Header: c.header, Body: c.body})
				defer c.registry.Gate.Mend()
				meter := &metered{}
				_, err := newInstaller(t, trusting(t, key), meter.source(t)).Verify(t.Context(), reference(t, c.registry.Host+"/team/plugin:"+version))
				if signed != (err == nil) {
					t.Errorf("%v; want accepted = %v", err, signed)
				}
				endless := errors.Is(err, installer.Reason("too-large")) || errors.Is(err, installer.ErrAnswer)
				if err != nil && (!errors.Is(err, installer.ErrEvidence) || !endless || errors.Is(err, installer.Reason("unsigned"))) {
					t.Errorf("%v; want ErrEvidence for errTooLarge or ErrAnswer", err)
				}
				if meter.requests.Load() > 60 || meter.read.Load() > 20<<20 {
					t.Errorf("%d requests, %d bytes", meter.requests.Load(), meter.read.Load())
				}
			})
		}
	}
}
