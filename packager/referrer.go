package packager

import (
	"bytes"
	"context"
	"fmt"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

func pushBlob(ctx context.Context, to Target, b blob, report func(Event)) error {
	uploaded, err := to.PushBlob(ctx, b.desc, func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.content)), nil
	})
	if err != nil {
		return fmt.Errorf("pushing blob %s: %w", b.desc.Digest, err)
	}
	report(blobEvent(b.desc, uploaded))
	return nil
}

// attach attaches documents to a manifest, all with one write where the registry
// lists them under a tag.
func attach(ctx context.Context, to Target, subject ocispec.Descriptor, documents []referrer, report func(Event)) error {
	if len(documents) == 0 {
		return nil
	}
	desc, content := artifact.EmptyConfig()
	var manifests []ociregistry.Manifest
	for _, d := range documents {
		said := report
		if d.document.desc.MediaType == artifact.MediaTypeBundle {
			said = func(Event) {} // signatures have events of their own
		}
		for _, b := range []blob{{desc, content}, d.document} {
			if err := pushBlob(ctx, to, b, said); err != nil {
				return err
			}
		}
		manifests = append(manifests, ociregistry.Manifest{Descriptor: d.manifest.desc, Content: d.manifest.content})
	}
	if err := to.Attach(ctx, subject, manifests...); err != nil {
		return err
	}
	for _, d := range documents {
		if d.document.desc.MediaType != artifact.MediaTypeBundle {
			report(Event{Kind: EventReferrer, Subject: subject.Digest.String(), Size: d.document.desc.Size})
		}
	}
	return nil
}
