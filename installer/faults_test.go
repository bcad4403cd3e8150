package installer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// TestRegistryErrors breaks every request for a signature in every way. What is
// signed may then be refused or fail; what is not signed must not get through;
// and a failure must not be called a missing signature.
func TestRegistryErrors(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	for kind, registry := range registries(t) {
		for form, put := range map[string]func(tb testing.TB, to plugintest.Target, subject ocispec.Descriptor) ocispec.Descriptor{
			"unsigned": func(testing.TB, plugintest.Target, ocispec.Descriptor) ocispec.Descriptor {
				return ocispec.Descriptor{}
			},
			"cosign 2": func(tb testing.TB, to plugintest.Target, subject ocispec.Descriptor) ocispec.Descriptor {
				tb.Helper()
				plugintest.Sign(tb, to, key, subject)
				return ocispec.Descriptor{}
			},
			"bundle": func(tb testing.TB, to plugintest.Target, subject ocispec.Descriptor) ocispec.Descriptor {
				tb.Helper()
				return plugintest.Refer(tb, to, subject, key.SignBundle(tb, subject.Digest))
			},
		} {
			name := strings.ReplaceAll(form, " ", "")
			repo := repository(t, registry.Host, name)
			p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.0.0", Body: "ELF"}, "1.0.0")
			bundle := put(t, repo, p.Index)
			for _, fault := range faults(t, repo, p, bundle) {
				t.Run(kind+"/"+form+"/"+fault.name, func(t *testing.T) {
					registry.Gate.Break(t, fault.Fault)
					defer registry.Gate.Mend()
					i := newInstaller(t, trusting(t, key))
					_, err := i.Install(t.Context(), reference(t, registry.Host+"/"+name+":1.0.0"), installer.InstallOptions{As: alias})
					mustNotDowngrade(t, form, fault, err)
					if err != nil {
						mustBeEmpty(t, i.Folder().Dir())
					}
				})
			}
		}
	}
}

// fault is one broken request, and whether it hides the place (404 for a tag is
// what a registry without signatures answers) or breaks it.
type fault struct {
	registrytest.Fault
	name  string
	hides bool
}

func faults(tb testing.TB, repo *ociregistry.Repository, p plugintest.Published, bundle ocispec.Descriptor) []fault {
	tb.Helper()
	places := map[string]string{
		"signature tag":   "/manifests/" + plugintest.SignatureTag(p.Index.Digest),
		"attestation tag": "/manifests/" + plugintest.AttestationTag(p.Index.Digest),
		"referrers":       "/referrers/",
		"fallback tag":    "/manifests/sha256-[0-9a-f]{64}$",
		"all blobs":       "/blobs/",
	}
	if bundle.Digest != "" {
		places["bundle manifest"] = "/manifests/" + bundle.Digest.String()
	}
	if desc, err := repo.Resolve(tb.Context(), plugintest.SignatureTag(p.Index.Digest)); err == nil {
		places["signature manifest"] = "/manifests/" + desc.Digest.String()
	}
	var out []fault
	for place, path := range places {
		for _, status := range []int{401, 403, 404, 429, 500, 503} {
			hides := status == 404 && (strings.HasSuffix(place, "tag") || place == "referrers")
			out = append(out, fault{
				Fault: registrytest.Fault{Path: path, Status: status},
				name:  fmt.Sprintf("%s %d", place, status), hides: hides,
			})
		}
		out = append(out,
			fault{Fault: registrytest.Fault{Path: path, Reset: true}, name: place + " reset"},
			fault{Fault: registrytest.Fault{Path: path, CutAfter: 10}, name: place + " cut"})
	}
	return out
}

func mustNotDowngrade(t *testing.T, form string, f fault, err error) {
	t.Helper()
	switch {
	case err == nil && form == "unsigned":
		t.Error("an unsigned plugin was installed")
	case err == nil:
		// The fault was not in the way of the signature.
	case form != "unsigned" && errors.Is(err, installer.Reason("unsigned")) && !f.hides:
		t.Errorf("could not check, and says unsigned: %v", err)
	case !errors.Is(err, installer.ErrRefused) && !errors.Is(err, installer.ErrEvidence) && !strings.Contains(f.name, "blobs"):
		t.Errorf("neither refused nor could not check: %v", err)
	}
}

// TestBrokenSignatureBlob changes a signature in the registry's storage: that is
// neither a signature nor the absence of one.
func TestBrokenSignatureBlob(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	registry := registrytest.New(t)
	repo := repository(t, registry.Host, "team/plugin")
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.0.0", Body: "ELF"}, "1.0.0")
	layer := key.SignBundle(t, p.Index.Digest)
	plugintest.Refer(t, repo, p.Index, layer)
	blob := plugintest.PushBlob(t, repo, layer.MediaType, layer.Payload)
	registry.RewriteBlob(t, blob.Digest, func(b []byte) []byte {
		b[len(b)/2] ^= 1
		return b
	})
	_, err := newInstaller(t, trusting(t, key)).Verify(t.Context(), reference(t, registry.Host+"/team/plugin:1"))
	if !errors.Is(err, installer.ErrEvidence) || !errors.Is(err, installer.Reason("mismatch")) || errors.Is(err, installer.Reason("unsigned")) {
		t.Errorf("got %v; want ErrEvidence for errMismatch", err)
	}
}

// TestManyReferrers holds that strangers cannot make verification endless, nor
// hide a signature behind a few of theirs.
func TestManyReferrers(t *testing.T) {
	t.Parallel()
	key, stranger := trusttest.NewKey(t), trusttest.NewKey(t)
	registry := registrytest.NewReferrers(t)
	repo := repository(t, registry.Host, "team/plugin")
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.0.0", Body: "ELF"}, "1.0.0")
	for range 30 {
		plugintest.Refer(t, repo, p.Index, stranger.SignBundle(t, p.Index.Digest))
	}
	plugintest.Refer(t, repo, p.Index, key.SignBundle(t, p.Index.Digest))
	ref := reference(t, registry.Host+"/team/plugin:1")
	if _, err := newInstaller(t, trusting(t, key)).Verify(t.Context(), ref); err != nil {
		t.Errorf("behind 30 of others: %v", err)
	}
}
