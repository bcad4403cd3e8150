package toolimage_test

import (
	"archive/tar"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/toolimage"
)

func options(t *testing.T) toolimage.Options {
	t.Helper()
	license, err := toolimage.CertificatesLicense(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	opts := toolimage.Options{
		Version: "1.2.3", Created: time.Unix(1_700_000_000, 0), CertificatesLicense: license,
		Executables: map[string]string{}, Notices: map[string]string{},
	}
	for _, platform := range []string{"linux/arm64", "linux/amd64", "linux/arm/v7"} {
		file := filepath.Join(t.TempDir(), "fleeting-plugin")
		if err := os.WriteFile(file, []byte("for "+platform), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file+".txt", []byte("licences for "+platform), 0o600); err != nil {
			t.Fatal(err)
		}
		opts.Executables[platform], opts.Notices[platform] = file, file+".txt"
	}
	return opts
}

func TestBuildIsReadByAnotherLibrary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	built, err := toolimage.Build(t.Context(), dir, options(t))
	if err != nil {
		t.Fatal(err)
	}
	root, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	index, err := root.ImageIndex(v1.Hash{Algorithm: built.Digest.Algorithm().String(), Hex: built.Digest.Encoded()})
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil { // digests, sizes, diff IDs, configs
		t.Error(err)
	}
	children, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, child := range children.Manifests {
		platforms = append(platforms, child.Platform.String())
		image, err := index.Image(child.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		got := []string{config.Config.User, config.Config.Entrypoint[0], config.OS + "/" + config.Architecture}
		if diff := cmp.Diff([]string{"65532:65532", "/fleeting-plugin", child.Platform.OS + "/" + child.Platform.Architecture}, got); diff != "" {
			t.Error(diff)
		}
		files := filesOf(t, image)
		if got, want := files["licenses/THIRD_PARTY_NOTICES.txt"], "licences for "+child.Platform.String(); got != want {
			t.Errorf("the licences in the image for %s: %q, want %q", child.Platform, got, want)
		}
		if got := files["licenses/ca-certificates.txt"]; !strings.Contains(got, "Mozilla Public License 2.0") || !strings.Contains(got, "The Go Authors") {
			t.Errorf("the licence of the certificates: %q", got)
		}
		if diff := cmp.Diff([]string{"etc/ssl/certs/ca-certificates.crt", "fleeting-plugin", "licenses/THIRD_PARTY_NOTICES.txt", "licenses/ca-certificates.txt"}, slices.Sorted(maps.Keys(files))); diff != "" {
			t.Errorf("files of the image for %s (-want +got):\n%s", child.Platform, diff)
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm/v7", "linux/arm64"}, platforms); diff != "" {
		t.Error(diff)
	}
}

// filesOf are the contents of the files in an image, by their names.
func filesOf(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	unpacked := mutate.Extract(image)
	defer unpacked.Close()
	files := map[string]string{}
	archive := tar.NewReader(unpacked)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(content)
	}
}

func TestBuildIsReproducible(t *testing.T) {
	t.Parallel()
	first, err := toolimage.Build(t.Context(), t.TempDir(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	second, err := toolimage.Build(t.Context(), t.TempDir(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*toolimage.Options)
		want   error
	}{
		"no executables":   {func(o *toolimage.Options) { o.Executables = nil }, toolimage.ErrInput},
		"no version":       {func(o *toolimage.Options) { o.Version = "" }, toolimage.ErrInput},
		"windows":          {func(o *toolimage.Options) { o.Executables["windows/amd64"] = "x" }, toolimage.ErrInput},
		"unknown platform": {func(o *toolimage.Options) { o.Executables["linux"] = "x" }, artifact.ErrPlatform},
		"missing file": {func(o *toolimage.Options) {
			o.Executables["linux/s390x"], o.Notices["linux/s390x"] = "missing", o.Notices["linux/amd64"]
		}, os.ErrNotExist},
		"no licences":                    {func(o *toolimage.Options) { delete(o.Notices, "linux/amd64") }, toolimage.ErrInput},
		"missing licences":               {func(o *toolimage.Options) { o.Notices["linux/amd64"] = "missing" }, os.ErrNotExist},
		"no licence of the certificates": {func(o *toolimage.Options) { o.CertificatesLicense = nil }, toolimage.ErrInput},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := options(t)
			test.change(&opts)
			if _, err := toolimage.Build(t.Context(), t.TempDir(), opts); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
