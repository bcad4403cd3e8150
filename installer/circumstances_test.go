package installer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// TestPolicyChanged holds that what a policy let in must be verified again when
// the policy has changed: a key that is trusted no longer lets nothing stay.
func TestPolicyChanged(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	repo := repository(t, registry.Host, "team/plugin")
	key, other := trusttest.NewKey(t), trusttest.NewKey(t)
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	plugintest.Sign(t, repo, key, p.Index)
	folder := installer.WithFolder(filepath.Join(t.TempDir(), "plugins"))
	ref, opts := reference(t, registry.Host+"/team/plugin:1"), installer.InstallOptions{As: alias}
	unsafe := newInstaller(t, installer.UnsafeNoVerification(), folder)
	if _, err := unsafe.Ensure(t.Context(), ref, opts); err != nil {
		t.Fatal(err)
	}
	verified, err := newInstaller(t, trusting(t, key), folder).Ensure(t.Context(), ref, opts)
	if err != nil || verified.Receipt.Verification.Unsafe {
		t.Errorf("what was installed unverified counts: %+v, %v", verified.Receipt.Verification, err)
	}
	if _, err := newInstaller(t, trusting(t, other), folder).Ensure(t.Context(), ref, opts); !errors.Is(err, installer.ErrRefused) {
		t.Errorf("another key is trusted: got %v; want ErrRefused", err)
	}
	if _, err := newInstaller(t, installer.Policy{}, folder).Ensure(t.Context(), ref, opts); !errors.Is(err, installer.Reason("no-rule")) {
		t.Errorf("the zero policy: got %v; want no-rule", err)
	}
}

// TestTrustedRootChanged holds that another trusted root is another policy, though
// the key that it is for is described in the same words.
func TestTrustedRootChanged(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	opts := installer.InstallOptions{As: alias}
	root, err := installer.PublicTrustedRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		opts installer.KeyOptions
		asks bool
	}{
		{"first", installer.KeyOptions{}, true},
		{"the same", installer.KeyOptions{}, false},
		{"with a root", installer.KeyOptions{Root: root}, true},
		{"the same root", installer.KeyOptions{Root: root}, false},
	} {
		signer, err := installer.RequireKey(s.key.PublicPEM(t), step.opts)
		if err != nil {
			t.Fatal(err)
		}
		i := newInstaller(t, policyOf(t, installer.Rule{Scope: "**", Signers: []installer.Signer{signer}}), installer.WithFolder(s.installer.Folder().Dir()))
		s.registry.Gate.Forget()
		if _, err := i.Ensure(t.Context(), s.ref, opts); err != nil {
			t.Fatal(err)
		}
		if asked := len(s.registry.Gate.Requests()) > 0; asked != step.asks {
			t.Errorf("%s: verified again is %v; want %v", step.name, asked, step.asks)
		}
	}
}

// TestInterrupted cancels in the middle of a download: nothing stays.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	repo := repository(t, registry.Host, "team/plugin")
	key := trusttest.NewKey(t)
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: randomText(3 << 20)}, "1.2.3")
	plugintest.Sign(t, repo, key, p.Index)
	ctx, cancel := context.WithCancel(t.Context())
	i := newInstaller(t, trusting(t, key), installer.WithEvents(func(e installer.Event) {
		if e.Step == installer.StepDownloading && e.Done > 1<<20 {
			cancel()
		}
	}))
	_, err := i.Install(ctx, reference(t, registry.Host+"/team/plugin:1"), installer.InstallOptions{As: alias})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want context.Canceled", err)
	}
	mustBeEmpty(t, i.Folder().Dir())
}

// TestResumed cuts the download in the middle: it goes on. INTEROP C27, 9, 18:
// https://github.com/hashicorp/terraform/issues/27376
func TestResumed(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	repo := repository(t, registry.Host, "team/plugin")
	key := trusttest.NewKey(t)
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: randomText(1 << 20)}, "1.2.3")
	plugintest.Sign(t, repo, key, p.Index)
	i := newInstaller(t, trusting(t, key))
	layer := p.Layers[i.Platform()].Digest.String()
	registry.Gate.Break(t,
		registrytest.Fault{Path: layer, CutAfter: 300_000, Times: 1},
		registrytest.Fault{Path: "/tags/list", Status: 429, Times: 1},
		registrytest.Fault{Path: "/manifests/", Status: 503, Times: 1})
	if _, err := i.Install(t.Context(), reference(t, registry.Host+"/team/plugin:1"), installer.InstallOptions{As: alias}); err != nil {
		t.Fatal(err)
	}
}

// TestMirrors fetches from elsewhere; everything goes by the name before. INTEROP
// 8: https://github.com/hashicorp/packer/issues/12427
func TestMirrors(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	key := trusttest.NewKey(t)
	repo := repository(t, registry.Host, "cache/team/plugin")
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	plugintest.Sign(t, repo, key, p.Index)
	open, err := installer.WithMirrors(retryingRegistries(t).Open, map[string]string{
		"registry.test": "127.0.0.1:1/nowhere", "Registry.Test:443/team": registry.Host + "/cache/team",
	})
	if err != nil {
		t.Fatal(err)
	}
	policy := policyOf(t, installer.Rule{Scope: "registry.test/team/*", Signers: []installer.Signer{signerOf(t, key)}})
	installed, err := newInstaller(t, policy, installer.WithSource(open)).Install(t.Context(), reference(t, alias), installer.InstallOptions{})
	if err != nil || installed.Receipt.Name != alias || installed.Receipt.Reference.Name() != alias {
		t.Errorf("%+v, %v", installed.Receipt, err)
	}
}

