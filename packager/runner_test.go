package packager_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	runner "gitlab.com/gitlab-org/fleeting/fleeting-artifact/pkg/installer"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// published is an artifact as it lies in a registry.
type published struct {
	repo      *ociregistry.Repository
	index     ocispec.Index
	manifests []ocispec.Manifest
	configs   []ocispec.Image
	// members counts the gzip members of each plugin layer, files are the names
	// of its regular files.
	members   []int
	files     [][]string
	referrers []ocispec.Manifest
}

func fetch(t testing.TB, repo *ociregistry.Repository, desc ocispec.Descriptor) []byte {
	t.Helper()
	r, err := repo.Fetch(t.Context(), desc)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func fetchJSON(t testing.TB, repo *ociregistry.Repository, desc ocispec.Descriptor, into any) {
	t.Helper()
	raw, err := repo.FetchAll(t.Context(), desc, artifact.ManifestLimit)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

func readPublished(t testing.TB, repo *ociregistry.Repository, tag string) published {
	t.Helper()
	p := published{repo: repo}
	desc, err := repo.Resolve(t.Context(), tag)
	if err != nil {
		t.Fatal(err)
	}
	fetchJSON(t, repo, desc, &p.index)
	subjects := []ocispec.Descriptor{desc}
	for _, entry := range p.index.Manifests {
		var m ocispec.Manifest
		fetchJSON(t, repo, entry, &m)
		var c ocispec.Image
		fetchJSON(t, repo, m.Config, &c)
		members, files := readMembers(t, fetch(t, repo, m.Layers[len(m.Layers)-1]))
		p.manifests, p.configs = append(p.manifests, m), append(p.configs, c)
		p.members, p.files = append(p.members, members), append(p.files, files)
		subjects = append(subjects, entry)
	}
	for _, s := range subjects {
		found, err := repo.Referrers(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, desc := range found {
			var m ocispec.Manifest
			fetchJSON(t, repo, desc, &m)
			p.referrers = append(p.referrers, m)
		}
	}
	return p
}

// readMembers counts the gzip members of a layer and lists its regular files.
func readMembers(t testing.TB, raw []byte) (members int, files []string) {
	t.Helper()
	var plain bytes.Buffer
	in := bytes.NewReader(raw)
	for in.Len() > 0 {
		zip, err := gzip.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		zip.Multistream(false)
		if _, err := io.Copy(&plain, zip); err != nil {
			t.Fatal(err)
		}
		members++
	}
	r := tar.NewReader(&plain)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return members, files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			files = append(files, h.Name)
		}
	}
}

// relabel publishes an index with the entries for one system alone, said to be
// for this machine: the runner's installer only installs for the machine that
// it runs on. Manifests and layers are those that were published.
func (p published) relabel(t testing.TB, system, tag string) {
	t.Helper()
	index := p.index
	index.Manifests = nil
	for _, m := range p.index.Manifests {
		if m.Platform.OS == system {
			here := *m.Platform
			here.OS, here.Architecture = runtime.GOOS, runtime.GOARCH
			m.Platform = &here
			index.Manifests = append(index.Manifests, m)
		}
	}
	raw, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.repo.PushManifest(t.Context(), artifact.Describe(index.MediaType, raw), raw, tag); err != nil {
		t.Fatal(err)
	}
}

// any says whether something holds for a platform.
func (p published) any(holds func(i int) bool) bool {
	for i := range p.manifests {
		if holds(i) {
			return true
		}
	}
	return false
}

func isZstd(l ocispec.Descriptor) bool { return strings.Contains(l.MediaType, "zstd") }

// extras are the rows of INTEROP's table of extras, under the names that they
// have there: whether the artifact has the extra, and how it shows. Those that
// it has are installed with the runner's installer; those that break something
// or are of no use here must not be there.
func extras() []extra {
	here := ocispec.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}
	return []extra{
		{"zstd layer", "", func(p published) bool {
			return p.any(func(i int) bool { return slices.ContainsFunc(p.manifests[i].Layers, isZstd) })
		}},
		{"several gzip members in one layer", "", func(p published) bool {
			return slices.Max(p.members) > 1
		}},
		{"raw tar", "", func(p published) bool {
			return p.any(func(i int) bool {
				return slices.ContainsFunc(p.manifests[i].Layers, func(l ocispec.Descriptor) bool { return l.MediaType == ocispec.MediaTypeImageLayer })
			})
		}},
		{"SBOM bytes as an extra layer", "", func(p published) bool {
			return p.any(func(i int) bool {
				return slices.ContainsFunc(p.manifests[i].Layers, func(l ocispec.Descriptor) bool { return strings.HasSuffix(l.MediaType, "json") })
			})
		}},
		{"a file outside plugin/ in the annotated layer", "", func(p published) bool {
			return p.any(func(i int) bool {
				return slices.ContainsFunc(p.files[i], func(name string) bool { return path.Dir(strings.TrimPrefix(name, "Files/")) != "plugin" })
			})
		}},
		{"extra real tar layer without annotation", "windows", func(p published) bool {
			return p.any(func(i int) bool {
				layers := p.manifests[i].Layers
				return len(layers) == 2 && layers[0].Annotations == nil && layers[1].Annotations[artifact.AnnotationLayer] == "1.2.3"
			})
		}},
		{"artifactType, subject, annotations on index, manifest, descriptor", runtime.GOOS, func(p published) bool {
			hung := slices.ContainsFunc(p.referrers, func(m ocispec.Manifest) bool { return m.ArtifactType != "" && m.Subject != nil })
			return hung && len(p.index.Annotations) > 0 && len(p.index.Manifests[0].Annotations) > 0 && len(p.manifests[0].Annotations) > 0
		}},
		{"empty or custom config instead of an image config", "", func(p published) bool {
			return p.any(func(i int) bool { return p.manifests[i].Config.MediaType != ocispec.MediaTypeImageConfig })
		}},
		{"attestation manifests in the index, unknown/unknown", "", func(p published) bool {
			return p.any(func(i int) bool { return p.index.Manifests[i].Platform.OS == "unknown" })
		}},
		{"the same without platform", "", func(p published) bool {
			return p.any(func(i int) bool { return p.index.Manifests[i].Platform == nil })
		}},
		{"two entries for one platform", "windows", func(p published) bool {
			seen := map[string]int{}
			for _, m := range p.index.Manifests {
				seen[m.Platform.OS+"/"+m.Platform.Architecture+m.Platform.Variant]++
			}
			return seen["windows/amd64"] == 3
		}},
		{"amd64 variant v2 or v3 only", "", func(p published) bool {
			plain := slices.ContainsFunc(p.index.Manifests, func(m ocispec.Descriptor) bool { return cmp.Equal(*m.Platform, here) })
			return !plain || p.any(func(i int) bool {
				return p.index.Manifests[i].Platform.Architecture == "amd64" && p.index.Manifests[i].Platform.Variant != ""
			})
		}},
		{"empty os/architecture in the config", "", func(p published) bool {
			return p.any(func(i int) bool { return p.configs[i].OS == "" || p.configs[i].Architecture == "" })
		}},
	}
}

