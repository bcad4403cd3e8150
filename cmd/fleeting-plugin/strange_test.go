package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// strange is something that a stranger with push access attaches to a signed
// plugin, and that cannot be read.
type strange struct {
	name   string
	attach func(tb testing.TB, s *anything, index ocispec.Descriptor)
}

func strangers() []strange {
	layer := func(change func(tb testing.TB, s *anything) ocispec.Descriptor) func(testing.TB, *anything, ocispec.Descriptor) {
		return func(tb testing.TB, s *anything, index ocispec.Descriptor) {
			tb.Helper()
			s.attach(tb, index, change(tb, s))
		}
	}
	blob := func(mediaType, content string) func(testing.TB, *anything, ocispec.Descriptor) {
		return layer(func(tb testing.TB, s *anything) ocispec.Descriptor {
			tb.Helper()
			return plugintest.PushBlob(tb, s, mediaType, []byte(content))
		})
	}
	sized := func(by int64) func(testing.TB, *anything, ocispec.Descriptor) {
		return layer(func(tb testing.TB, s *anything) ocispec.Descriptor {
			tb.Helper()
			desc := plugintest.PushBlob(tb, s, trusttest.MediaTypeBundle, []byte(`{"mediaType":"x"}`))
			desc.Size += by
			return desc
		})
	}
	referrer := func(desc ocispec.Descriptor) func(testing.TB, *anything, ocispec.Descriptor) {
		return func(tb testing.TB, s *anything, index ocispec.Descriptor) {
			tb.Helper()
			desc.ArtifactType = trusttest.MediaTypeBundle
			s.referrers[index.Digest.String()] = append(s.referrers[index.Digest.String()], desc)
		}
	}
	manifest := func(content string) func(testing.TB, *anything, ocispec.Descriptor) {
		return func(tb testing.TB, s *anything, index ocispec.Descriptor) {
			tb.Helper()
			referrer(s.put(tb, ocispec.MediaTypeImageManifest, content))(tb, s, index)
		}
	}
	tagged := func(tag func(digest.Digest) string, mediaType, content string) func(testing.TB, *anything, ocispec.Descriptor) {
		return func(tb testing.TB, s *anything, index ocispec.Descriptor) {
			tb.Helper()
			s.put(tb, mediaType, content, tag(index.Digest))
		}
	}
	absent := digest.FromString("nothing")
	return []strange{
		{"a manifest that is missing", referrer(ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: absent, Size: 500})},
		{"a manifest of 1 GiB", referrer(ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: absent, Size: 1 << 30})},
		{"an index among the referrers", referrer(ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: absent, Size: 500})},
		{"a manifest of another type", referrer(ocispec.Descriptor{MediaType: "text/html", Digest: absent, Size: 500})},
		{"a manifest that is no JSON", manifest(`{"schemaVersion": 2,`)},
		{"a manifest with more after it", manifest(`{"schemaVersion": 2} {}`)},
		{"a manifest that is a list", manifest(`[]`)},
		{"a manifest that is a page", manifest(`<html><title>login</title></html>`)},
		{"a manifest that is an error", manifest(`{"errors":[{"code":"UNAUTHORIZED"}]}`)},
		{"a manifest that is empty", manifest("")},
		{"a manifest that says nothing of itself", func(tb testing.TB, s *anything, index ocispec.Descriptor) {
			tb.Helper()
			referrer(s.put(tb, "", `{"schemaVersion":2}`))(tb, s, index)
		}},
		{"a manifest without a config", manifest(`{"schemaVersion":2,"layers":[]}`)},
		{"a deep manifest", manifest(`{"schemaVersion":2,"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`)},
		{"a layer that is missing", layer(func(testing.TB, *anything) ocispec.Descriptor {
			return ocispec.Descriptor{MediaType: trusttest.MediaTypeBundle, Digest: absent, Size: 500}
		})},
		{"a layer of 1 TiB", sized(1 << 40)},
		{"a layer that is longer than it says", sized(-1)},
		{"a layer that is shorter than it says", sized(1)},
		{"a layer with another kind of digest", layer(func(testing.TB, *anything) ocispec.Descriptor {
			return ocispec.Descriptor{MediaType: trusttest.MediaTypeBundle, Digest: "md5:d41d8cd98f00b204e9800998ecf8427e", Size: 500}
		})},
		{"a bundle that is no JSON", blob(trusttest.MediaTypeBundle, "\x00\xff")},
		{"an empty bundle", blob(trusttest.MediaTypeBundle, "")},
		{"a bundle of nothing", blob(trusttest.MediaTypeBundle, "null")},
		{"a deep bundle", blob(trusttest.MediaTypeBundle, strings.Repeat(`{"a":`, 100_000))},
		{"a bundle of values", blob(trusttest.MediaTypeBundle, "["+strings.Repeat("{},", 20_000)+"0]")},
		{"an envelope of numbers", blob(trusttest.MediaTypeDSSE, `{"payload":1}`)},
		{"a bill of materials that is no JSON", blob(artifact.MediaTypeSPDX, "SPDXVersion: SPDX-2.3")},
		{"a deep bill of materials", blob(artifact.MediaTypeCycloneDX, `{"components":`+strings.Repeat("[", 200_000))},
		{"an index under the tag of attestations", tagged(plugintest.AttestationTag, ocispec.MediaTypeImageIndex, `{"schemaVersion":2,"manifests":[]}`)},
		{"garbage under the tag of attestations", tagged(plugintest.AttestationTag, ocispec.MediaTypeImageManifest, `{}`)},
	}
}

