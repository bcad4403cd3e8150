package sigstore

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	tilesnote "github.com/sigstore/rekor-tiles/v2/pkg/note"
	tilesverify "github.com/sigstore/rekor-tiles/v2/pkg/verify"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/signature"
	formats "github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
)

// Logged is a verified entry in a transparency log.
type Logged struct {
	// Index is the entry's index in the log.
	Index int64
	// Time is when the log took the entry, zero if the log does not vouch for a
	// time: a version 2 log, or an entry without a promise.
	Time time.Time
}

// UnknownLogError reports that a signature is entered in logs, but in none that
// the trust material has.
type UnknownLogError struct {
	// Log is the first log, by the SHA-256 of its key in hexadecimal.
	Log string
}

func (e *UnknownLogError) Error() string { return "entered in a log that is not trusted: " + e.Log }

// VerifyLog verifies the signature's entries in the transparency logs that the
// material trusts, and returns them, at least one. Entries in other logs are
// skipped; if there are no others, the error is an [*UnknownLogError]. An entry
// in a trusted log that does not verify, or that is about something else, is an
// error whatever the other entries are.
func VerifyLog(s *Signature, by *Verifier, material root.TrustedMaterial) ([]Logged, error) {
	if len(s.Entries) == 0 {
		return nil, errors.New("no log entry")
	}
	logs := material.RekorLogs()
	var found []Logged
	for i, e := range s.Entries {
		for _, before := range s.Entries[:i] {
			if e.GetLogIndex() == before.GetLogIndex() && bytes.Equal(e.GetLogId().GetKeyId(), before.GetLogId().GetKeyId()) {
				return nil, errors.New("the same log entry twice")
			}
		}
		log := logs[logID(e)]
		if log == nil {
			continue
		}
		logged, err := verifyEntry(s, by, e, log)
		if err != nil {
			return nil, err
		}
		found = append(found, logged)
	}
	if len(found) == 0 {
		return nil, &UnknownLogError{Log: logID(s.Entries[0])}
	}
	return found, nil
}

func logID(e *protorekor.TransparencyLogEntry) string {
	return hex.EncodeToString(e.GetLogId().GetKeyId())
}

func verifyEntry(s *Signature, by *Verifier, e *protorekor.TransparencyLogEntry, log *root.TransparencyLog) (Logged, error) {
	body, err := readEntry(e.GetCanonicalizedBody())
	if err != nil {
		return Logged{}, err
	}
	logged := Logged{Index: e.GetLogIndex()}
	if body.tiled {
		err = verifyTiled(s, by, e, log)
	} else {
		logged.Time, err = verifyRekor1(s, by, e, body, log)
	}
	if err != nil {
		return Logged{}, err
	}
	return logged, by.validAt(e.GetIntegratedTime())
}

// verifyRekor1 verifies an entry of a version 1 log: what the log says of it, and
// that it is about the signature. The time is zero without a promise.
func verifyRekor1(s *Signature, by *Verifier, e *protorekor.TransparencyLogEntry, body entry, log *root.TransparencyLog) (at time.Time, err error) {
	promised := len(e.GetInclusionPromise().GetSignedEntryTimestamp()) > 0
	if !promised && e.GetInclusionProof() == nil {
		return time.Time{}, errors.New("a log entry without a proof of its inclusion")
	}
	if promised {
		if err := verifyPromise(e, log); err != nil {
			return time.Time{}, err
		}
		at = time.Unix(e.GetIntegratedTime(), 0)
	}
	if e.GetInclusionProof() != nil {
		if err := verifyInclusion(e, log); err != nil {
			return time.Time{}, err
		}
	}
	return at, body.about(s, by)
}

