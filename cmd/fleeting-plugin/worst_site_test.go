package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// anything is a registry that takes anything, as its owner would: no size is too large
// for it and no document too strange. It counts what it sends.
type anything struct {
	host      string
	policy    string // the file
	key       *trusttest.Key
	stranger  *trusttest.Key
	authority *trusttest.Authority
	// instead answers a request in place of the registry, if it returns true.
	instead func(http.ResponseWriter, *http.Request) bool

	mu        sync.Mutex
	content   map[string]stored // by digest and by tag
	referrers map[string][]ocispec.Descriptor
	requests  int
	sent      int64
}

type stored struct {
	desc    ocispec.Descriptor
	content []byte
}

func newAnything(tb testing.TB) *anything {
	tb.Helper()
	s := &anything{
		key: trusttest.NewKey(tb), stranger: trusttest.NewKey(tb), authority: trusttest.NewAuthority(tb),
		content: map[string]stored{}, referrers: map[string][]ocispec.Descriptor{},
	}
	server := httptest.NewServer(s)
	tb.Cleanup(server.Close)
	s.host = strings.TrimPrefix(server.URL, "http://")
	dir := tb.TempDir()
	s.policy = filepath.Join(dir, "policy.toml")
	for name, content := range map[string][]byte{
		"cosign.pub": s.key.PublicPEM(tb), "root.json": s.authority.Root,
		"policy.toml": []byte("version = 1\n[[rule]]\nscope = \"**\"\n[[rule.key]]\nfile = \"cosign.pub\"\ntrusted-root = \"root.json\"\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// PushBlob implements plugintest.Target.
func (s *anything) PushBlob(_ context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) (bool, error) {
	r, err := open()
	if err != nil {
		return false, err
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return false, err
	}
	s.content[desc.Digest.String()] = stored{desc, content}
	return true, r.Close()
}

// PushManifest implements plugintest.Target.
func (s *anything) PushManifest(_ context.Context, desc ocispec.Descriptor, content []byte, tags ...string) error {
	for _, name := range append(tags, desc.Digest.String()) {
		s.content[name] = stored{desc, content}
	}
	var m ocispec.Manifest
	if json.Unmarshal(content, &m) == nil && m.Subject != nil {
		desc.ArtifactType, desc.Annotations = m.ArtifactType, m.Annotations
		s.referrers[m.Subject.Digest.String()] = append(s.referrers[m.Subject.Digest.String()], desc)
	}
	return nil
}

// put stores a manifest that no client makes.
func (s *anything) put(tb testing.TB, mediaType, content string, tags ...string) ocispec.Descriptor {
	tb.Helper()
	desc := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromString(content), Size: int64(len(content))}
	if err := s.PushManifest(tb.Context(), desc, []byte(content), tags...); err != nil {
		tb.Fatal(err)
	}
	return desc
}

// ServeHTTP implements http.Handler.
func (s *anything) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests++
	s.mu.Unlock()
	counted := &countedWriter{ResponseWriter: w}
	defer func() {
		s.mu.Lock()
		s.sent += counted.n
		s.mu.Unlock()
	}()
	if s.instead != nil && s.instead(counted, r) {
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/v2/team/plugin/")
	kind, name, _ := strings.Cut(path, "/")
	switch kind {
	case "manifests", "blobs":
		found, ok := s.content[name]
		if !ok {
			http.Error(counted, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`, http.StatusNotFound)
			return
		}
		counted.Header().Set("Content-Type", found.desc.MediaType)
		counted.Header().Set("Docker-Content-Digest", found.desc.Digest.String())
		http.ServeContent(counted, r, "", time.Time{}, bytes.NewReader(found.content))
	case "referrers":
		counted.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		_ = json.NewEncoder(counted).Encode(map[string]any{"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageIndex, "manifests": append([]ocispec.Descriptor{}, s.referrers[name]...)})
	case "tags":
		tags := []string{}
		for tag := range s.content {
			if !strings.Contains(tag, ":") {
				tags = append(tags, tag)
			}
		}
		_ = json.NewEncoder(counted).Encode(map[string]any{"name": "team/plugin", "tags": tags})
	default:
		counted.WriteHeader(http.StatusOK)
	}
}

type countedWriter struct {
	http.ResponseWriter
	n int64
}

// Write implements io.Writer.
func (c *countedWriter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n += int64(n)
	return n, err
}

// publish makes an ordinary plugin, which is signed, or is not.
func (s *anything) publish(tb testing.TB, signed bool, p plugintest.Plugin) plugintest.Published {
	tb.Helper()
	p.Version, p.Body = "1.2.3", "ELF"
	done := plugintest.Publish(tb, s, p, "1.2.3")
	if signed {
		plugintest.Sign(tb, s, s.key, done.Index)
	}
	return done
}

// reference is that of the plugin.
func (s *anything) reference() string { return s.host + "/team/plugin:1.2.3" }

// attach makes a referrer with layers that may all name the same content.
func (s *anything) attach(tb testing.TB, subject ocispec.Descriptor, layers ...ocispec.Descriptor) {
	tb.Helper()
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: trusttest.MediaTypeBundle, Layers: layers}
	m.SchemaVersion = 2
	m.Config = plugintest.PushBlob(tb, s, ocispec.MediaTypeEmptyJSON, []byte("{}"))
	m.Subject = &ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size}
	m.Annotations = map[string]string{"n": fmt.Sprint(len(s.referrers[subject.Digest.String()]))}
	plugintest.PushJSON(tb, s, ocispec.MediaTypeImageManifest, m)
}
