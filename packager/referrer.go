package packager

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
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

// pushReferrer hangs a document off its subject.
func pushReferrer(ctx context.Context, to Target, r referrer, report func(Event)) error {
	desc, content := artifact.EmptyConfig()
	for _, b := range []blob{{desc, content}, r.document} {
		if err := pushBlob(ctx, to, b, report); err != nil {
			return err
		}
	}
	if err := to.PushManifest(ctx, r.manifest.desc, r.manifest.content); err != nil {
		return fmt.Errorf("attaching %s to %s: %w", r.document.desc.MediaType, r.subject.Digest, err)
	}
	report(Event{Kind: EventReferrer, Subject: r.subject.Digest.String(), Size: r.document.desc.Size})
	return nil
}