// validAt refuses a time, in seconds, that is outside the certificate's, if there
// is one.
func (v *Verifier) validAt(seconds int64) error {
	if v.certificate == nil || seconds == 0 {
		return nil
	}
	at := time.Unix(seconds, 0)
	if at.Before(v.certificate.NotBefore) || at.After(v.certificate.NotAfter) {
		return fmt.Errorf("entered in the log at %s, certificate valid from %s to %s",
			at.UTC().Format(time.RFC3339), v.certificate.NotBefore.Format(time.RFC3339), v.certificate.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// verifyPromise verifies the signed entry timestamp of a version 1 log.
func verifyPromise(e *protorekor.TransparencyLogEntry, log *root.TransparencyLog) error {
	at := time.Unix(e.GetIntegratedTime(), 0)
	if log.ValidityPeriodStart.IsZero() || at.Before(log.ValidityPeriodStart) || (!log.ValidityPeriodEnd.IsZero() && at.After(log.ValidityPeriodEnd)) {
		return errors.New("the log's key was not valid when the entry was made")
	}
	key, ok := log.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return fmt.Errorf("promises of a log with a key of type %T are not supported", log.PublicKey)
	}
	// Canonical JSON (RFC 8785): the fields are sorted, and no text needs escapes.
	promise, err := json.Marshal(struct {
		Body           []byte `json:"body"`
		IntegratedTime int64  `json:"integratedTime"`
		LogID          string `json:"logID"`
		LogIndex       int64  `json:"logIndex"`
	}{e.GetCanonicalizedBody(), e.GetIntegratedTime(), logID(e), e.GetLogIndex()})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(promise)
	if !ecdsa.VerifyASN1(key, sum[:], e.GetInclusionPromise().GetSignedEntryTimestamp()) {
		return errors.New("the log's promise does not verify")
	}
	return nil
}

// verifyInclusion verifies checkpoint and inclusion proof of a version 1 log.
// Its entries have two indices: the proof's is the one in the checkpoint's tree.
func verifyInclusion(e *protorekor.TransparencyLogEntry, log *root.TransparencyLog) error {
	verifier, err := newCheckpointVerifier(log)
	if err != nil {
		return err
	}
	p := e.GetInclusionProof()
	opened, err := note.Open([]byte(p.GetCheckpoint().GetEnvelope()), verifier)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	var tree formats.Checkpoint
	if _, err := tree.Unmarshal([]byte(opened.Text)); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if p.GetLogIndex() < 0 || p.GetTreeSize() < 0 || uint64(p.GetTreeSize()) != tree.Size || !bytes.Equal(p.GetRootHash(), tree.Hash) { //nolint:gosec // not negative
		return errors.New("the inclusion proof is about another tree than its checkpoint")
	}
	leaf := rfc6962.DefaultHasher.HashLeaf(e.GetCanonicalizedBody())
	err = proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(p.GetLogIndex()), tree.Size, leaf, p.GetHashes(), tree.Hash) //nolint:gosec // not negative
	if err != nil {
		return fmt.Errorf("inclusion: %w", err)
	}
	return nil
}

// checkpointVerifier verifies checkpoints of a version 1 log. It knows the log by
// its key: the name in the note is that of the host the log runs on, which the
// trusted root does not have.
type checkpointVerifier struct {
	key  signature.Verifier
	hash uint32
	name string
}

func newCheckpointVerifier(log *root.TransparencyLog) (checkpointVerifier, error) {
	key, err := signature.LoadVerifier(log.PublicKey, signatureHash(log))
	if err != nil {
		return checkpointVerifier{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(log.PublicKey)
	if err != nil {
		return checkpointVerifier{}, err
	}
	sum := sha256.Sum256(der)
	return checkpointVerifier{key: key, hash: binary.BigEndian.Uint32(sum[:])}, nil
}

func signatureHash(log *root.TransparencyLog) crypto.Hash {
	if log.SignatureHashFunc == crypto.Hash(0) {
		return crypto.SHA256
	}
	return log.SignatureHashFunc
}

// Verifier implements note.Verifiers.
func (c checkpointVerifier) Verifier(name string, hash uint32) (note.Verifier, error) {
	if hash != c.hash {
		return nil, &note.UnknownVerifierError{Name: name, KeyHash: hash}
	}
	c.name = name
	return c, nil
}

// Name implements note.Verifier.
func (c checkpointVerifier) Name() string { return c.name }

// KeyHash implements note.Verifier.
func (c checkpointVerifier) KeyHash() uint32 { return c.hash }

// Verify implements note.Verifier.
func (c checkpointVerifier) Verify(msg, sig []byte) bool {
	return c.key.VerifySignature(bytes.NewReader(sig), bytes.NewReader(msg)) == nil
}

// verifyTiled verifies that a version 2 log holds the entry that this signature
// has, whatever the body beside it says.
func verifyTiled(s *Signature, by *Verifier, e *protorekor.TransparencyLogEntry, log *root.TransparencyLog) error {
	switch {
	case len(e.GetInclusionPromise().GetSignedEntryTimestamp()) > 0:
		return errors.New("a promise for an entry of a version 2 log, which makes none")
	case e.GetInclusionProof() == nil:
		return errors.New("a log entry without a proof of its inclusion")
	}
	base, err := url.Parse(log.BaseURL)
	if err != nil {
		return fmt.Errorf("address of the log: %w", err)
	}
	key, err := signature.LoadVerifier(log.PublicKey, signatureHash(log))
	if err != nil {
		return err
	}
	verifier, err := tilesnote.NewNoteVerifier(base.Hostname(), key)
	if err != nil {
		return fmt.Errorf("the log with address %q: %w", log.BaseURL, err)
	}
	body, err := tiledEntry(s, by)
	if err != nil {
		return err
	}
	return tilesverify.VerifyLogEntryWithHash(e, verifier, rfc6962.DefaultHasher.HashLeaf(body))
}
