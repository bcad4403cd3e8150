//go:build e2e

package e2e_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/toolimage"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// The architectures that the tests run: one of them is emulated.
func architectures() []string { return []string{"amd64", "arm64"} }

const (
	openstackPackage = "github.com/radome-io/fleeting-plugin-openstack/cmd/fleeting-plugin-openstack"
	toolPackage      = "github.com/radome-io/fleeting-plugin-openstack/cmd/fleeting-plugin"
	dummyPackage     = "gitlab.com/gitlab-org/fleeting/fleeting/plugin/fleeting-plugin-dummy/cmd/fleeting-plugin-dummy"

	// openstackVersion is what our plugin is built and published as: the
	// version that the documentation's manifests name.
	openstackVersion = "0.2.0"
	// address of the registry. The runner looks up no plugin under a registry
	// with a port, so the port is that of HTTP, on an address of our own; and its
	// library asks without TLS where a name has 127.0.0.1 in it.
	address = "127.0.0.193:80"
	// owner is the path of our repositories, as in the documentation.
	owner = "radome-io"
)

// lab is a registry with what the tests need in it, and a folder for the rest.
type lab struct {
	dir      string
	registry *registrytest.Registry
	client   *ociregistry.Client
	report   *report
	// runners are all executables of GitLab Runner that a test is given.
	runners []string
	// signer signs what is published; publicKey verifies it.
	signer    *packager.Signer
	publicKey []byte

	openstack, dummy published
	// tool is our installer, as an image.
	tool published
	// guest is the image that stands in for the runner, and guestFile its
	// executable for this machine.
	guest, guestFile string
}

// published is a plugin in the registry.
type published struct {
	title   string
	image   string // "host/path", without a tag; bootstrap and config.toml are told the same
	version string
	digest  digest.Digest
}

// reference is the image by its version.
func (p published) reference() string { return p.image + ":" + p.version }

// folder is where the plugin lands below the plugin folder.
func (p published) folder() string { return filepath.Join(p.image, p.version) }

// newLab builds and publishes everything.
func newLab(t *testing.T, r *report) *lab {
	t.Helper()
	l := &lab{report: r, dir: labDir(t), registry: registrytest.New(t, registrytest.Listen(address))}
	client, err := ociregistry.NewClient(ociregistry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.client = client
	l.signer, l.publicKey = newSigner(t)
	l.report.check(t, "go", "build and publish our plugin", func(t *testing.T) {
		l.openstack = l.publish(t, "fleeting-plugin-openstack", openstackPackage, "-X main.version="+openstackVersion)
	})
	l.report.check(t, "go", "build and publish fleeting's dummy plugin", func(t *testing.T) {
		l.dummy = l.publish(t, "fleeting-plugin-dummy", dummyPackage, "")
	})
	l.report.check(t, "go", "build and publish the image of fleeting-plugin", l.publishTool)
	l.report.check(t, "go", "build the runner's stand-in", l.publishGuest)
	if t.Failed() {
		t.FailNow()
	}
	return l
}

// labDir is a short path: sockets of containers have limits of their own.
func labDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e-") //nolint:usetesting // its mounts must be undone before it is removed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(sweepContainers(dir), sweepProcesses(dir), unmountBelow(dir), os.RemoveAll(dir)); err != nil {
			t.Errorf("removing %s: %v", dir, err)
		}
	})
	return dir
}

// compile builds a static executable for linux.
func compile(t *testing.T, arch, ldflags, output, pkg string) {
	t.Helper()
	env := []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch}
	run(t, env, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w "+ldflags, "-o", output, pkg)
}

