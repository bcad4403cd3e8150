// Package toolimage makes the container image of fleeting-plugin: an OCI image
// index whose images hold the executable, the licences of what is in it, the root
// certificates that it needs to speak to registries, and nothing else; no shell, no package manager, no
// user database. It runs as user 65532 unless told otherwise, and needs no
// file of its own to be writable.
//
// The same executables, version and time give the same bytes. The package
// publishes plugins' images no more than packager makes this one.
package toolimage

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/notices"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

const (
	executablePath   = "fleeting-plugin"
	certificatesPath = "etc/ssl/certs/ca-certificates.crt"
	// licensesDir is where scanners of images look for texts.
	licensesDir = "licenses/"
	// user is neither root nor anybody's: runAsNonRoot is content with it.
	user = "65532:65532"
	// compression is the level of packager's layers.
	compression = 5
)

// ErrInput says that there is nothing to make an image of.
var ErrInput = errors.New("invalid input")

// Options say what goes into the image.
type Options struct {
	// Executables maps platforms ("linux/arm64", "linux/arm/v7") to static
	// executables. Only Linux has images without a base.
	Executables map[string]string
	// Notices maps the same platforms to the licences of everything in their
	// executables. There is one for each.
	Notices map[string]string
	// CertificatesLicense is the licence of the root certificates; see the function
	// of that name.
	CertificatesLicense []byte
	// Version becomes the tag of the layout, and an annotation.
	Version string
	// Revision is the commit that was built, or "".
	Revision string
	// Source is a link to the code, or "".
	Source string
	// Created is the time that everything in the image carries.
	Created time.Time
}

func (o Options) annotations() map[string]string {
	all := map[string]string{
		ocispec.AnnotationTitle:       "fleeting-plugin",
		ocispec.AnnotationDescription: "Installs and publishes plugins for GitLab Runner's fleeting",
		ocispec.AnnotationVersion:     o.Version,
		ocispec.AnnotationRevision:    o.Revision,
		ocispec.AnnotationSource:      o.Source,
		ocispec.AnnotationLicenses:    "MIT",
		ocispec.AnnotationCreated:     o.Created.UTC().Format(time.RFC3339),
	}
	for key, value := range all {
		if value == "" {
			delete(all, key)
		}
	}
	return all
}

// Build writes the image into an OCI layout in the folder dir, tagged with the
// version, and returns the descriptor of its index. The errors are [ErrInput],
// artifact.ErrPlatform, or of the file system.
func Build(ctx context.Context, dir string, opts Options) (ocispec.Descriptor, error) {
	if len(opts.Executables) == 0 || opts.Version == "" {
		return ocispec.Descriptor{}, fmt.Errorf("%w: executables and a version are needed", ErrInput)
	}
	if len(opts.CertificatesLicense) == 0 {
		return ocispec.Descriptor{}, fmt.Errorf("%w: there is no licence of the certificates", ErrInput)
	}
	layout, err := ociregistry.CreateLayout(ctx, dir)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	roots, err := certificatesLayer(opts)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	var platforms []artifact.Platform
	paths, texts := map[artifact.Platform]string{}, map[artifact.Platform]string{}
	for name, path := range opts.Executables {
		platform, err := artifact.ParsePlatform(name)
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		if platform.OS() != "linux" {
			return ocispec.Descriptor{}, fmt.Errorf("%w: %s: images without a base are for linux", ErrInput, name)
		}
		if opts.Notices[name] == "" {
			return ocispec.Descriptor{}, fmt.Errorf("%w: %s: there are no licences of what is in it", ErrInput, name)
		}
		platforms, paths[platform], texts[platform] = append(platforms, platform), path, opts.Notices[name]
	}
	slices.SortFunc(platforms, artifact.Platform.Compare)
	var images []ocispec.Descriptor
	for _, platform := range platforms {
		executable, err := executableLayer(paths[platform], texts[platform], opts.Created)
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		image, err := pushImage(ctx, layout, platform, opts, roots, executable)
		if err != nil {
			return ocispec.Descriptor{}, fmt.Errorf("image for %s: %w", platform, err)
		}
		images = append(images, image)
	}
	index, content, err := artifact.EncodeIndex(images, opts.annotations())
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return index, layout.PushManifest(ctx, index, content, opts.Version)
}

// layer is one in memory: the descriptor of its compressed form, that form, and
// the digest of the tar stream.
type layer struct {
	desc    ocispec.Descriptor
	content []byte
	diffID  digest.Digest
}

func executableLayer(path, texts string, created time.Time) (layer, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return layer{}, err
	}
	licenses, err := os.ReadFile(texts)
	if err != nil {
		return layer{}, err
	}
	return newLayer(created, entry{executablePath, 0o755, content}, entry{licensesDir + notices.FileName, 0o644, licenses})
}