// TestMirrorsThatNeverCount: a mirror for names that there cannot be, or one of
// two for the same names, would be passed over in silence.
func TestMirrorsThatNeverCount(t *testing.T) {
	t.Parallel()
	open := func(_ context.Context, ref installer.Reference) (installer.Source, error) {
		return nil, errors.New("asked for " + ref.Name())
	}
	for from, to := range map[string]string{
		"registry.test/Team": "mirror.test", "registry.test/team/x:1": "mirror.test", "registry.test/*": "mirror.test",
		"team": "mirror.test", "": "mirror.test", "https://registry.test": "mirror.test", "registry.test/": "mirror.test",
		"registry.test": "mirror", "registry.test/a": "mirror.test/A", "registry.test/b": "", "registry.test/c": "mirror.test/c:1",
	} {
		if _, err := installer.WithMirrors(open, map[string]string{from: to}); !errors.Is(err, installer.Reason("reference")) {
			t.Errorf("%s=%s: %v", from, to, err)
		}
	}
	if _, err := installer.WithMirrors(open, map[string]string{"docker.io/x": "a.test", "index.docker.io/x": "b.test"}); !errors.Is(err, installer.Reason("reference")) {
		t.Errorf("twice: %v", err)
	}
	mirrors, err := installer.WithMirrors(open, map[string]string{
		"docker.io": "a.test/hub", "registry-1.docker.io/nginx": "b.test/official", "docker.io/team": "c.test", "[2001:DB8::1]:5000": "d.test",
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"docker.io/alpine":             "a.test/hub/library/alpine",
		"index.docker.io/nginx":        "b.test/official",
		"docker.io/team/x":             "c.test/x",
		"docker.io/teams/x":            "a.test/hub/teams/x",
		"[2001:db8::0:1]:5000/x":       "d.test/x",
		"registry.test/docker.io/team": "registry.test/docker.io/team",
	} {
		if _, err := mirrors(t.Context(), reference(t, name)); err == nil || err.Error() != "asked for "+want {
			t.Errorf("%s: %v; want %s", name, err, want)
		}
	}
}

// TestCredentials reads from a registry that asks for a password.
func TestCredentials(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t, registrytest.WithPassword("user", "secret"))
	for password, want := range map[string]error{"secret": installer.ErrNotFound, "wrong": installer.ErrUnauthorized} {
		private, err := installer.NewRegistries(installer.RegistryOptions{
			Credentials: func(context.Context, string) (installer.Credential, error) {
				return installer.Credential{Username: "user", Password: password}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		i := newInstaller(t, installer.Policy{}, installer.WithSource(private.Open))
		if _, err := i.Resolve(t.Context(), reference(t, registry.Host+"/x:1.2.3")); !errors.Is(err, want) {
			t.Errorf("%s: got %v; want %v", password, err, want)
		}
	}
}

// FuzzIndex reads any index or manifest as a registry may send it.
func FuzzIndex(f *testing.F) {
	f.Add(`{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"`+someDigest+`","size":1}]}`, true)
	f.Add(`{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"`+someDigest+`","size":1,"platform":{"os":"linux","architecture":"amd64"}}]}`, true)
	f.Add(`{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"`+someDigest+`","size":1},"layers":[]}`, false)
	f.Fuzz(func(t *testing.T, text string, isIndex bool) {
		mediaType := ocispec.MediaTypeImageManifest
		if isIndex {
			mediaType = ocispec.MediaTypeImageIndex
		}
		open := func(context.Context, installer.Reference) (installer.Source, error) {
			return oneDocument{mediaType, []byte(text)}, nil
		}
		i := newInstaller(t, installer.UnsafeNoVerification(), installer.WithSource(open))
		if _, err := i.Install(t.Context(), reference(t, alias), installer.InstallOptions{}); err == nil {
			t.Fatalf("%q was installed", text)
		}
		mustBeEmpty(t, i.Folder().Dir())
	})
}

// oneDocument is a registry that answers everything with the same bytes.
type oneDocument struct {
	mediaType string
	content   []byte
}

func (o oneDocument) Tags(context.Context) ([]string, error) { return []string{"1.0.0"}, nil }

func (o oneDocument) Resolve(context.Context, string) (ocispec.Descriptor, error) {
	return artifact.Describe(o.mediaType, o.content), nil
}

func (o oneDocument) Fetch(context.Context, ocispec.Descriptor) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(o.content)), nil
}

func (o oneDocument) FetchAll(context.Context, ocispec.Descriptor, int64) ([]byte, error) {
	return o.content, nil
}

func (o oneDocument) Referrers(context.Context, ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	return nil, nil
}
