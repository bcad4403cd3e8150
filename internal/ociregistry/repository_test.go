package ociregistry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
)

// store is what Repository and Layout have in common.
type store interface {
	Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error)
	Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error)
	FetchAll(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error)
	Tags(ctx context.Context) ([]string, error)
	Referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error)
	Exists(ctx context.Context, desc ocispec.Descriptor) (bool, error)
	PushBlob(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) (bool, error)
	PushManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, tags ...string) error
	Attach(ctx context.Context, subject ocispec.Descriptor, referrers ...ociregistry.Manifest) error
	Tag(ctx context.Context, desc ocispec.Descriptor, tag string) error
	Name() string
}

var (
	_ store = (*ociregistry.Repository)(nil)
	_ store = (*ociregistry.Layout)(nil)
)

func openRepository(t *testing.T, r *registrytest.Registry) *ociregistry.Repository {
	t.Helper()
	return openWith(t, r, ociregistry.Options{})
}

func openWith(t *testing.T, r *registrytest.Registry, opts ociregistry.Options) *ociregistry.Repository {
	t.Helper()
	opts.Retries, opts.FirstWait = 3, time.Millisecond
	c, err := ociregistry.NewClient(opts)
	if err != nil {
		t.Fatal(err)
	}
	repo, err := c.Repository(r.Host + "/some/plugin")
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

func opener(b []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}

// pushImage pushes a manifest with one blob and returns both descriptors.
func pushImage(t *testing.T, s store, blob []byte, tags ...string) (manifest, layer ocispec.Descriptor) {
	t.Helper()
	ctx := t.Context()
	layer = artifact.Describe(ocispec.MediaTypeImageLayerGzip, blob)
	if _, err := s.PushBlob(ctx, layer, opener(blob)); err != nil {
		t.Fatal(err)
	}
	config, empty := artifact.EmptyConfig()
	if _, err := s.PushBlob(ctx, config, opener(empty)); err != nil {
		t.Fatal(err)
	}
	manifest, b, err := artifact.EncodeManifest(artifact.ManifestInput{Config: config, Layers: []ocispec.Descriptor{layer}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.PushManifest(ctx, manifest, b, tags...); err != nil {
		t.Fatal(err)
	}
	return manifest, layer
}

func TestStores(t *testing.T) {
	t.Parallel()
	stores := map[string]func(*testing.T) store{
		"registry without referrers API": func(t *testing.T) store { return openRepository(t, registrytest.New(t)) },
		"registry with referrers API":    func(t *testing.T) store { return openRepository(t, registrytest.NewReferrers(t)) },
		"layout": func(t *testing.T) store {
			l, err := ociregistry.CreateLayout(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			return l
		},
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testStore(t, open(t))
		})
	}
}

func testStore(t *testing.T, s store) {
	ctx := t.Context()
	blob := bytes.Repeat([]byte("plugin"), 1000)
	manifest, layer := pushImage(t, s, blob, "1.0.0", "latest")

	if again, err := s.PushBlob(ctx, layer, opener(blob)); err != nil || again {
		t.Errorf("second push: uploaded %v, error %v", again, err)
	}
	for _, ref := range []string{"1.0.0", "latest", manifest.Digest.String()} {
		got, err := s.Resolve(ctx, ref)
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest != manifest.Digest || got.Size != manifest.Size || got.MediaType != manifest.MediaType {
			t.Errorf("Resolve(%s) = %+v, want %+v", ref, got, manifest)
		}
	}
	if _, err := s.Resolve(ctx, "9.9.9"); !errors.Is(err, ociregistry.ErrNotFound) {
		t.Errorf("missing tag: %v", err)
	}
	got, err := s.FetchAll(ctx, layer, 1<<20)
	if err != nil || !bytes.Equal(got, blob) {
		t.Errorf("FetchAll: %d bytes, %v", len(got), err)
	}
	if _, err := s.FetchAll(ctx, layer, 10); !errors.Is(err, ociregistry.ErrTooLarge) {
		t.Errorf("FetchAll over the limit: %v", err)
	}
	if err := s.Tag(ctx, manifest, "1.0"); err != nil {
		t.Fatal(err)
	}
	tags, err := s.Tags(ctx)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(tags)
	if diff := cmp.Diff([]string{"1.0", "1.0.0", "latest"}, tags); diff != "" {
		t.Error(diff)
	}
	testReferrers(t, s, manifest)
}

func testReferrers(t *testing.T, s store, subject ocispec.Descriptor) {
	ctx := t.Context()
	if refs, err := s.Referrers(ctx, subject); err != nil || len(refs) != 0 {
		t.Fatalf("Referrers before any: %v, %v", refs, err)
	}
	var want []string
	for _, text := range []string{`{"a":1}`, `{"a":2}`} {
		layer := artifact.Describe(artifact.MediaTypeSPDX, []byte(text))
		if _, err := s.PushBlob(ctx, layer, opener([]byte(text))); err != nil {
			t.Fatal(err)
		}
		desc, b, err := artifact.EncodeReferrer(artifact.ReferrerInput{
			Subject: subject, ArtifactType: artifact.MediaTypeSPDX, Layer: layer,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.PushManifest(ctx, desc, b); err != nil {
			t.Fatal(err)
		}
		want = append(want, desc.Digest.String())
	}
	refs, err := s.Referrers(ctx, subject)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range refs {
		// The artifact type is not compared: registries disagree about it.
		got = append(got, r.Digest.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFetchRefusesOtherBytes(t *testing.T) {
	t.Parallel()
	blob := bytes.Repeat([]byte("plugin"), 1000)
	changes := map[string]func([]byte) []byte{
		"flipped bit": func(b []byte) []byte { b[100] ^= 1; return b },
		"shorter":     func(b []byte) []byte { return b[:len(b)-1] },
		"longer":      func(b []byte) []byte { return append(b, 'x') },
		"empty":       func([]byte) []byte { return nil },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t)
			repo := openRepository(t, reg)
			_, layer := pushImage(t, repo, bytes.Clone(blob))
			reg.RewriteBlob(t, layer.Digest, change)
			_, err := repo.FetchAll(t.Context(), layer, 1<<20)
			if err == nil {
				t.Fatal("altered blob accepted")
			}
		})
	}
}

func TestFetchResumesByRange(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	repo := openRepository(t, reg)
	blob := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	_, layer := pushImage(t, repo, blob)
	reg.Gate.Break(t, registrytest.Fault{Method: http.MethodGet, Path: "/blobs/", Times: 2, CutAfter: 100_000})
	reg.Gate.Forget()
	got, err := repo.FetchAll(t.Context(), layer, 1<<20)
	if err != nil || !bytes.Equal(got, blob) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

func TestStalledDownloadIsCutAndResumed(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	repo := openWith(t, reg, ociregistry.Options{StallTimeout: 200 * time.Millisecond})
	blob := bytes.Repeat([]byte("0123456789abcdef"), 100)
	_, layer := pushImage(t, repo, blob)
	reg.Gate.Break(t, registrytest.Fault{Method: http.MethodHead, Path: "/blobs/", Times: 1, Stall: true})
	if _, err := repo.Exists(t.Context(), layer); err != nil {
		t.Fatal(err)
	}
}

func TestTransientFailuresAreRepeated(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]registrytest.Fault{
		"503":                  {Status: http.StatusServiceUnavailable, Times: 2},
		"429 with Retry-After": {Status: http.StatusTooManyRequests, Times: 1, Header: map[string]string{"Retry-After": "0"}},
		"reset":                {Reset: true, Times: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t)
			repo := openRepository(t, reg)
			reg.Gate.Break(t, fault)
			manifest, _ := pushImage(t, repo, []byte("x"), "1.0.0")
			reg.Gate.Break(t, fault)
			if got, err := repo.Resolve(t.Context(), "1.0.0"); err != nil || got.Digest != manifest.Digest {
				t.Fatalf("%v, %v", got, err)
			}
		})
	}
}

func TestKindsOfErrors(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{
		http.StatusUnauthorized:        ociregistry.ErrUnauthorized,
		http.StatusForbidden:           ociregistry.ErrForbidden,
		http.StatusNotFound:            ociregistry.ErrNotFound,
		http.StatusTooManyRequests:     ociregistry.ErrRateLimited,
		http.StatusInternalServerError: ociregistry.ErrUnavailable,
		http.StatusBadGateway:          ociregistry.ErrUnavailable,
		http.StatusProxyAuthRequired:   ociregistry.ErrUnavailable,
	} {
		reg := registrytest.NewReferrers(t)
		repo := openRepository(t, reg)
		reg.Gate.Break(t, registrytest.Fault{Status: status})
		if _, err := repo.Resolve(t.Context(), "1.0.0"); !errors.Is(err, want) {
			t.Errorf("status %d: %v, want %v", status, err, want)
		}
		subject := artifact.Describe(ocispec.MediaTypeImageIndex, []byte("{}"))
		refs, err := repo.Referrers(t.Context(), subject)
		if status == http.StatusNotFound { // no API, and no fallback tag: no referrers
			want = nil
		}
		if !errors.Is(err, want) || len(refs) != 0 {
			t.Errorf("referrers, status %d: %v, %v", status, refs, err)
		}
	}
}

func TestUnreachableRegistryFailsAtOnce(t *testing.T) {
	t.Parallel()
	c, err := ociregistry.NewClient(ociregistry.Options{FirstWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := c.Repository("127.0.0.1:1/x")
	if err != nil {
		t.Fatal(err)
	}
	_, err = repo.Resolve(t.Context(), "1.0.0")
	if !errors.Is(err, ociregistry.ErrUnavailable) || !strings.Contains(err.Error(), "127.0.0.1:1/x:1.0.0") {
		t.Errorf("error %v", err)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t, registrytest.WithPassword("me", "secret"))
	anonymous := openRepository(t, reg)
	if _, err := anonymous.Tags(t.Context()); !errors.Is(err, ociregistry.ErrUnauthorized) {
		t.Errorf("anonymous: %v", err)
	}
	path := t.TempDir() + "/config.json"
	creds, err := ociregistry.OpenCredentialStore(ociregistry.CredentialSources{Files: []string{path}, AllowPlainText: true})
	if err != nil {
		t.Fatal(err)
	}
	client, err := ociregistry.NewClient(ociregistry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wrong := ociregistry.Credential{Username: "me", Password: "wrong"}
	if err := creds.Login(t.Context(), client, reg.Host, wrong); !errors.Is(err, ociregistry.ErrUnauthorized) {
		t.Errorf("wrong password: %v", err)
	}
	if c, err := creds.Get(t.Context(), reg.Host); err != nil || !c.IsZero() {
		t.Errorf("refused credential was stored: %v", err)
	}
	right := ociregistry.Credential{Username: "me", Password: "secret"}
	if err := creds.Login(t.Context(), client, reg.Host, right); err != nil {
		t.Fatal(err)
	}
	repo := openWith(t, reg, ociregistry.Options{Credentials: creds.Get})
	pushImage(t, repo, []byte("x"), "1.0.0")
	if err := creds.Logout(t.Context(), reg.Host); err != nil {
		t.Fatal(err)
	}
	if c, err := creds.Get(t.Context(), reg.Host); err != nil || !c.IsZero() {
		t.Errorf("credential after logout: %+v, %v", c, err)
	}
}

func TestRepositoryNames(t *testing.T) {
	t.Parallel()
	c, err := ociregistry.NewClient(ociregistry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "host", "host/a:1", "host/A", "host/../a", "host/a@sha256:00"} {
		if _, err := c.Repository(name); !errors.Is(err, ociregistry.ErrInvalid) {
			t.Errorf("Repository(%q): %v", name, err)
		}
	}
}
