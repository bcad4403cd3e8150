package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// hostileText would clear a terminal, name it, forge a line, overwrite one and reverse
// what follows, in each of the ways that terminals know.
const hostileText = "xFORGED\x1b[2J\x1b]0;owned\x07\nFORGED line\r\n\rFORGED \u202eback\u2066\u009b31m\u2028FORGED\u2029FORGED\x00\v\fFORGED\x7f\u200b\U000e0041"

// checkShown returns what of a text a terminal obeys, and whether a line was forged.
func checkShown(text string) error {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "FORGED") {
			return fmt.Errorf("a forged line: %q", line)
		}
		for _, r := range line {
			if r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
				return fmt.Errorf("%U in %q", r, line)
			}
		}
	}
	return nil
}

// hostilePlugin has hostile text wherever a publisher can put text.
func hostilePlugin(tb testing.TB, s *anything) {
	tb.Helper()
	annotations := map[string]string{}
	for _, name := range []string{"title", "description", "url", "source", "revision", "licenses", "vendor", "documentation", "created", "authors"} {
		annotations["org.opencontainers.image."+name] = hostileText
	}
	annotations["org.opencontainers.image."+hostileText] = hostileText
	p := plugintest.Publish(tb, s, plugintest.Plugin{
		Version: "1.2.3", Body: "ELF", Index: func(index *ocispec.Index) {
			index.Annotations = annotations
			strange := index.Manifests[0]
			strange.Platform = &ocispec.Platform{OS: hostileText, Architecture: hostileText, Variant: hostileText}
			index.Manifests = append(index.Manifests, strange)
		},
		Manifest: func(m *ocispec.Manifest) {
			m.Annotations = annotations
			layer := plugintest.PushBlob(tb, s, ocispec.MediaTypeImageLayerGzip, plugintest.Gzip(tb, plugintest.Tar(tb, []plugintest.Entry{
				{Name: "plugin/" + strings.ReplaceAll(hostileText, "\x00", ""), Body: "x"}, {Name: "plugin/plugin", Body: "ELF"},
			})))
			layer.Annotations = m.Layers[0].Annotations
			m.Layers = []ocispec.Descriptor{layer}
		},
	}, "1.2.3", hostileText)
	plugintest.Sign(tb, s, s.key, p.Index)
	claims := fmt.Sprintf(`{"buildDefinition":{"resolvedDependencies":[{"uri":%q,"digest":{"gitCommit":%q}}],"internalParameters":{"go":{"ldflags":%q},"environment":{"system":%q}}},"runDetails":{"builder":{"id":%q}}}`,
		"git+https://x.test/\u202eFORGED", "\u202eFORGED", "\u202eFORGED", "\u202eFORGED\nFORGED", "x\nFORGED \u202e")
	for _, predicate := range []string{"https://slsa.dev/provenance/v1", "https://x.test/\n\u202eFORGED"} {
		layer := s.stranger.AttestBundle(tb, p.Index.Digest, predicate, claims)
		s.attach(tb, p.Index, plugintest.PushBlob(tb, s, layer.MediaType, layer.Payload))
	}
	s.attach(tb, p.Index, ocispec.Descriptor{MediaType: trusttest.MediaTypeBundle, Digest: digest.FromString("x"), Size: 3, Annotations: annotations})
	plugintest.PushJSON(tb, s, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: hostileText, ArtifactType: hostileText, Subject: &p.Index, Annotations: annotations,
	})
}

