package packager_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// TestSingleManifest: what docker build and oras push publish has no index, and is
// signed, attested and shown all the same.
func TestSingleManifest(t *testing.T) {
	t.Parallel()
	for _, reg := range []*registrytest.Registry{registrytest.New(t), registrytest.NewReferrers(t)} {
		repo := repository(t, reg.Host+"/group/single")
		published := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.0.0", Platforms: []string{"linux/arm64"}}, "index")
		desc := published.Manifests["linux/arm64"]
		desc.Platform, desc.Annotations = nil, nil
		content, err := repo.FetchAll(t.Context(), desc, artifact.ManifestLimit)
		if err != nil {
			t.Fatal(err)
		}
		if err := repo.PushManifest(t.Context(), desc, content, "1.0.0"); err != nil {
			t.Fatal(err)
		}
		signer, _ := keyPair(t)
		for _, want := range []packager.Outcome{{What: "signature", New: 1}, {What: "signature", Present: 1}} {
			signed, err := packager.Sign(t.Context(), repo, "1.0.0", signer, packager.SignOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]packager.Outcome{want}, signed.Outcomes); diff != "" || signed.Digest != desc.Digest || len(signed.Manifests) != 1 {
				t.Errorf("signed %s, %v: %s", signed.Digest, signed.Manifests, diff)
			}
		}
		predicate := packager.Predicate{Type: packager.PredicateProvenance, Content: []byte(`{}`)}
		if _, err := packager.Attest(t.Context(), repo, "1.0.0", signer, []packager.Predicate{predicate}, packager.SignOptions{}); err != nil {
			t.Fatal(err)
		}
		report, err := packager.Inspect(t.Context(), repo, "1.0.0", packager.InspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if report.Digest != desc.Digest || report.Version != "1.0.0" || len(report.Platforms) != 1 || report.Platforms[0].Platform != "linux/arm64" ||
			len(report.Signatures) != 2 || report.Signatures[0].Subject != "linux/arm64" || len(report.Attestations) != 2 {
			t.Errorf("%+v", report)
		}
	}
}

// TestNoImage: a manifest that is no image is shown, without a platform.
func TestNoImage(t *testing.T) {
	t.Parallel()
	repo := repository(t, registrytest.New(t).Host+"/group/raw")
	published := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.0.0", Platforms: []string{"linux/arm64"}}, "1.0.0")
	signer, _ := keyPair(t)
	if _, err := packager.Sign(t.Context(), repo, "1.0.0", signer, packager.SignOptions{}); err != nil {
		t.Fatal(err)
	}
	bundles, err := repo.Referrers(t.Context(), published.Index)
	if err != nil || len(bundles) == 0 {
		t.Fatalf("%d bundles, %v", len(bundles), err)
	}
	report, err := packager.Inspect(t.Context(), repo, bundles[0].Digest.String(), packager.InspectOptions{})
	if err != nil || len(report.Platforms) != 1 || report.Platforms[0].Platform != "unknown" {
		t.Errorf("%+v, %v", report, err)
	}
}
