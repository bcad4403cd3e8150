package main

import (
	"bytes"
	"compress/gzip"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// What one command may read of the worst artifact that is not large by itself.
const (
	worstRequests = 2100
	worstBytes    = 70 << 20
)

// worst is an artifact that anyone with push access can make, at its most
// expensive. It is made once without the required signature and once with it.
type worst struct {
	name string
	make func(tb testing.TB, s *anything, signed bool)
	// says is a part of the message of each command that meets the limit.
	says map[string]string
}

func worstArtifacts() []worst {
	return []worst{
		{"thousands of referrers", manyReferrers, map[string]string{"verify": "referrers", "inspect": "referrers"}},
		{"one blob in thousands of layers", sameBlob, map[string]string{"verify": "bytes of evidence", "inspect": "bytes about one artifact"}},
		{"large bundles full of values", denseBundles, map[string]string{"verify": "too large a JSON document"}},
		{"indexes in indexes", nestedIndexes, nil},
		{"a manifest of annotations", annotations, nil},
		{"an index of thousands", tooManyManifests, map[string]string{"verify": "too large", "inspect": "too large", "mirror": "too large", "resolve": "too large"}},
		{"a thousand large manifests", thousandPlatforms, map[string]string{"inspect": "bytes about one artifact"}},
		{"a compressed void", void, nil},
		{"a million files", millionFiles, map[string]string{"inspect": "files"}},
		{"timestamps that double", doublingStamps, nil},
		{"signatures in thousands of layers", thousandSignatures, map[string]string{"verify": "more than the 128"}},
		{"attestations as large as they may be", largeAttestations, map[string]string{"verify": "bytes of evidence", "inspect": "bytes about one artifact"}},
		{"tags without end", endlessTags, nil},
		{"referrers without end", endlessReferrers, map[string]string{"verify": "referrers", "inspect": "referrers"}},
	}
}

func manyReferrers(tb testing.TB, s *anything, signed bool) {
	tb.Helper()
	p := s.publish(tb, signed, plugintest.Plugin{})
	bundle := s.stranger.SignBundle(tb, p.Index.Digest)
	layer := plugintest.PushBlob(tb, s, bundle.MediaType, bundle.Payload)
	for range 3000 {
		s.attach(tb, p.Index, layer)
	}
}

func sameBlob(tb testing.TB, s *anything, signed bool) {
	tb.Helper()
	p := s.publish(tb, signed, plugintest.Plugin{})
	for n := range 8 {
		layer := plugintest.PushBlob(tb, s, trusttest.MediaTypeDSSE, append(bytes.Repeat([]byte{'x'}, 8<<20-10), byte(n)))
		s.attach(tb, p.Index, slices.Repeat([]ocispec.Descriptor{layer}, 999)...)
	}
}

func denseBundles(tb testing.TB, s *anything, signed bool) {
	tb.Helper()
	p := s.publish(tb, signed, plugintest.Plugin{})
	for n := range 5 {
		text := fmt.Sprintf(`{"n":%d,"mediaType":%q,"verificationMaterial":[%s0]}`, n, trusttest.MediaTypeBundle, strings.Repeat("{},", 2<<20))
		s.attach(tb, p.Index, plugintest.PushBlob(tb, s, trusttest.MediaTypeBundle, []byte(text)))
	}
}

func nestedIndexes(tb testing.TB, s *anything, signed bool) {
	tb.Helper()
	p := s.publish(tb, false, plugintest.Plugin{})
	inner, versioned := p.Index, specs.Versioned{SchemaVersion: 2}
	for n := range 1000 {
		entries := []ocispec.Descriptor{inner, inner}
		for i, platform := range []ocispec.Platform{artifact.HostPlatform().OCI(), {OS: "linux", Architecture: "riscv64"}} {
			entries[i].Platform = &platform
		}
		inner = plugintest.PushJSON(tb, s, ocispec.MediaTypeImageIndex, ocispec.Index{Versioned: versioned, MediaType: ocispec.MediaTypeImageIndex, Annotations: map[string]string{"n": fmt.Sprint(n)}, Manifests: entries}, "1.2.3")
	}
	if signed {
		plugintest.Sign(tb, s, s.key, inner)
	}
}

// annotations fill a manifest with as many as are read, and its text.
func annotations(tb testing.TB, s *anything, signed bool) {
	tb.Helper()
	var text strings.Builder
	for n := range 48_000 {
		fmt.Fprintf(&text, `"%x":"%070d",`, n, n)
	}
	s.publish(tb, false, plugintest.Plugin{})
	index := s.put(tb, ocispec.MediaTypeImageIndex, strings.Replace(string(s.content["1.2.3"].content), "{", `{"annotations":{`+text.String()+`"x":"y"},`, 1), "1.2.3")
	if signed {
		plugintest.Sign(tb, s, s.key, index)
	}
}

func tooManyManifests(tb testing.TB, s *anything, signed bool) {
	tb.Helper()
	s.publish(tb, signed, plugintest.Plugin{Index: func(index *ocispec.Index) {
		index.Manifests = slices.Repeat(index.Manifests, 10_000)
	}})
}

// thousandPlatforms is an index of as many manifests as are read, each as large as
// it may be.
func thousandPlatforms(tb testing.TB, s *anything, signed bool) {
	tb.Helper()
	s.publish(tb, signed, plugintest.Plugin{Index: func(index *ocispec.Index) {
		first := index.Manifests[0]
		for n := range 990 {
			entry := s.put(tb, ocispec.MediaTypeImageManifest, strings.Replace(string(s.content[first.Digest.String()].content), "{", fmt.Sprintf(`{"annotations":{"x":"%d%s"},`, n, strings.Repeat("x", 70<<10)), 1))
			entry.Platform = &ocispec.Platform{OS: "linux", Architecture: "amd64", Variant: fmt.Sprint("v", n)}
			index.Manifests = append(index.Manifests, entry)
		}
	}})
}

// members is gzip that unpacks to content many times over.
func members(tb testing.TB, content []byte, times int) []byte {
	tb.Helper()
	var one bytes.Buffer
	w, err := gzip.NewWriterLevel(&one, gzip.BestCompression)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return bytes.Repeat(one.Bytes(), times)
}

// withLayer replaces the layer of a plugin.
func withLayer(tb testing.TB, s *anything, signed bool, layer []byte) {
	tb.Helper()
	s.publish(tb, signed, plugintest.Plugin{Manifest: func(m *ocispec.Manifest) {
		desc := plugintest.PushBlob(tb, s, ocispec.MediaTypeImageLayerGzip, layer)
		desc.Annotations = m.Layers[0].Annotations
		m.Layers = []ocispec.Descriptor{desc}
	}})
}

func void(tb testing.TB, s *anything, signed bool) {
	tb.Helper()
	withLayer(tb, s, signed, members(tb, make([]byte, 16<<20), 1000)) // 16 GiB
}

func millionFiles(tb testing.TB, s *anything, signed bool) {
	tb.Helper()
	var entries []plugintest.Entry
	for n := range 1000 {
		entries = append(entries, plugintest.Entry{Name: fmt.Sprintf("plugin/%d%s", n, strings.Repeat("x", 80))})
	}
	archive := plugintest.Tar(tb, entries)
	withLayer(tb, s, signed, members(tb, archive[:len(archive)-1024], 1000))
}

// doublingStamps adds timestamps that nobody made to copies of a real signature.
func doublingStamps(tb testing.TB, s *anything, _ bool) {
	tb.Helper()
	p := s.publish(tb, false, plugintest.Plugin{})
	token := []byte{5, 0}
	for range 40 {
		header := []byte{0x30, byte(len(token))}
		if len(token) > 127 {
			header = []byte{0x30, 0x81, byte(len(token))}
		}
		token = append(append([]byte{0x30, byte(len(header))}, header...), token...)
	}
	stamp, err := asn1.Marshal(struct {
		Status struct{ Code int }
		Token  asn1.RawValue
	}{Token: asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: token}})
	if err != nil {
		tb.Fatal(err)
	}
	stamps := slices.Repeat([]any{map[string]any{"signedTimestamp": base64.StdEncoding.EncodeToString(stamp)}}, 32)
	var bundle map[string]any
	if err := json.Unmarshal(s.key.SignBundle(tb, p.Index.Digest).Payload, &bundle); err != nil {
		tb.Fatal(err)
	}
	material, ok := bundle["verificationMaterial"].(map[string]any)
	if !ok {
		tb.Fatal("a bundle without material")
	}
	material["timestampVerificationData"] = map[string]any{"rfc3161Timestamps": stamps}
	for n := range 250 {
		bundle["dsseEnvelope"].(map[string]any)["signatures"].([]any)[0].(map[string]any)["keyid"] = fmt.Sprint(n) //nolint:errcheck // made above
		text, err := json.Marshal(bundle)
		if err != nil {
			tb.Fatal(err)
		}
		s.attach(tb, p.Index, plugintest.PushBlob(tb, s, trusttest.MediaTypeBundle, text))
	}
}