// publish builds a plugin, packages it and pushes it with our own packager.
func (l *lab) publish(t *testing.T, title, pkg, ldflags string) published {
	t.Helper()
	folder := filepath.Join(l.dir, "dist", title)
	for _, arch := range architectures() {
		plugin := filepath.Join(folder, "linux", arch, "plugin")
		compile(t, arch, ldflags, plugin, pkg)
		run(t, nil, "go", "run", toolPackage, "licenses", "--license", "../../../LICENSE", "--beside", plugin)
	}
	p := published{title: title, image: l.registry.Host + "/" + owner + "/" + title}
	p.version = reported(t, filepath.Join(folder, "linux", architectures()[0], "plugin"))
	version, err := packager.ParseVersion(p.version)
	if err != nil {
		t.Fatal(err)
	}
	scanned, err := dist.Scan(t.Context(), folder, dist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	repository, err := l.client.Repository(p.image)
	if err != nil {
		t.Fatal(err)
	}
	released, err := packager.Release(t.Context(), scanned, version, repository, packager.ReleaseOptions{
		PackOptions: packager.PackOptions{Metadata: packager.Metadata{Title: title}}, Signer: l.signer,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.digest = released.Digest
	return p
}

// publishTool makes the image of fleeting-plugin with its own builder and copies
// it to the registry.
func (l *lab) publishTool(t *testing.T) {
	l.tool = published{title: "fleeting-plugin", image: l.registry.Host + "/" + owner + "/fleeting-plugin", version: openstackVersion}
	license, err := toolimage.CertificatesLicense(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	opts := toolimage.Options{
		Version: openstackVersion, Created: time.Unix(0, 0), CertificatesLicense: license,
		Executables: map[string]string{}, Notices: map[string]string{},
	}
	for _, arch := range architectures() {
		file := filepath.Join(l.dir, "tool", arch)
		compile(t, arch, "-X main.version="+openstackVersion, file, toolPackage)
		writeFile(t, file+".txt", run(t, nil, "go", "run", toolPackage, "licenses", "--license", "../../../LICENSE", file))
		opts.Executables["linux/"+arch], opts.Notices["linux/"+arch] = file, file+".txt"
	}
	layout := filepath.Join(l.dir, "tool", "layout")
	index, err := toolimage.Build(t.Context(), layout, opts)
	if err != nil {
		t.Fatal(err)
	}
	l.tool.digest = index.Digest
	run(t, nil, "skopeo", "copy", "--quiet", "--all", "--preserve-digests", "--dest-tls-verify=false",
		"oci:"+layout+":"+openstackVersion, "docker://"+l.tool.reference())
	repository, err := l.client.Repository(l.tool.image)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := packager.Sign(t.Context(), repository, openstackVersion, l.signer, packager.SignOptions{}); err != nil {
		t.Fatal(err)
	}
}

// reported is the version that an executable says it is.
func reported(t *testing.T, executable string) string {
	t.Helper()
	for line := range strings.Lines(run(t, nil, executable, "version")) {
		if version, ok := strings.CutPrefix(line, "Version:"); ok {
			return strings.TrimPrefix(strings.TrimSpace(version), "v")
		}
	}
	t.Fatalf("%s tells no version", executable)
	return ""
}

// publishGuest compiles the test of package guest and makes an image of it that
// holds nothing else.
func (l *lab) publishGuest(t *testing.T) {
	index := v1.ImageIndex(empty.Index)
	for _, arch := range architectures() {
		file := filepath.Join(l.dir, "guest-"+arch)
		run(t, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch}, "go", "test", "-c", "-tags", "e2eguest", "-trimpath", "-ldflags", "-s -w", "-o", file, "./guest")
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        imageOf(t, arch, file, "guest", "/guest", "-test.v"),
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	l.guest, l.guestFile = l.registry.Host+"/guest:1", filepath.Join(l.dir, "guest-"+architectures()[0])
	reference, err := name.ParseReference(l.guest, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(reference, index, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// imageOf makes an image of one file and its command line.
func imageOf(t *testing.T, arch, source, file string, entrypoint ...string) v1.Image {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	content, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	header := &tar.Header{Name: file, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
	if err := w.WriteHeader(header); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.Entrypoint = "linux", arch, entrypoint
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// served fails unless the guest's output says that the plugin was served.
func served(t *testing.T, out string, p published, arch string) {
	t.Helper()
	if !strings.Contains(out, "--- PASS: TestPluginServes") || !strings.Contains(out, "SERVED") {
		t.Fatalf("the guest did not say that it passed:\n%s", out)
	}
	for line := range strings.Lines(out) {
		_, said, found := strings.Cut(line, "SERVED ")
		if !found {
			continue
		}
		if want := fmt.Sprintf("on linux/%s by", arch); !strings.Contains(said, want) || !strings.Contains(said, p.version) {
			t.Errorf("the guest served %q, want version %s %s", said, p.version, want)
		}
		t.Log(strings.TrimSpace(said))
	}
}

// serveHere runs the guest on this machine.
func (l *lab) serveHere(t *testing.T, p published, env ...string) {
	t.Helper()
	served(t, run(t, env, l.guestFile, "-test.v"), p, architectures()[0])
}

// unmountBelow undoes what container software leaves mounted in a folder.
func unmountBelow(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
			err = errors.Join(err, unmount(fields[1]))
		}
	}
	return err
}