type extra struct {
	name string
	// system is the one whose entries have the extra and are installed; empty
	// if the artifact must not have it.
	system string
	has    func(published) bool
}

// TestRunnerTakesOurExtras is INTEROP 31 and goes through INTEROP's table of extras with all that
// a release can carry: bases for Windows, bills of materials, signatures and
// attestations.
func TestRunnerTakesOurExtras(t *testing.T) {
	t.Parallel()
	signer, _ := keyPair(t)
	provenance, err := packager.LocalBuild(githubEnv).Provenance()
	if err != nil {
		t.Fatal(err)
	}
	reg := registrytest.NewReferrers(t)
	host := portless(t, "10.1.1.2", reg) + "/group/demo"
	base, repo := repository(t, reg.Host+"/windows/base"), repository(t, reg.Host+"/group/demo")
	windowsBase(t, base)
	_, err = packager.Release(t.Context(), scan(t, sampleplugin.Dist(t, "1.2.3", runtime.GOOS+"/"+runtime.GOARCH, "linux/armv7", "windows/amd64")),
		version(t, "1.2.3"), repo, packager.ReleaseOptions{
			PackOptions: packager.PackOptions{
				Metadata: metadata(), WindowsBases: []packager.Base{{Reference: reg.Host + "/windows/base:ltsc", From: base}},
			},
			Signer: signer, Predicates: []packager.Predicate{provenance},
		})
	if err != nil {
		t.Fatal(err)
	}
	p := readPublished(t, repo, "1.2.3")
	p.relabel(t, "windows", "relabelled")
	plugin := "plugin"
	if runtime.GOOS == "windows" {
		plugin = "plugin.exe"
	}
	for _, row := range extras() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if has := row.has(p); has != (row.system != "") {
				t.Fatalf("the artifact has it: %t", has)
			}
			switch row.system {
			case "":
			case runtime.GOOS:
				runnerInstalls(t, host, "1.2.3", row.system, plugin)
				runnerInstalls(t, host, "latest", row.system, plugin)
			default:
				runnerInstalls(t, host, "relabelled", row.system, "plugin.exe")
			}
		})
	}
}

// runnerInstalls installs with the runner's installer and compares what it
// installed.
func runnerInstalls(t *testing.T, repository, tag, system, name string) {
	t.Helper()
	plugins := t.TempDir()
	if err := runner.Install(t.Context(), repository+":"+tag, runner.WithDirectory(plugins)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(plugins, repository, "1.2.3", name))
	if err != nil {
		t.Fatal(err)
	}
	arch := runtime.GOARCH
	if system != runtime.GOOS {
		arch = "amd64"
	}
	want, err := os.ReadFile(sampleplugin.Build(t, system+"/"+arch, "1.2.3"))
	if err != nil {
		t.Fatal(err)
	}
	if digest.FromBytes(got) != digest.FromBytes(want) {
		t.Error("another executable was installed")
	}
}