func thousandSignatures(tb testing.TB, s *anything, signed bool) {
	tb.Helper()
	p := s.publish(tb, signed, plugintest.Plugin{})
	layer := s.stranger.Sign(tb, p.Index.Digest)
	layer.Annotations["dev.sigstore.cosign/certificate"] = strings.Repeat("-----BEGIN CERTIFICATE-----\n", 10)
	plugintest.PutLegacy(tb, s, plugintest.AttestationTag(p.Index.Digest), slices.Repeat([]trusttest.Layer{layer}, 999)...)
	if !signed {
		plugintest.PutLegacy(tb, s, plugintest.SignatureTag(p.Index.Digest), slices.Repeat([]trusttest.Layer{layer}, 999)...)
	}
}

func largeAttestations(tb testing.TB, s *anything, signed bool) {
	tb.Helper()
	p := s.publish(tb, signed, plugintest.Plugin{})
	for n := range 20 {
		predicate := fmt.Sprintf(`{"n":%d,"packages":[%s{}]}`, n, strings.Repeat(`{"name":"x"},`, 5<<20/13))
		layer := s.stranger.AttestBundle(tb, p.Index.Digest, trusttest.PredicateSPDX, predicate)
		s.attach(tb, p.Index, plugintest.PushBlob(tb, s, layer.MediaType, layer.Payload))
	}
}

