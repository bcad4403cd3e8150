package installer_test

import (
	"errors"
	"path/filepath"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// otherPlatform is one that tests do not run on.
const otherPlatform = "linux/s390x"

// graft publishes an index that nobody signed in place of a signed release: its
// manifest for this machine is the release's, signed, the other one is altered.
// Whoever may push can do this without any key.
func graft(t *testing.T, to plugintest.Target, key *trusttest.Key) (genuine, grafted plugintest.Published) {
	t.Helper()
	host := artifact.HostPlatform().String()
	platforms := []string{host, otherPlatform}
	genuine = plugintest.Publish(t, to, plugintest.Plugin{Version: "1.2.3", Body: "ELF", Platforms: platforms}, "1.2.3")
	for _, subject := range []ocispec.Descriptor{genuine.Index, genuine.Manifests[host], genuine.Manifests[otherPlatform]} {
		plugintest.Sign(t, to, key, subject)
		plugintest.Refer(t, to, subject, key.SignBundle(t, subject.Digest))
	}
	grafted = plugintest.Publish(t, to, plugintest.Plugin{
		Version: "1.2.3", Body: "evil", Platforms: platforms,
		Index: func(index *ocispec.Index) {
			index.Manifests[0].Digest, index.Manifests[0].Size = genuine.Manifests[host].Digest, genuine.Manifests[host].Size
			index.Manifests[0].Annotations = nil
		},
	}, "1.2.3", "latest")
	return genuine, grafted
}

// TestEvidenceForOnePlatform holds that evidence about one platform's manifest
// makes no result name the index as verified, and that nothing for other
// platforms is vouched for by it.
func TestEvidenceForOnePlatform(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	host := artifact.HostPlatform().String()
	for kind, registry := range registries(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			genuine, grafted := graft(t, repository(t, registry.Host, "team/plugin"), key)
			ref := reference(t, registry.Host+"/team/plugin:1.2")
			i := newInstaller(t, trusting(t, key))
			verified, err := i.Verify(t.Context(), ref)
			if err != nil || verified.Index != grafted.Index.Digest {
				t.Fatalf("%+v, %v", verified, err)
			}
			if got := verified.Digest(); got != genuine.Manifests[host].Digest || verified.Verification.Covers != got {
				t.Errorf("verified is %s, covers %s; want the manifest for %s", got, verified.Verification.Covers, host)
			}
			if _, err := i.VerifyAllPlatforms(t.Context(), ref); !errors.Is(err, installer.ErrRefused) {
				t.Errorf("all platforms: %v; want a refusal", err)
			}
			if _, err := i.Lock(t.Context(), installer.Lock{}, ref, installer.LockOptions{As: alias}); !errors.Is(err, installer.ErrRefused) {
				t.Errorf("lock: %v; want a refusal", err)
			}
			copied := newLayout(t)
			if _, err := i.Mirror(t.Context(), ref, copied, installer.MirrorOptions{}); !errors.Is(err, installer.ErrRefused) {
				t.Errorf("mirror: %v; want a refusal", err)
			}
			if exists, err := copied.Exists(t.Context(), grafted.Manifests[otherPlatform]); err != nil || exists {
				t.Errorf("the altered manifest was copied: %v, %v", exists, err)
			}
			one, err := i.Mirror(t.Context(), ref, copied, installer.MirrorOptions{Platforms: []string{host}})
			if err != nil || one.Digest() != genuine.Manifests[host].Digest {
				t.Errorf("mirror of the platform that is signed: %s, %v", one.Digest(), err)
			}
			installed, err := i.Install(t.Context(), ref, installer.InstallOptions{As: alias})
			if err != nil || installed.Receipt.Verification.Covers != genuine.Manifests[host].Digest {
				t.Errorf("the receipt says that %s was verified, %v", installed.Receipt.Verification.Covers, err)
			}
		})
	}
}

// TestEvidenceForTheIndex holds what the index's signature is good for, from a
// machine that the plugin is not published for, too.
func TestEvidenceForTheIndex(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	registry := registrytest.New(t)
	p := dressed(t, repository(t, registry.Host, "team/plugin"), key, "1.2.3", []string{otherPlatform, "windows/amd64"})
	ref := reference(t, registry.Host+"/team/plugin:1")
	i := newInstaller(t, trusting(t, key), installer.WithPlatform("freebsd/amd64"), installer.WithFolder(filepath.Join(t.TempDir(), "plugins")))
	verified, err := i.VerifyAllPlatforms(t.Context(), ref)
	if err != nil || verified.Digest() != p.Index.Digest || verified.Verification.Covers != p.Index.Digest {
		t.Errorf("%s covers %s, %v; want the index %s", verified.Digest(), verified.Verification.Covers, err, p.Index.Digest)
	}
	if _, err := i.InstallVerified(t.Context(), verified, installer.InstallOptions{As: alias}); !errors.Is(err, installer.Reason("no-platform")) {
		t.Errorf("installing what is for another platform: %v", err)
	}
	if _, err := i.Verify(t.Context(), ref); !errors.Is(err, installer.Reason("no-platform")) {
		t.Errorf("for one platform: %v", err)
	}
	if _, err := i.Mirror(t.Context(), ref, newLayout(t), installer.MirrorOptions{}); err != nil {
		t.Errorf("mirror: %v", err)
	}
	registry.Gate.Break(t, registrytest.Fault{Path: "sha256-" + p.Index.Digest.Encoded(), Status: 403})
	here := newInstaller(t, trusting(t, key), installer.WithPlatform(otherPlatform))
	if verified, err := here.Verify(t.Context(), ref); err != nil || verified.Digest() != p.Manifests[otherPlatform].Digest {
		t.Errorf("with evidence about the manifest: %s, %v", verified.Digest(), err)
	}
	if _, err := here.VerifyAllPlatforms(t.Context(), ref); errors.Is(err, installer.ErrRefused) || !errors.Is(err, installer.ErrEvidence) {
		t.Errorf("evidence that cannot be fetched: %v; want a failure that is no verdict", err)
	}
}

// TestMirrorEachPlatformSigned copies what has no signature of the index, but one
// of every manifest in it.
func TestMirrorEachPlatformSigned(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	registry := registrytest.New(t)
	repo := repository(t, registry.Host, "team/plugin")
	host := artifact.HostPlatform().String()
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: "ELF", Platforms: []string{host, otherPlatform}}, "1.2.3")
	ref := reference(t, registry.Host+"/team/plugin:1.2.3")
	i := newInstaller(t, trusting(t, key))
	plugintest.Sign(t, repo, key, p.Manifests[host])
	if _, err := i.Mirror(t.Context(), ref, newLayout(t), installer.MirrorOptions{}); !errors.Is(err, installer.ErrRefused) {
		t.Errorf("one of two is signed: %v; want a refusal", err)
	}
	plugintest.Sign(t, repo, key, p.Manifests[otherPlatform])
	copied, err := i.Mirror(t.Context(), ref, newLayout(t), installer.MirrorOptions{})
	if err != nil || copied.Verification.Covers != p.Manifests[host].Digest {
		t.Errorf("each is signed: covers %s, %v", copied.Verification.Covers, err)
	}
	if _, err := i.VerifyAllPlatforms(t.Context(), ref); !errors.Is(err, installer.ErrRefused) {
		t.Errorf("the index is not signed: %v; want a refusal", err)
	}
}
