package installer

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/internal/contextio"
)

// Bundle is a sigstore bundle with a statement about files, read and not yet
// verified. [ReadBundles] makes it.
type Bundle struct {
	evidence trust.Evidence
	subjects []digest.Digest
}

const (
	// maxBundles bounds the bundles in one file, maxBundle each of them and
	// maxBundlesFile all together, in bytes.
	maxBundles     = 256
	maxBundle      = trust.MaxPayload
	maxBundlesFile = 64 << 20
)

// ReadBundles reads sigstore bundles, version 0.1 to 0.3: one, or several one
// after the other as `gh attestation download` writes them, 256 at most and 64 MiB
// together. Origin is the file's name, for messages.
//
// One that cannot be read spoils them all: whoever meant it to count could not
// tell otherwise. Errors of that kind match [ErrRefused] (bundle), others are the reader's.
func ReadBundles(r io.Reader, origin string) ([]Bundle, error) {
	limited := &io.LimitedReader{R: r, N: maxBundlesFile + 1}
	decoder := json.NewDecoder(limited)
	var bundles []Bundle
	for {
		var payload json.RawMessage
		err := decoder.Decode(&payload)
		if limited.N <= 0 {
			return nil, fmt.Errorf("%s: %w: longer than %d bytes", origin, errBundle, maxBundlesFile)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if isReading(err) {
			return nil, err
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", origin, errBundle, err)
		}
		if len(bundles) == maxBundles || len(payload) > maxBundle {
			return nil, fmt.Errorf("%s: %w: more than %d bundles, or one of more than %d bytes", origin, errBundle, maxBundles, maxBundle)
		}
		b := Bundle{evidence: trust.Evidence{Format: trust.FormatBundle, Payload: payload, Origin: origin}}
		if b.subjects, err = b.evidence.Subjects(); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", origin, errBundle, err)
		}
		bundles = append(bundles, b)
	}
	if len(bundles) == 0 {
		return nil, fmt.Errorf("%s: %w: empty", origin, errBundle)
	}
	return bundles, nil
}

// isReading tells an error of the reader from one of what was read.
func isReading(err error) bool {
	var syntax *json.SyntaxError
	return err != nil && !errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF)
}

// VerifiedFile is a file that the policy allows.
type VerifiedFile struct {
	// Digest is that of the content, Size in bytes.
	Digest digest.Digest `json:"digest"`
	Size   int64         `json:"size"`
	// Name is what the attestation calls the file, which need not be what it is
	// called now.
	Name string `json:"name,omitempty"`
	// Verification says why.
	Verification Verification `json:"verification"`
}

// VerifyFile holds a file that is in no registry, such as one that a forge shows
// with a release, against the rule for a reference: by whoever may sign that
// plugin, a bundle must vouch for exactly this content with a SLSA provenance
// that meets the rule's conditions on provenance. Packager's AttestFiles makes
// such bundles, and so does GitHub's action attest-build-provenance.
//
// Of the rule, a provenance counts as a signature, threshold and minimum age
// included; bills of materials are not asked for; denied digests are of files, and
// denied versions are those of the tag that the provenance names. A rule that
// verifies nothing is refused. Bundles about other files are passed over, and one
// that is refused does not spoil one that is not.
//
// The file is read once, to its end, and in no more memory for being large.
// Nothing is asked over the network. Refusals match [ErrRefused], and
// [ErrRefused] (not-attested) if no bundle is about the file.
func (i *Installer) VerifyFile(ctx context.Context, as Reference, file io.Reader, bundles ...Bundle) (VerifiedFile, error) {
	if as.IsZero() {
		return VerifiedFile{}, fmt.Errorf("%w: empty", errInvalidReference)
	}
	rule, err := i.policy.ruleFor(as.Name())
	if err != nil {
		return VerifiedFile{}, err
	}
	if rule.unsafe {
		return VerifiedFile{}, fmt.Errorf("%w: the rule for %s verifies nothing", ErrRefused, as.Name())
	}
	sum := sha256.New()
	var v VerifiedFile
	if v.Size, err = io.Copy(sum, contextio.Reader(ctx, file)); err != nil {
		return VerifiedFile{}, err
	}
	v.Digest = digest.NewDigest(digest.SHA256, sum)
	var found []trust.Evidence
	for _, b := range bundles {
		if slices.Contains(b.subjects, v.Digest) {
			found = append(found, b.evidence)
		}
	}
	accepted, err := rule.requirements.JudgeFile(ctx, v.Digest, found, i.now())
	if err != nil {
		return VerifiedFile{}, refusedError(err)
	}
	v.Name = accepted[0].Name()
	v.Verification = Verification{Rule: rule.scope.text, Policy: rule.fingerprint(), Covers: v.Digest}
	for _, verified := range accepted {
		v.Verification.Evidence = append(v.Verification.Evidence, describeEvidence(verified))
	}
	return v, nil
}
