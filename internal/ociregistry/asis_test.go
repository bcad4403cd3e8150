package ociregistry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
)

// user is who the registries of registrytest's behaviours let in.
func user(context.Context, string) (ociregistry.Credential, error) {
	return ociregistry.Credential{Username: registrytest.User, Password: registrytest.Password}, nil
}

// TestRegistriesAsTheyAre pushes to and reads from a registry in every way in
// which registries behave. Each must work, or fail as the kind of error that is
// written here; none may take an error for something that is not there.
func TestRegistriesAsTheyAre(t *testing.T) {
	t.Parallel()
	type outcome struct{ read, push error }
	unavailable := outcome{ociregistry.ErrUnavailable, ociregistry.ErrUnavailable}
	want := map[string]outcome{
		"no tag is ever written twice":                                {nil, ociregistry.ErrImmutable},
		"no tag is ever written twice, and there is no referrers API": {nil, ociregistry.ErrImmutable},
		"version tags are never written twice":                        {nil, ociregistry.ErrImmutable},
		"only signatures may be written twice":                        {nil, ociregistry.ErrImmutable},
		"writing a tag twice is forbidden":                            {nil, ociregistry.ErrImmutable},
		"writing a tag twice is a conflict":                           {nil, ociregistry.ErrImmutable},
		"tags are not listed: 403":                                    {ociregistry.ErrForbidden, nil},
		"tags are not listed: 405":                                    {ociregistry.ErrUnsupported, nil},
		"the list of tags is null":                                    {ociregistry.ErrNotFound, nil},
		"the referrers API breaks off in its JSON":                    {ociregistry.ErrAnswer, nil},
		"manifests that are asked for by digest are altered":          {ociregistry.ErrDigestMismatch, nil},
		"manifests are elsewhere, and their address has expired":      {ociregistry.ErrStorage, nil},
		"401 for what does not exist":                                 {ociregistry.ErrUnauthorized, ociregistry.ErrUnauthorized},
		"everything leads to a login page":                            {ociregistry.ErrPage, ociregistry.ErrPage},
		"redirects without end":                                       unavailable,
		"Negotiate only":                                              {ociregistry.ErrUnauthorized, ociregistry.ErrUnauthorized},
		"Bearer without a realm":                                      {ociregistry.ErrUnauthorized, ociregistry.ErrUnauthorized},
		"answers end early once, and ranges are others":               {ociregistry.ErrAnswer, nil},
		"the referrers API fails: 500":                                {ociregistry.ErrUnavailable, nil},
		"the referrers API is forbidden: 403":                         {ociregistry.ErrForbidden, nil},
		"web pages for everything":                                    {ociregistry.ErrPage, ociregistry.ErrPage},
		"web pages with 404 for everything":                           {ociregistry.ErrNotFound, ociregistry.ErrNotFound},
		"web pages with 503 for everything":                           unavailable,
		"an error with status 200":                                    {ociregistry.ErrAnswer, nil},
		"everything is forbidden: 403":                                {ociregistry.ErrForbidden, ociregistry.ErrForbidden},
		"nothing can be pushed: 403":                                  {nil, ociregistry.ErrForbidden},
		"nothing can be pushed: 405":                                  {nil, ociregistry.ErrUnsupported},
		"tokens that may only read":                                   {nil, ociregistry.ErrUnauthorized},
		"the token endpoint always fails: 500":                        unavailable,
		"the token endpoint answers 404":                              unavailable,
		"the token endpoint is a web page":                            {ociregistry.ErrPage, ociregistry.ErrPage},
		"the token endpoint answers no token":                         {ociregistry.ErrAnswer, ociregistry.ErrAnswer},
		"credentials are wrong":                                       {ociregistry.ErrUnauthorized, ociregistry.ErrUnauthorized},
		"uploads go on at another host":                               {nil, ociregistry.ErrAnswer},
		"uploads go on at no address":                                 {nil, ociregistry.ErrAnswer},
		"blobs are elsewhere, and their address has expired":          {ociregistry.ErrStorage, nil},
		"the next page at another host":                               {ociregistry.ErrAnswer, nil},
		"pages without end":                                           {ociregistry.ErrTooLarge, nil},
		"the next page is always the same":                            {ociregistry.ErrAnswer, nil},
		"429 always, with a long Retry-After":                         {ociregistry.ErrRateLimited, ociregistry.ErrRateLimited},
		"503 always":                                                  unavailable,
		"the connection is always lost":                               unavailable,
		"answers always end early":                                    {ociregistry.ErrUnavailable, nil},
		"answers come a byte at a time":                               {ociregistry.ErrUnavailable, nil},
		"blobs are longer than announced":                             {ociregistry.ErrDigestMismatch, nil},
		"blobs are shorter than announced":                            {ociregistry.ErrDigestMismatch, nil},
		"blobs are altered":                                           {ociregistry.ErrDigestMismatch, nil},
	}
	for _, b := range registrytest.Behaviours() {
		outcome, exceptional := want[b.Name]
		delete(want, b.Name)
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.NewReferrers(t)
			manifest, layer := pushImage(t, openRepository(t, reg), []byte("plugin"), "1.0.0", "latest")
			referrer := attachTo(t, openRepository(t, reg), manifest, "first")
			reg.Behave(t, b)
			opts := ociregistry.Options{Credentials: user}
			if strings.Contains(b.Name, "byte at a time") {
				opts.StallTimeout = 100 * time.Millisecond
			}
			if strings.Contains(b.Name, "referrers") && (!exceptional || outcome.push != nil) {
				referrer = attachTo(t, openWith(t, reg, opts), manifest, "second")
			}
			errs := map[string]error{"read": readAll(t, openWith(t, reg, opts), manifest, layer, referrer), "push": pushAnew(t, openWith(t, reg, opts))}
			for what, wanted := range map[string]error{"read": outcome.read, "push": outcome.push} {
				err := errs[what]
				if wanted == nil && err != nil || !errors.Is(err, wanted) {
					t.Errorf("%s: %v; want %v", what, err, wanted)
				}
				if err == nil {
					continue
				}
				for _, never := range []string{"signed", "scope=", "<html", "<!DOCTYPE", "invalid character", registrytest.Password} {
					if strings.Contains(err.Error(), never) {
						t.Errorf("%s: %q is in the message: %v", what, never, err)
					}
				}
			}
		})
	}
	for name := range want {
		t.Errorf("no behaviour is called %q", name)
	}
}

