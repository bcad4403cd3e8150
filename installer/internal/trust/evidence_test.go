package trust_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	"github.com/sigstore/cosign/v2/pkg/oci/static"
	"github.com/sigstore/cosign/v2/pkg/types"
	"github.com/sigstore/sigstore/pkg/signature/payload"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// The format package may not import cosign, so that it repeats cosign's names.
func TestCosignsNames(t *testing.T) {
	t.Parallel()
	d := digest.FromString("")
	ours := []string{
		artifact.AnnotationSignature, artifact.AnnotationCertificate, artifact.AnnotationChain,
		artifact.AnnotationLogEntry, artifact.AnnotationTimestamp,
		artifact.MediaTypeSimpleSigning, artifact.MediaTypeDSSE, artifact.MediaTypeBundle,
		artifact.PredicateSignature, artifact.PayloadTypeStatement, artifact.TypeSimpleSigning,
		artifact.SignatureTag(d), artifact.AttestationTag(d),
	}
	theirs := []string{
		static.SignatureAnnotationKey, static.CertificateAnnotationKey, static.ChainAnnotationKey,
		static.BundleAnnotationKey, static.RFC3161TimestampAnnotationKey,
		types.SimpleSigningMediaType, types.DssePayloadType, trusttest.MediaTypeBundle,
		types.CosignSignPredicateType, types.IntotoPayloadType, payload.CosignSignatureType,
		trusttest.Tag(d, "sig"), trusttest.Tag(d, "att"),
	}
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("(-cosign's +ours):\n%s", diff)
	}
}

func TestFormatOf(t *testing.T) {
	t.Parallel()
	for mediaType, want := range map[string]trust.Format{
		"application/vnd.dev.cosign.simplesigning.v1+json":        trust.FormatSimpleSigning,
		"application/vnd.dsse.envelope.v1+json":                   trust.FormatDSSE,
		"application/vnd.dev.sigstore.bundle.v0.3+json":           trust.FormatBundle,
		"application/vnd.dev.sigstore.bundle+json;version=0.2":    trust.FormatBundle,
		"application/vnd.dev.sigstore.bundles+json":               0,
		"application/vnd.dev.sigstore.bundle":                     0,
		"text/vnd.dev.cosign.simplesigning.v1+json":               0,
		"application/vnd.oci.image.layer.v1.tar+gzip":             0,
		"application/vnd.dev.cosign.simplesigning.v1+json; x=y":   0,
		"application/vnd.dev.sigstore.bundle.v0.3+json;version=1": trust.FormatBundle,
	} {
		if got, ok := trust.FormatOf(mediaType); got != want || ok != (want != 0) {
			t.Errorf("%s: %v, %v, want %v", mediaType, got, ok, want)
		}
	}
}
