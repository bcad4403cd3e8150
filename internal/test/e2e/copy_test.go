//go:build e2e

package e2e_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
)

// indexLimit is far above what an index takes.
const indexLimit = 1 << 20

// testUmoci unpacks the image with a strict reader of the OCI specification,
// and runs what lies in the unpacked root.
func testUmoci(t *testing.T, l *lab) {
	software := "umoci " + version(t, "umoci", "--version") + ", skopeo " + version(t, "skopeo", "--version")
	for _, plugin := range []published{l.openstack, l.dummy} {
		l.report.check(t, software, "copy "+plugin.title+" to a layout and unpack it", func(t *testing.T) {
			layout, root := filepath.Join(t.TempDir(), "layout"), filepath.Join(t.TempDir(), "root")
			run(t, nil, "skopeo", "copy", "--quiet", "--src-tls-verify=false", "docker://"+plugin.reference(), "oci:"+layout+":copy")
			run(t, nil, "umoci", "raw", "unpack", "--image", layout+":copy", root)
			l.serveHere(t, plugin, "E2E_PLUGIN="+filepath.Join(root, "plugin", "plugin"))
		})
	}
}

// testSkopeo mirrors to another registry, and installs from there.
func testSkopeo(t *testing.T, l *lab) {
	software := "skopeo " + version(t, "skopeo", "--version")
	mirror := registrytest.NewReferrers(t)
	for _, plugin := range []published{l.openstack, l.dummy} {
		l.report.check(t, software, "mirror "+plugin.title+" with digests kept", func(t *testing.T) {
			image := mirror.Host + "/mirror/" + plugin.title
			run(t, nil, "skopeo", "copy", "--quiet", "--all", "--preserve-digests", "--src-tls-verify=false", "--dest-tls-verify=false",
				"docker://"+plugin.reference(), "docker://"+image+":"+plugin.version)
			if diff := cmp.Diff(l.digests(t, plugin.image, plugin.version), l.digests(t, image, plugin.version)); diff != "" {
				t.Errorf("digests (-source +mirror):\n%s", diff)
			}
			layout, root := filepath.Join(t.TempDir(), "layout"), filepath.Join(t.TempDir(), "root")
			run(t, nil, "skopeo", "copy", "--quiet", "--src-tls-verify=false", fmt.Sprintf("docker://%s@%s", image, plugin.digest), "oci:"+layout+":copy")
			run(t, nil, "umoci", "raw", "unpack", "--image", layout+":copy", root)
			l.serveHere(t, plugin, "E2E_PLUGIN="+filepath.Join(root, "plugin", "plugin"))
		})
	}
}

// digests returns the digests of an artifact's index and of all that it leads
// to, each read and checked.
func (l *lab) digests(t *testing.T, image, tag string) []digest.Digest {
	t.Helper()
	repository, err := l.client.Repository(image)
	if err != nil {
		t.Fatal(err)
	}
	root, err := repository.Resolve(t.Context(), tag)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := repository.FetchAll(t.Context(), root, indexLimit)
	if err != nil {
		t.Fatal(err)
	}
	index, err := artifact.DecodeIndex(root.MediaType, raw)
	if err != nil {
		t.Fatal(err)
	}
	found := []digest.Digest{root.Digest}
	for _, child := range index.Manifests {
		raw, err := repository.FetchAll(t.Context(), child, indexLimit)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := artifact.DecodeManifest(child.MediaType, raw)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, child.Digest, manifest.Config.Digest)
		for _, layer := range manifest.Layers {
			there, err := repository.Exists(t.Context(), layer)
			if err != nil || !there {
				t.Errorf("%s lacks layer %s: %v", image, layer.Digest, err)
			}
			found = append(found, layer.Digest)
		}
	}
	return found
}