// try runs the program on the plugin.
func (s *anything) try(t *testing.T, args ...string) (cli.Code, string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	home := t.TempDir()
	app := cli.New(nil, &out, &errs, func(name string) (string, bool) {
		if name == "HOME" || name == "USERPROFILE" {
			return home, true
		}
		return "", false
	})
	code := app.Run(t.Context(), NewRootCmd(app), args)
	return code, out.String(), errs.String()
}

// TestStrangeEvidence: whatever a stranger attaches to a plugin keeps nobody from
// using it. inspect shows the rest, and says what it could not read.
func TestStrangeEvidence(t *testing.T) {
	t.Parallel()
	for _, one := range strangers() {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			s := newAnything(t)
			p := s.publish(t, true, plugintest.Plugin{})
			one.attach(t, s, p.Index)
			layout := "oci:" + filepath.Join(t.TempDir(), "mirror")
			lock := filepath.Join(t.TempDir(), "lock")
			for _, args := range [][]string{
				{"verify", s.reference(), "--policy", s.policy},
				{"resolve", s.reference(), "--policy", s.policy},
				{"lock", s.reference(), "--policy", s.policy, "--lock", lock, "--as", "registry.test/plugin"},
				{"mirror", s.reference(), layout, "--policy", s.policy},
			} {
				if code, out, errs := s.try(t, args...); code != cli.OK {
					t.Errorf("%s: exit code %d: %s%s", args[0], code, out, errs)
				}
			}
			code, out, errs := s.try(t, "inspect", s.reference(), "--output", "json")
			var report packager.Report
			if err := json.Unmarshal([]byte(out), &report); err != nil || code != cli.OK {
				t.Fatalf("inspect: exit code %d, %v: %s%s", code, err, out, errs)
			}
			if len(report.Signatures) == 0 || len(report.Platforms) != 3 || report.Platforms[0].Files == nil {
				t.Errorf("inspect lost the rest: %+v", report)
			}
			if len(report.Unread) != 1 || report.Unread[0].Reason == "" || report.Unread[0].Subject != "index" || !strings.Contains(errs, "could not be read") {
				t.Errorf("inspect does not name what it could not read: %+v, %s", report.Unread, errs)
			}
			if code, out, _ := s.try(t, "inspect", s.reference()); code != cli.OK || !strings.Contains(out, "\ncould not be read\n") {
				t.Errorf("inspect: exit code %d: %s", code, out)
			}
		})
	}
}

// TestManyStrangers: what cannot be read is bounded, and so is how much is said of it.
func TestManyStrangers(t *testing.T) {
	t.Parallel()
	s := newAnything(t)
	p := s.publish(t, true, plugintest.Plugin{})
	for n := range 200 {
		s.attach(t, p.Index, plugintest.PushBlob(t, s, trusttest.MediaTypeBundle, fmt.Appendf(nil, "[%d", n)))
	}
	code, out, errs := s.try(t, "inspect", s.reference(), "--no-files")
	if code != cli.OK || strings.Count(out, "malformed") != unreadShown || !strings.Contains(out, "and 190 more") || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