// attachTo attaches a document and returns its manifest.
func attachTo(t *testing.T, repo *ociregistry.Repository, subject ocispec.Descriptor, text string) ocispec.Descriptor {
	t.Helper()
	m := referrerOf(t, repo, subject, text)
	if err := repo.Attach(t.Context(), subject, m); err != nil {
		t.Fatal(err)
	}
	return m.Descriptor
}

// referrerOf pushes a document and returns a manifest for it.
func referrerOf(t *testing.T, repo *ociregistry.Repository, subject ocispec.Descriptor, text string) ociregistry.Manifest {
	t.Helper()
	content := fmt.Appendf(nil, "%q", text)
	layer := artifact.Describe(artifact.MediaTypeSPDX, content)
	config, empty := artifact.EmptyConfig()
	for _, blob := range []struct {
		desc    ocispec.Descriptor
		content []byte
	}{{layer, content}, {config, empty}} {
		if _, err := repo.PushBlob(t.Context(), blob.desc, opener(blob.content)); err != nil {
			t.Fatal(err)
		}
	}
	desc, b, err := artifact.EncodeReferrer(artifact.ReferrerInput{Subject: subject, ArtifactType: artifact.MediaTypeSPDX, Layer: layer})
	if err != nil {
		t.Fatal(err)
	}
	return ociregistry.Manifest{Descriptor: desc, Content: b}
}

