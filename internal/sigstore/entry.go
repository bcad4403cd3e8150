package sigstore

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/options"

	"github.com/radome-io/fleeting-plugin-openstack/internal/jsonbound"
)

// entry is what the body of a log entry says was signed, and by whom. Of the
// hashes, it has those that its kind of entry records.
type entry struct {
	// tiled is set for a Rekor version 2 entry, of which nothing else is read.
	tiled bool
	// signature is nil for a kind that records none.
	signature []byte
	// signer is a public key or a certificate in DER form.
	signer []byte
	// message, payload and envelope are the SHA-256 of a signed message, of the
	// payload of an envelope, and of an envelope as JSON.
	message, payload, envelope []byte
}

// hash is a digest as Rekor version 1 writes it.
type hash struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"value"`
}

// sha256 is the digest's bytes, nil for one that is missing or of another kind.
func (h hash) sha256() []byte {
	sum, err := hex.DecodeString(h.Value)
	if err != nil || h.Algorithm != "sha256" || len(sum) != sha256.Size {
		return nil
	}
	return sum
}

// readEntry reads the body of a log entry. The kinds are those that cosign and
// sigstore-go verify; the schemas are at
// https://github.com/sigstore/rekor/tree/main/pkg/types and
// https://github.com/sigstore/rekor-tiles/tree/main/api/proto.
func readEntry(body []byte) (entry, error) {
	var head struct {
		Kind       string          `json:"kind"`
		APIVersion string          `json:"apiVersion"`
		Spec       json.RawMessage `json:"spec"`
	}
	if err := jsonbound.Check(body, maxBodyValues); err != nil {
		return entry{}, fmt.Errorf("log entry: %w", err)
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return entry{}, fmt.Errorf("log entry: %w", err)
	}
	var read func([]byte) (entry, error)
	switch head.Kind + " " + head.APIVersion {
	case "hashedrekord 0.0.1", "rekord 0.0.1":
		read = readHashedRekord
	case "hashedrekord 0.0.2":
		return entry{tiled: true}, nil
	case "dsse 0.0.1":
		read = readDSSE
	case "intoto 0.0.1":
		read = readInToto1
	case "intoto 0.0.2":
		read = readInToto2
	default:
		return entry{}, fmt.Errorf("log entry of unknown kind %.40q, version %.40q", head.Kind, head.APIVersion)
	}
	e, err := read(head.Spec)
	if err != nil {
		return entry{}, fmt.Errorf("log entry of kind %s: %w", head.Kind, err)
	}
	return e, nil
}

// readHashedRekord reads an entry about a message, which rekord and hashedrekord
// describe alike.
func readHashedRekord(spec []byte) (entry, error) {
	var s struct {
		Data struct {
			Hash hash `json:"hash"`
		} `json:"data"`
		Signature struct {
			Content   []byte `json:"content"`
			PublicKey struct {
				Content []byte `json:"content"`
			} `json:"publicKey"`
		} `json:"signature"`
	}
	if err := json.Unmarshal(spec, &s); err != nil {
		return entry{}, err
	}
	e := entry{signature: s.Signature.Content, message: s.Data.Hash.sha256()}
	if len(e.signature) == 0 {
		return entry{}, errors.New("no signature")
	}
	return e.by(s.Signature.PublicKey.Content)
}

func readDSSE(spec []byte) (entry, error) {
	var s struct {
		EnvelopeHash hash `json:"envelopeHash"`
		PayloadHash  hash `json:"payloadHash"`
		Signatures   []struct {
			Signature []byte `json:"signature"`
			Verifier  []byte `json:"verifier"`
		} `json:"signatures"`
	}
	if err := json.Unmarshal(spec, &s); err != nil {
		return entry{}, err
	}
	if len(s.Signatures) != 1 {
		return entry{}, fmt.Errorf("%d signatures", len(s.Signatures))
	}
	e := entry{signature: s.Signatures[0].Signature, payload: s.PayloadHash.sha256(), envelope: s.EnvelopeHash.sha256()}
	return e.by(s.Signatures[0].Verifier)
}

func readInToto1(spec []byte) (entry, error) {
	var s struct {
		Content struct {
			Hash hash `json:"hash"`
		} `json:"content"`
		PublicKey []byte `json:"publicKey"`
	}
	if err := json.Unmarshal(spec, &s); err != nil {
		return entry{}, err
	}
	return entry{envelope: s.Content.Hash.sha256()}.by(s.PublicKey)
}

func readInToto2(spec []byte) (entry, error) {
	var s struct {
		Content struct {
			Envelope struct {
				Signatures []struct {
					PublicKey []byte `json:"publicKey"`
					Sig       []byte `json:"sig"` // in base64 once more
				} `json:"signatures"`
			} `json:"envelope"`
			Hash        hash `json:"hash"`
			PayloadHash hash `json:"payloadHash"`
		} `json:"content"`
	}
	if err := json.Unmarshal(spec, &s); err != nil {
		return entry{}, err
	}
	if len(s.Content.Envelope.Signatures) != 1 {
		return entry{}, fmt.Errorf("%d signatures", len(s.Content.Envelope.Signatures))
	}
	signed := s.Content.Envelope.Signatures[0]
	sig, err := base64.StdEncoding.DecodeString(string(signed.Sig))
	if err != nil {
		return entry{}, fmt.Errorf("signature: %w", err)
	}
	e := entry{signature: sig, payload: s.Content.PayloadHash.sha256(), envelope: s.Content.Hash.sha256()}
	return e.by(signed.PublicKey)
}

// by adds the signer, a PEM block.
func (e entry) by(signer []byte) (entry, error) {
	block, rest := pem.Decode(signer)
	if block == nil || len(rest) > 0 {
		return entry{}, errors.New("the signer is not one PEM block")
	}
	e.signer = block.Bytes
	return e, nil
}

// about refuses an entry that is not about this signature by this signer.
func (e entry) about(s *Signature, by *Verifier) error {
	recorded, signed := e.message, s.Message
	switch {
	case s.Encoded != nil:
		recorded, signed = e.envelope, s.Encoded
	case s.Envelope != nil:
		payload, err := s.Envelope.DecodeB64Payload()
		if err != nil {
			return err
		}
		recorded, signed = e.payload, payload
	}
	if sum := sha256.Sum256(signed); !bytes.Equal(recorded, sum[:]) {
		return errors.New("the log entry is about other content")
	}
	// The hash of an encoded envelope covers its signatures.
	if s.Encoded == nil && !bytes.Equal(e.signature, s.Value) {
		return errors.New("the log entry is about another signature")
	}
	signer, err := by.entered(s)
	if err != nil {
		return err
	}
	if !bytes.Equal(e.signer, signer) {
		return errors.New("the log entry is about another signer")
	}
	return nil
}

// tiled is what a Rekor version 2 log holds about a signature. Of the JSON the
// fields are sorted and no text needs escapes: it is canonical (RFC 8785).
type tiled struct {
	Data struct {
		Algorithm string `json:"algorithm"`
		Digest    []byte `json:"digest"`
	} `json:"data"`
	Signature tiledSignature `json:"signature"`
}

type tiledSignature struct {
	Content  []byte `json:"content"`
	Verifier struct {
		KeyDetails  string    `json:"keyDetails"`
		PublicKey   *tiledDER `json:"publicKey,omitempty"`
		Certificate *tiledDER `json:"x509Certificate,omitempty"`
	} `json:"verifier"`
}

type tiledDER struct {
	RawBytes []byte `json:"rawBytes"`
}

func newTiled(s *Signature, by *Verifier) (t tiled, err error) {
	details, err := signature.GetDefaultAlgorithmDetails(by.key, options.WithED25519ph())
	if err != nil {
		return t, err
	}
	algorithm := details.GetHashType()
	if algorithm == crypto.Hash(0) || !algorithm.Available() {
		return t, errors.New("a Rekor version 2 log takes signatures of digests only")
	}
	message := s.Message
	if s.Envelope != nil {
		payload, err := s.Envelope.DecodeB64Payload()
		if err != nil {
			return t, err
		}
		message = dsse.PAE(s.Envelope.PayloadType, payload)
	}
	sum := algorithm.New()
	sum.Write(message)
	t.Data.Algorithm, t.Data.Digest = details.GetProtoHashType().String(), sum.Sum(nil)
	t.Signature.Content, t.Signature.Verifier.KeyDetails = s.Value, details.GetSignatureAlgorithm().String()
	if by.certificate != nil {
		t.Signature.Verifier.Certificate = &tiledDER{by.certificate.Raw}
	} else {
		t.Signature.Verifier.PublicKey = &tiledDER{by.der}
	}
	return t, nil
}

// tiledEntry is the body of a Rekor version 2 entry about the signature.
func tiledEntry(s *Signature, by *Verifier) ([]byte, error) {
	t, err := newTiled(s, by)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"apiVersion": "0.0.2", "kind": "hashedrekord", "spec": map[string]any{"hashedRekordV002": t}})
}

// TilesRequest is the request to enter a signature in a Rekor version 2 log.
func TilesRequest(s *Signature, by *Verifier) ([]byte, error) {
	t, err := newTiled(s, by)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"hashedRekordRequestV002": map[string]any{"digest": t.Data.Digest, "signature": t.Signature}})
}