func endlessTags(tb testing.TB, s *anything, signed bool) {
	tb.Helper()
	s.publish(tb, signed, plugintest.Plugin{})
	var list []string
	for n := range 20_000 {
		list = append(list, fmt.Sprintf("%0100d", n))
	}
	page, err := json.Marshal(map[string]any{"name": "team/plugin", "tags": list})
	if err != nil {
		tb.Fatal(err)
	}
	pages := 0
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/tags/list") {
			return false
		}
		pages++
		w.Header().Set("Link", fmt.Sprintf(`</v2/team/plugin/tags/list?last=%d>; rel="next"`, pages))
		_, _ = w.Write(page)
		return true
	}
}

func endlessReferrers(tb testing.TB, s *anything, signed bool) {
	tb.Helper()
	p := s.publish(tb, signed, plugintest.Plugin{})
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: trusttest.MediaTypeBundle, Digest: p.Index.Digest, Size: p.Index.Size, Annotations: map[string]string{"x": strings.Repeat("x", 8000)}}
	page, err := json.Marshal(ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: slices.Repeat([]ocispec.Descriptor{desc}, 100)})
	if err != nil {
		tb.Fatal(err)
	}
	pages := 0
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/referrers/") {
			return false
		}
		pages++
		w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		w.Header().Set("Link", fmt.Sprintf(`<%s?page=%d>; rel="next"`, r.URL.Path, pages))
		_, _ = w.Write(page)
		return true
	}
}

// TestWorstArtifacts runs commands on the worst artifacts that anyone with push
// access can make: each ends after a bounded number of requests and bytes, and says
// what was too much.
func TestWorstArtifacts(t *testing.T) {
	t.Parallel()
	var rows []worstRow
	for _, w := range worstArtifacts() {
		row := worstRow{w.name, map[string]string{}}
		rows = append(rows, row)
		for _, signed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, signed %v", w.name, signed), func(t *testing.T) {
				s := newAnything(t)
				w.make(t, s, signed)
				// Without a signature, verify looks at all that there is; with one,
				// mirror does.
				for _, command := range map[bool][]string{false: {"verify", "inspect"}, true: {"mirror", "resolve"}}[signed] {
					row.figures[command] = s.run(t, command, w.says[command])
				}
			})
		}
	}
	if *update {
		writeWorst(t, rows)
	}
}

// run runs one command, judges what it read, and returns its figures.
func (s *anything) run(t *testing.T, command, says string) string {
	t.Helper()
	s.requests, s.sent = 0, 0
	args := map[string][]string{
		"verify": {"--policy", s.policy}, "inspect": nil, "resolve": {"--policy", s.policy},
		"mirror": {"oci:" + filepath.Join(t.TempDir(), "mirror"), "--policy", s.policy},
	}[command]
	u := runWorst(t, append([]string{command, s.reference()}, args...)...)
	figures := fmt.Sprintf("%.1f s, %d MiB, %d", u.CPU.Seconds(), u.Peak, s.requests)
	t.Logf("%-8s exit %d, %s requests, %.1f MB read: %.200q", command, u.Code, figures, float64(s.sent)/1e6, u.message[max(0, len(u.message)-200):])
	if s.requests > worstRequests || s.sent > worstBytes {
		t.Errorf("%s: %d requests, %d bytes", command, s.requests, s.sent)
	}
	if u.Code < 0 || u.Code > 9 {
		t.Errorf("%s: exit code %d: %s", command, u.Code, u.message)
	}
	if !strings.Contains(u.message, says) {
		t.Errorf("%s does not say %q: %s", command, says, u.message)
	}
	return figures
}
