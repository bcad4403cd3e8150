package packager_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// TestAttestFiles reads the statement that a bundle makes, and holds that what
// is there is replaced by the same thing only.
func TestAttestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, content := range map[string]string{"tool": "a tool", "tool.spdx.json": "{}", "notes": "not a bundle"} {
		if err := os.WriteFile(path(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	signer, _ := keyPair(t)
	provenance, err := packager.Build{Type: "https://example.com/type", Builder: "https://example.com/builder"}.Provenance()
	if err != nil {
		t.Fatal(err)
	}
	bundle := path("provenance.sigstore.json")
	want := []packager.AttestedFile{
		{Name: "tool", Digest: digest.FromString("a tool"), Size: 6},
		{Name: "tool.spdx.json", Digest: digest.FromString("{}"), Size: 2},
	}
	for range 2 { // the second one replaces the first
		got, err := packager.AttestFiles(t.Context(), []string{path("tool.spdx.json"), path("tool")}, bundle, signer, provenance)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&packager.AttestedFiles{Bundle: bundle, PredicateType: packager.PredicateProvenance, Files: want}, got); diff != "" {
			t.Errorf("attested (-want +got):\n%s", diff)
		}
	}
	before, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, subjectsIn(t, before), cmpopts.IgnoreFields(packager.AttestedFile{}, "Size")); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	bom := packager.Predicate{Type: packager.PredicateSPDX, Content: []byte("{}")}
	for name, c := range map[string]struct {
		files  []string
		bundle string
		p      packager.Predicate
		ctx    context.Context //nolint:containedctx // a case's input
		want   error
	}{
		"no file":           {nil, bundle, provenance, t.Context(), dist.ErrInput},
		"a missing file":    {[]string{path("nowhere")}, bundle, provenance, t.Context(), dist.ErrInput},
		"a folder":          {[]string{dir}, bundle, provenance, t.Context(), dist.ErrInput},
		"twice the same":    {[]string{path("tool"), path("tool")}, bundle, provenance, t.Context(), dist.ErrInput},
		"fewer files":       {[]string{path("tool")}, bundle, provenance, t.Context(), dist.ErrInput},
		"other files":       {[]string{path("tool"), path("notes")}, bundle, provenance, t.Context(), dist.ErrInput},
		"something else":    {[]string{path("tool"), path("tool.spdx.json")}, bundle, bom, t.Context(), dist.ErrInput},
		"over a folder":     {[]string{path("tool")}, dir, provenance, t.Context(), dist.ErrInput},
		"over a file":       {[]string{path("tool")}, path("notes"), provenance, t.Context(), dist.ErrInput},
		"canceled":          {[]string{path("tool"), path("tool.spdx.json")}, bundle, provenance, canceled, context.Canceled},
		"no place for it":   {[]string{path("tool")}, path("no/folder"), provenance, t.Context(), os.ErrNotExist},
		"no predicate type": {[]string{path("tool")}, path("new"), packager.Predicate{}, t.Context(), nil},
	} {
		got, err := packager.AttestFiles(c.ctx, c.files, c.bundle, signer, c.p)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v; want %v", name, got, err, c.want)
		}
	}
	after, err := os.ReadFile(bundle)
	if err != nil || string(after) != string(before) {
		t.Errorf("the bundle has changed: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Errorf("files left: %v, %v", entries, err)
	}
}

// subjectsIn reads the subjects of a bundle's statement.
func subjectsIn(t *testing.T, bundle []byte) []packager.AttestedFile {
	t.Helper()
	var b struct {
		Envelope struct {
			Payload string `json:"payload"`
		} `json:"dsseEnvelope"`
	}
	var st struct {
		Type    string `json:"_type"`
		Subject []struct {
			Name   string            `json:"name"`
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if err := json.Unmarshal(bundle, &b); err != nil {
		t.Fatal(err)
	}
	payload, err := base64.StdEncoding.DecodeString(b.Envelope.Payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(payload, &st); err != nil || st.Type != "https://in-toto.io/Statement/v1" {
		t.Fatalf("%v: %s", err, payload)
	}
	var files []packager.AttestedFile
	for _, s := range st.Subject {
		files = append(files, packager.AttestedFile{Name: s.Name, Digest: digest.NewDigestFromEncoded(digest.SHA256, s.Digest["sha256"])})
	}
	return files
}

// provenDigests are the subjects of a release's only provenance.
func provenDigests(t *testing.T, released *packager.Released) []digest.Digest {
	t.Helper()
	var digests []digest.Digest
	for _, b := range released.Bundles {
		if b.PredicateType == packager.PredicateProvenance {
			for _, s := range subjectsIn(t, b.Content) {
				digests = append(digests, s.Digest)
			}
		}
	}
	return digests
}