// hostileAnswers are ways in which a registry or a proxy puts text into answers.
func hostileAnswers() map[string]func(http.ResponseWriter) {
	quoted := fmt.Sprintf("%q", "x\u001b[2J\nFORGED\r\nFORGED\u202e\u009b31m")
	quoted = strings.NewReplacer(`\x1b`, `\u001b`, `\u009b`, "\\u009b").Replace(quoted)
	answer := func(status int, header map[string]string, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			for name, value := range header {
				w.Header()[name] = []string{value}
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	return map[string]func(http.ResponseWriter){
		"an error":            answer(http.StatusBadRequest, nil, `{"errors":[{"code":`+quoted+`,"message":`+quoted+`,"detail":{`+quoted+`:`+quoted+`}}]}`),
		"an error as text":    answer(http.StatusBadRequest, nil, hostileText),
		"an error of a proxy": answer(http.StatusBadRequest, nil, "<html><title>"+hostileText+"&#27;[2J&#10;FORGED&#x202e;</title>"),
		"a message":           answer(http.StatusTeapot, nil, `{"message":`+quoted+`}`),
		"a challenge":         answer(http.StatusUnauthorized, map[string]string{"Www-Authenticate": "Bearer realm=\"https://x.test/\u202eFORGED\",service=\"\u009b31m\u202e\",scope=\"\u202e\""}, quoted),
		"another challenge":   answer(http.StatusUnauthorized, map[string]string{"Www-Authenticate": "\u202eFORGED \u009b31m"}, ""),
		"a redirect":          answer(http.StatusTemporaryRedirect, map[string]string{"Location": "https://x.test:1/\u202eFORGED\u009b31m?secret"}, ""),
		"a type":              answer(http.StatusOK, map[string]string{"Content-Type": "\u202eFORGED\u009b31m"}, "["),
		"a warning":           answer(http.StatusNotFound, map[string]string{"Warning": "299 - \"x\u202eFORGED\u009b31m\""}, `{}`),
		"a digest":            answer(http.StatusOK, map[string]string{"Docker-Content-Digest": "\u202eFORGED"}, `{"mediaType":`+quoted+`}`),
		"a document":          answer(http.StatusOK, map[string]string{"Content-Type": ocispec.MediaTypeImageIndex}, `{"schemaVersion":2,"mediaType":`+quoted+`,"manifests":[{"mediaType":`+quoted+`,"digest":`+quoted+`,"size":1}],"tags":[`+quoted+`]}`),
	}
}

// readers are commands that read a plugin.
func (s *anything) readers(dir, home string) [][]string {
	installed := []string{"--dir", filepath.Join(home, "plugins")}
	with := func(args ...string) []string { return append(args, "--policy", s.policy) }
	return [][]string{
		{"inspect", s.reference()},
		with("verify", s.reference()),
		with("resolve", s.reference()),
		with("mirror", s.reference(), "oci:"+filepath.Join(dir, "mirror")),
		with("lock", s.reference(), "--lock", filepath.Join(dir, "lock"), "--as", "registry.test/plugin"),
		append(with("install", s.reference(), "--as", "registry.test/plugin"), installed...),
		append([]string{"list"}, installed...),
		append(with("verify", "--installed"), installed...),
		append(with("outdated"), installed...),
		append(with("doctor"), installed...),
	}
}

// TestHostileText: no text of a publisher, a registry or a file is obeyed by a
// terminal or forges a line, in no command, neither as text nor as JSON.
func TestHostileText(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, s *anything, home string) {
		t.Helper()
		dir, shown := t.TempDir(), false
		for _, args := range s.readers(dir, home) {
			for _, more := range [][]string{nil, {"--output", "json"}} {
				_, out, errs := s.try(t, append(args, more...)...)
				shown = shown || strings.Contains(out+errs, "FORGED")
				if err := checkShown(out); err != nil {
					t.Errorf("%s %v: %v", args[0], more, err)
				}
				if err := checkShown(errs); err != nil {
					t.Errorf("%s %v, errors: %v", args[0], more, err)
				}
			}
		}
		if !shown {
			t.Error("no command shows any of it, so nothing was tried")
		}
	}
	if checkShown(hostileText) == nil {
		t.Error("the text is harmless")
	}
	t.Run("a plugin", func(t *testing.T) {
		t.Parallel()
		s := newAnything(t)
		hostilePlugin(t, s)
		check(t, s, t.TempDir())
	})
	for name, answer := range hostileAnswers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAnything(t)
			s.publish(t, true, plugintest.Plugin{})
			s.instead = func(w http.ResponseWriter, _ *http.Request) bool { answer(w); return true }
			check(t, s, t.TempDir())
		})
	}
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		s := newAnything(t)
		s.publish(t, true, plugintest.Plugin{})
		home := t.TempDir()
		install := s.readers(t.TempDir(), home)[5]
		if code, out, errs := s.try(t, install...); code != cli.OK {
			t.Fatalf("exit code %d: %s%s", code, out, errs)
		}
		receipt := filepath.Join(home, "plugins", "registry.test", "plugin", "1.2.3", "fleeting-plugin.receipt.json")
		content, err := os.ReadFile(receipt)
		if err != nil {
			t.Fatal(err)
		}
		text := `"xFORGED\u001b[2J\nFORGED\u202e\u009b31m`
		for _, value := range []string{s.reference(), "bundle", "key " + s.key.ID(t), "team/plugin"} {
			content = []byte(strings.ReplaceAll(string(content), `"`+value, text))
		}
		if err := os.WriteFile(receipt, content, 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, s, home)
	})
}
