package trust

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/jsonbound"
	"github.com/radome-io/fleeting-plugin-openstack/internal/sigstore"
)

// claim is what a piece of evidence says and how it is signed: read, and not
// verified.
type claim struct {
	format    Format
	signature *sigstore.Signature
	statement statement     // of an envelope
	simple    simpleSigning // of anything else
}

func parseClaim(ev Evidence) (c claim, err error) {
	c.format = ev.Format
	switch ev.Format {
	case FormatBundle:
		err = c.parseBundle(ev.Payload)
	case FormatDSSE:
		err = c.parseEnvelope(ev.Payload)
	default:
		err = c.parseSimpleSigning(ev.Payload, ev.Annotations[artifact.AnnotationSignature])
	}
	if err != nil || ev.Format == FormatBundle {
		return c, err
	}
	if err := c.signature.ReadAnnotations(ev.Annotations); err != nil {
		return c, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return c, nil
}

// parseBundle reads a sigstore bundle.
func (c *claim) parseBundle(payload []byte) (err error) {
	c.signature, err = sigstore.ParseBundle(payload)
	switch {
	case errors.Is(err, sigstore.ErrUnsupportedBundle):
		return fmt.Errorf("%w: %w", ErrUnsupportedFormat, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	case c.signature.Envelope == nil:
		return because(ErrUnsupportedFormat, "a bundle without a DSSE envelope makes no statement")
	}
	c.statement, err = decodeStatement(c.signature.Envelope)
	return err
}

// parseEnvelope reads a layer of an `.att` manifest.
func (c *claim) parseEnvelope(payload []byte) (err error) {
	if err := jsonbound.Check(payload, maxValues); err != nil {
		return fmt.Errorf("%w: envelope: %w", ErrMalformed, err)
	}
	var envelope dsse.Envelope
	if err := json.Unmarshal(payload, &envelope); err != nil {
		return fmt.Errorf("%w: envelope: %w", ErrMalformed, err)
	}
	c.signature = &sigstore.Signature{Envelope: &envelope, Encoded: payload}
	c.statement, err = decodeStatement(&envelope)
	return err
}

// parseSimpleSigning reads a layer of a `.sig` manifest.
func (c *claim) parseSimpleSigning(payload []byte, signature string) error {
	if signature == "" {
		return because(ErrMalformed, "no annotation %s", artifact.AnnotationSignature)
	}
	value, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return fmt.Errorf("%w: signature: %w", ErrMalformed, err)
	}
	c.signature = &sigstore.Signature{Value: value, Message: payload}
	c.simple, err = decodeSimpleSigning(payload)
	return err
}

// about refuses a claim that does not name the digest.
func (c claim) about(subject digest.Digest) error {
	if c.signature.Envelope != nil {
		return c.statement.about(subject)
	}
	return c.simple.about(subject)
}

// verified is what is reported of the claim once it is verified.
func (c claim) verified(subject digest.Digest, signer Signer) Verified {
	v := Verified{subject: subject, format: c.format, kind: KindSignature, signer: signer}
	if c.signature.Envelope == nil {
		return v
	}
	v.kind, v.predicateType = KindAttestation, c.statement.PredicateType
	v.document = DocumentDigest(c.statement.Predicate)
	if v.predicateType == artifact.PredicateProvenance {
		v.predicate = c.statement.Predicate
	}
	if c.format == FormatBundle {
		v.name = c.statement.nameOf(subject)
		if v.predicateType == artifact.PredicateSignature {
			v.kind = KindSignature
		}
	}
	return v
}

// Subjects are the sha256 digests that a bundle says it is about. Nothing of that
// is verified: it is for leaving out what is about something else. Errors are
// [ErrMalformed] and [ErrUnsupportedFormat].
func (ev Evidence) Subjects() (subjects []digest.Digest, err error) {
	if err := ev.check(); err != nil {
		return nil, err
	}
	if ev.Format != FormatBundle {
		return nil, because(ErrUnsupportedFormat, "%s", ev.Format)
	}
	err = guard(func() error {
		c, err := parseClaim(ev)
		if err != nil {
			return err
		}
		for _, s := range c.statement.Subject {
			d := digest.NewDigestFromEncoded(digest.SHA256, s.Digest[digest.SHA256.String()])
			if d.Validate() == nil {
				subjects = append(subjects, d)
			}
		}
		return nil
	})
	return subjects, err
}
