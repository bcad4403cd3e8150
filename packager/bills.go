package packager

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/notices"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// describe reads the executable of a platform for its bill of materials. The
// digests come with the layer.
func describe(in dist.Input, other sbom.Licenses) (sbom.Executable, error) {
	licenses, err := licensesOf(in, other)
	if err != nil {
		return sbom.Executable{}, err
	}
	bin := in.Executable()
	exe, err := sbom.ReadFile(bin.Path(), sbom.Options{SkipDigest: true, Licenses: licenses})
	if err != nil && !errors.Is(err, sbom.ErrNoBuildInfo) {
		return exe, &dist.InputError{Path: bin.Path(), Problem: "cannot be read", Err: err}
	}
	exe.Name = bin.Name()
	exe.Platform = in.Platform().String()
	return exe, nil
}

// withDigests completes the description of an executable with what was read for its
// layer.
func withDigests(exe sbom.Executable, files []LayerFile) sbom.Executable {
	exe.Files = nil
	for _, f := range files {
		if f.Name == exe.Name {
			exe.SHA256 = f.Digest.Encoded()
		} else {
			exe.Files = append(exe.Files, sbom.File{Name: f.Name, SHA256: f.Digest.Encoded()})
		}
	}
	return exe
}

// buildSBOMs makes both documents for every platform and for the whole.
func (b *built) buildSBOMs(opts PackOptions) error {
	all := make([]sbom.Executable, len(b.platforms))
	for i, p := range b.platforms {
		p.executable.Platform = p.platform.String()
		all[i] = p.executable
		if err := b.addSBOMs(p.manifest.desc, opts, p.executable); err != nil {
			return fmt.Errorf("bill of materials for %s: %w", p.platform, err)
		}
	}
	if err := b.addSBOMs(b.index.desc, opts, all...); err != nil {
		return fmt.Errorf("bill of materials: %w", err)
	}
	return nil
}

func (b *built) addSBOMs(subject ocispec.Descriptor, opts PackOptions, executables ...sbom.Executable) error {
	doc, err := sbom.New(sbom.Info{
		Name:    cmp.Or(b.metadata.Title, executables[0].Main.Path, "fleeting-plugin"),
		Version: b.version.String(), Supplier: b.metadata.Vendor, License: b.metadata.Licenses, Created: b.metadata.moment(),
		Tool: cmp.Or(opts.Tool, "fleeting-plugin"), ToolVersion: opts.ToolVersion,
	}, executables...)
	if err != nil {
		return err
	}
	annotations := map[string]string{}
	if created, ok := b.metadata.annotations(b.version)[ocispec.AnnotationCreated]; ok {
		annotations[ocispec.AnnotationCreated] = created
	}
	for _, format := range []struct {
		mediaType string
		encode    func() ([]byte, error)
	}{
		{artifact.MediaTypeSPDX, doc.SPDX},
		{artifact.MediaTypeCycloneDX, doc.CycloneDX},
	} {
		content, err := format.encode()
		if err != nil {
			return err
		}
		d := document{subject: subject, content: blob{artifact.Describe(format.mediaType, content), content}}
		d.manifest.desc, d.manifest.content, err = artifact.EncodeReferrer(artifact.ReferrerInput{
			Subject: subject, ArtifactType: format.mediaType, Layer: d.content.desc,
			Annotations: annotations,
		})
		if err != nil {
			return err
		}
		b.documents = append(b.documents, d)
	}
	return nil
}

// noticesLimit bounds how much of a companion is read for licences, in bytes. The
// table that says them is at its beginning.
const noticesLimit = 4 << 20

// licensesOf are those that the companion THIRD_PARTY_NOTICES.txt says, and where it
// says nothing, those of another source. The file was made where the executable was
// built; the module cache may not be there where it is published.
func licensesOf(in dist.Input, other sbom.Licenses) (sbom.Licenses, error) {
	files := in.Files()
	i := slices.IndexFunc(files, func(f dist.File) bool { return f.Name() == notices.FileName })
	if i < 0 {
		return other, nil
	}
	f, err := os.Open(files[i].Path())
	if err != nil {
		return nil, &dist.InputError{Path: files[i].Path(), Problem: "cannot be read", Err: err}
	}
	defer f.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(f, noticesLimit))
	if err != nil {
		return nil, &dist.InputError{Path: files[i].Path(), Problem: "cannot be read", Err: err}
	}
	return firstOf{notices.ParseLicenses(text), other}, nil
}

// firstOf asks two sources, the second if the first knows nothing.
type firstOf struct {
	notices notices.Licenses
	other   sbom.Licenses
}

func (f firstOf) License(path, version string) string {
	if found := f.notices.License(path, version); found != "" || f.other == nil {
		return found
	}
	return f.other.License(path, version)
}

// reportUnknown reports the modules whose licence the bills of materials will not
// say, in one event.
func (o PackOptions) reportUnknown(executables []sbom.Executable) {
	var unknown []string
	for _, exe := range executables {
		for _, m := range exe.Modules {
			if m.License == "" {
				unknown = append(unknown, strings.TrimSuffix(m.Path+"@"+m.Version, "@"))
			}
		}
	}
	slices.Sort(unknown)
	unknown = slices.Compact(unknown)
	if len(unknown) == 0 {
		return
	}
	const most = 3
	subject := strings.Join(unknown[:min(most, len(unknown))], ", ")
	if more := len(unknown) - most; more > 0 {
		subject = fmt.Sprintf("%s and %d more", subject, more)
	}
	o.Report(Event{Kind: EventUnlicensed, Subject: subject})
}