// certificatesLayer holds the roots that Mozilla trusts, as the Go project
// packages them, and their licence.
func certificatesLayer(opts Options) (layer, error) {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if err := pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return layer{}, err
		}
	}
	return newLayer(opts.Created, entry{certificatesPath, 0o644, all.Bytes()}, entry{licensesDir + "ca-certificates.txt", 0o644, opts.CertificatesLicense})
}

// certificates is the module that the certificates come from.
const certificates = "golang.org/x/crypto/x509roots/fallback"

// CertificatesLicense returns the licence of the root certificates that this program
// is built with, from the module that the go.mod of the current folder names. The
// error is [notices.ErrNoText], or that of the go command.
func CertificatesLicense(ctx context.Context) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-mod=readonly", "-m", "-f", "{{.Version}} {{.Dir}}", certificates)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("asking the go command for %s: %w", certificates, err)
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	text, err := os.ReadFile(filepath.Join(dir, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("%w: %s@%s: %w", notices.ErrNoText, certificates, version, err)
	}
	head := fmt.Sprintf(`/%s has the root certificates that Mozilla
includes in NSS (lib/ckfw/builtins/certdata.txt at
https://hg.mozilla.org/projects/nss), under the Mozilla Public License 2.0
(https://www.mozilla.org/MPL/2.0/). They were taken, unchanged, from the Go module
%s %s,
which is under this licence:

`, certificatesPath, certificates, version)
	return append([]byte(head), text...), nil
}

type entry struct {
	name    string
	mode    int64
	content []byte
}

// newLayer packs files, each below the folders that lead to it.
func newLayer(created time.Time, files ...entry) (layer, error) {
	var archive, packed bytes.Buffer
	w := tar.NewWriter(&archive)
	header := func(kind byte, name string, mode, size int64) error {
		return w.WriteHeader(&tar.Header{Typeflag: kind, Name: name, Mode: mode, Size: size, ModTime: created, Format: tar.FormatUSTAR})
	}
	for _, file := range files {
		for i, c := range file.name {
			if c != '/' {
				continue
			}
			if err := header(tar.TypeDir, file.name[:i+1], 0o755, 0); err != nil {
				return layer{}, err
			}
		}
		if err := header(tar.TypeReg, file.name, file.mode, int64(len(file.content))); err != nil {
			return layer{}, err
		}
		if _, err := w.Write(file.content); err != nil {
			return layer{}, err
		}
	}
	if err := w.Close(); err != nil {
		return layer{}, err
	}
	z, err := gzip.NewWriterLevel(&packed, compression)
	if err != nil {
		return layer{}, err
	}
	if _, err := z.Write(archive.Bytes()); err != nil {
		return layer{}, err
	}
	if err := z.Close(); err != nil {
		return layer{}, err
	}
	return layer{
		desc: artifact.Describe(ocispec.MediaTypeImageLayerGzip, packed.Bytes()), content: packed.Bytes(),
		diffID: digest.FromBytes(archive.Bytes()),
	}, nil
}

// pushImage stores the image of one platform and returns its entry for the
// index.
func pushImage(ctx context.Context, layout *ociregistry.Layout, platform artifact.Platform, opts Options, layers ...layer) (ocispec.Descriptor, error) {
	oci, created := platform.OCI(), opts.Created.UTC()
	config := ocispec.Image{Created: &created, Platform: oci, Config: ocispec.ImageConfig{
		User: user, Entrypoint: []string{"/" + executablePath}, Labels: opts.annotations(),
	}}
	config.RootFS.Type = "layers"
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Annotations: opts.annotations(),
	}
	for _, one := range layers {
		if err := pushBytes(ctx, layout, one.desc, one.content); err != nil {
			return ocispec.Descriptor{}, err
		}
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, one.diffID)
		config.History = append(config.History, ocispec.History{Created: &created, CreatedBy: strings.Join([]string{"fleeting-plugin", opts.Version}, " ")})
		manifest.Layers = append(manifest.Layers, one.desc)
	}
	content, err := json.Marshal(config)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	manifest.Config = artifact.Describe(ocispec.MediaTypeImageConfig, content)
	if err := pushBytes(ctx, layout, manifest.Config, content); err != nil {
		return ocispec.Descriptor{}, err
	}
	if content, err = json.Marshal(manifest); err != nil {
		return ocispec.Descriptor{}, err
	}
	desc := artifact.Describe(ocispec.MediaTypeImageManifest, content)
	if err := layout.PushManifest(ctx, desc, content); err != nil {
		return ocispec.Descriptor{}, err
	}
	desc.Platform = &oci
	return desc, nil
}

func pushBytes(ctx context.Context, layout *ociregistry.Layout, desc ocispec.Descriptor, content []byte) error {
	_, err := layout.PushBlob(ctx, desc, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	return err
}