// readAll reads everything that there is, and checks it.
func readAll(t *testing.T, repo *ociregistry.Repository, manifest, layer, referrer ocispec.Descriptor) error {
	t.Helper()
	ctx := t.Context()
	got, err := repo.Resolve(ctx, "1.0.0")
	if err != nil {
		return err
	}
	if diff := cmp.Diff(manifest, got); diff != "" {
		t.Errorf("resolved (-want +got):\n%s", diff)
	}
	if _, err := repo.Resolve(ctx, "9.9.9"); !errors.Is(err, ociregistry.ErrNotFound) {
		return fmt.Errorf("a tag that is not there: %w", err)
	}
	if _, err := repo.FetchAll(ctx, manifest, 1<<20); err != nil {
		return err
	}
	content, err := repo.FetchAll(ctx, layer, 1<<20)
	if err != nil {
		return err
	}
	if string(content) != "plugin" {
		t.Errorf("blob %q", content)
	}
	if there, err := repo.Exists(ctx, manifest); err != nil || !there {
		return errors.Join(err, fmt.Errorf("the manifest is there: %v", there))
	}
	tags, err := repo.Tags(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(tags, "1.0.0") || !slices.Contains(tags, "latest") {
		return fmt.Errorf("%w: tags in %q", ociregistry.ErrNotFound, tags)
	}
	referrers, err := repo.Referrers(ctx, manifest)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(referrers, func(d ocispec.Descriptor) bool { return d.Digest == referrer.Digest }) {
		t.Errorf("referrers %v, want %s among them", referrers, referrer.Digest)
	}
	return nil
}

// pushAnew pushes another image, and moves a tag to it.
func pushAnew(t *testing.T, repo *ociregistry.Repository) error {
	t.Helper()
	ctx := t.Context()
	blob := []byte("another plugin")
	layer := artifact.Describe(ocispec.MediaTypeImageLayerGzip, blob)
	config, empty := artifact.EmptyConfig()
	if _, err := repo.PushBlob(ctx, layer, opener(blob)); err != nil {
		return err
	}
	if _, err := repo.PushBlob(ctx, config, opener(empty)); err != nil {
		return err
	}
	manifest, b, err := artifact.EncodeManifest(artifact.ManifestInput{Config: config, Layers: []ocispec.Descriptor{layer}})
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.PushManifest(ctx, manifest, b, "2.0.0"); err != nil {
		return err
	}
	if err := repo.Tag(ctx, manifest, "2.0.0"); err != nil {
		return fmt.Errorf("a tag that is where it should be: %w", err)
	}
	for _, tag := range []string{"1.0.0", "latest"} {
		if err := repo.Tag(ctx, manifest, tag); err != nil {
			return err
		}
	}
	return nil
}

// TestMount takes a refusal for "send it yourself".
func TestMount(t *testing.T) {
	t.Parallel()
	for _, b := range registrytest.Behaviours() {
		if !strings.HasPrefix(b.Name, "mounting") {
			continue
		}
		reg := registrytest.NewReferrers(t)
		reg.Behave(t, b)
		mounted, err := openRepository(t, reg).Mount(t.Context(), artifact.Describe("x/y", []byte("x")), "other/plugin")
		if mounted || err != nil {
			t.Errorf("%s: %v, %v", b.Name, mounted, err)
		}
	}
}

// TestAttachWritesTheTagOnce: however many referrers, the list under the tag is
// written once, and not at all for those that are there.
func TestAttachWritesTheTagOnce(t *testing.T) {
	t.Parallel()
	reg := registrytest.NewReferrers(t)
	reg.Behave(t, registrytest.Named(t, "no tag is ever written twice, and there is no referrers API"))
	repo := openRepository(t, reg)
	manifest, _ := pushImage(t, repo, []byte("plugin"), "1.0.0")
	var all []ociregistry.Manifest
	for _, text := range []string{"a", "b", "c"} {
		all = append(all, referrerOf(t, repo, manifest, text))
	}
	for range 2 {
		if err := openRepository(t, reg).Attach(t.Context(), manifest, all...); err != nil {
			t.Fatal(err)
		}
	}
	written := 0
	for _, r := range reg.Gate.Requests() {
		if r.Method == http.MethodPut && strings.HasSuffix(r.Path, artifact.ReferrersTag(manifest.Digest)) {
			written++
		}
	}
	if found, err := repo.Referrers(t.Context(), manifest); written != 1 || len(found) != 3 || err != nil {
		t.Errorf("the tag was written %d times, and lists %d, %v", written, len(found), err)
	}
	if err := repo.Attach(t.Context(), manifest, referrerOf(t, repo, manifest, "d")); !errors.Is(err, ociregistry.ErrImmutable) {
		t.Errorf("a fourth: %v; want ErrImmutable", err)
	}
}

// TestAttachLosesNothing: another client that had read the list before writes it
// after this one, which sees that when it looks again, and adds what is missing.
func TestAttachLosesNothing(t *testing.T) {
	t.Parallel()
	reg := registrytest.NewReferrers(t)
	reg.Behave(t, registrytest.Named(t, "the referrers API is not there: 404"))
	repo, other := openRepository(t, reg), openRepository(t, reg)
	manifest, _ := pushImage(t, repo, []byte("plugin"), "1.0.0")
	tag := artifact.ReferrersTag(manifest.Digest)
	theirs := referrerOf(t, other, manifest, "theirs")
	if err := other.Attach(t.Context(), manifest, theirs); err != nil {
		t.Fatal(err)
	}
	list, err := other.Resolve(t.Context(), tag)
	if err != nil {
		t.Fatal(err)
	}
	content, err := other.FetchAll(t.Context(), list, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	// The second time that the tag is asked for is after it was written.
	reg.Gate.Break(t, registrytest.Fault{Method: http.MethodGet, Path: "/manifests/" + tag, Skip: 1, Times: 1, Before: func() {
		if err := other.PushManifest(t.Context(), list, content, tag); err != nil {
			t.Error(err)
		}
	}})
	if err := repo.Attach(t.Context(), manifest, referrerOf(t, repo, manifest, "ours")); err != nil {
		t.Fatal(err)
	}
	if found, err := openRepository(t, reg).Referrers(t.Context(), manifest); len(found) != 2 || err != nil {
		t.Errorf("%d referrers, %v; want both", len(found), err)
	}
}

// TestTagsWithoutLink: a registry that honours n and names no next page is asked
// on by the last tag. If it does not understand that, its users hear of it.
func TestTagsWithoutLink(t *testing.T) {
	t.Parallel()
	var all []string
	for i := range 2501 {
		all = append(all, fmt.Sprintf("t%05d", i))
	}
	for name, c := range map[string]struct {
		ignoresLast bool
		status      int
		tags        int
		cut         bool
	}{
		"honours last":             {false, 200, len(all), false},
		"ignores last":             {true, 200, 1000, true},
		"refuses last":             {false, 400, 1000, true},
		"lists exactly what it is": {false, 200, 2000, false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tags := all[:c.tags]
			if c.cut {
				tags = all
			}
			last := r.URL.Query().Get("last")
			if last != "" && c.status != http.StatusOK {
				w.WriteHeader(c.status)
				return
			}
			if n, found := slices.BinarySearch(tags, last); found && !c.ignoresLast {
				tags = tags[n+1:]
			}
			n, err := strconv.Atoi(r.URL.Query().Get("n"))
			if err != nil {
				t.Error(err)
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"tags": tags[:min(n, len(tags))]})
		}))
		t.Cleanup(server.Close)
		var log bytes.Buffer
		client, err := ociregistry.NewClient(ociregistry.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		repo, err := client.Repository(strings.TrimPrefix(server.URL, "http://") + "/some/plugin")
		if err != nil {
			t.Fatal(err)
		}
		tags, err := repo.Tags(t.Context())
		if err != nil || len(tags) != c.tags {
			t.Errorf("%s: %d tags, %v; want %d", name, len(tags), err, c.tags)
		}
		if strings.Contains(log.String(), "may be cut") != c.cut {
			t.Errorf("%s: log %q; want a warning = %v", name, log.String(), c.cut)
		}
	}
}

// TestLimits: what a client asks and receives in all is bounded.
func TestLimits(t *testing.T) {
	t.Parallel()
	reg := registrytest.NewReferrers(t)
	blob := bytes.Repeat([]byte("0123456789abcdef"), 1<<12)
	_, layer := pushImage(t, openRepository(t, reg), blob, "1.0.0")
	for name, opts := range map[string]ociregistry.Options{"requests": {MaxRequests: 5}, "bytes": {MaxBytes: 100_000}} {
		repo := openWith(t, reg, opts)
		var err error
		for range 6 {
			if _, err = repo.FetchAll(t.Context(), layer, 1<<20); err != nil {
				break
			}
		}
		if !errors.Is(err, ociregistry.ErrTooLarge) {
			t.Errorf("%s: %v; want ErrTooLarge", name, err)
		}
	}
}
