package signer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/radome-io/fleeting-plugin-openstack/internal/sigstore"
)

// enter enters a signature in the transparency log and returns the entry.
func (s Services) enter(ctx context.Context, b *protobundle.Bundle, signed *sigstore.Signature, by *sigstore.Verifier) (*protorekor.TransparencyLogEntry, error) {
	var entry *protorekor.TransparencyLogEntry
	var err error
	if s.RekorVersion == 2 {
		entry, err = s.enterTiles(ctx, signed, by)
	} else {
		entry, err = s.enterRekor(ctx, b, signed, by)
	}
	if err != nil {
		return nil, fmt.Errorf("entry in the log %s: %w", s.RekorURL, err)
	}
	return entry, nil
}

// enterTiles uses the API of Rekor version 2:
// https://github.com/sigstore/rekor-tiles/blob/main/api/proto.
func (s Services) enterTiles(ctx context.Context, signed *sigstore.Signature, by *sigstore.Verifier) (*protorekor.TransparencyLogEntry, error) {
	request, err := sigstore.TilesRequest(signed, by)
	if err != nil {
		return nil, err
	}
	answer, err := s.post(ctx, s.RekorURL+"/api/v2/log/entries", jsonRequest(), request)
	if err != nil {
		return nil, err
	}
	var entry protorekor.TransparencyLogEntry
	return &entry, protojson.Unmarshal(answer.body, &entry)
}

// enterRekor uses the API of Rekor version 1:
// https://github.com/sigstore/rekor/blob/main/openapi.yaml.
func (s Services) enterRekor(ctx context.Context, b *protobundle.Bundle, signed *sigstore.Signature, by *sigstore.Verifier) (*protorekor.TransparencyLogEntry, error) {
	kind, spec, err := rekorSpec(b, signed, by)
	if err != nil {
		return nil, err
	}
	request, err := json.Marshal(map[string]any{"apiVersion": "0.0.1", "kind": kind, "spec": spec})
	if err != nil {
		return nil, err
	}
	answer, err := s.post(ctx, s.RekorURL+"/api/v1/log/entries", jsonRequest(), request)
	var refused *statusError
	if errors.As(err, &refused) && refused.status == http.StatusConflict {
		// It is entered already, as after an answer that was lost.
		at, err := url.Parse(s.RekorURL)
		if err != nil {
			return nil, err
		}
		if at, err = at.Parse(refused.location); err != nil {
			return nil, err
		}
		answer, err = s.exchange(ctx, http.MethodGet, at.String(), nil, nil)
		if err != nil {
			return nil, err
		}
		return readRekorEntry(answer.body, kind)
	}
	if err != nil {
		return nil, err
	}
	return readRekorEntry(answer.body, kind)
}

func jsonRequest() http.Header {
	return http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
}

// rekorSpec is what is to be entered, as the log's types hashedrekord and dsse.
func rekorSpec(b *protobundle.Bundle, signed *sigstore.Signature, by *sigstore.Verifier) (kind string, spec any, err error) {
	signer := pem.EncodeToMemory(by.PEM())
	if signed.Envelope == nil {
		sum := sha256.Sum256(signed.Message)
		return "hashedrekord", map[string]any{
			"data":      map[string]any{"hash": map[string]string{"algorithm": "sha256", "value": hex.EncodeToString(sum[:])}},
			"signature": map[string]any{"content": signed.Value, "publicKey": map[string]any{"content": signer}},
		}, nil
	}
	envelope, err := json.Marshal(b.GetDsseEnvelope())
	if err != nil {
		return "", nil, err
	}
	return "dsse", map[string]any{"proposedContent": map[string]any{
		"envelope": string(envelope), "verifiers": [][]byte{signer},
	}}, nil
}

// hexBytes are bytes in hexadecimal.
type hexBytes []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// readRekorEntry reads the answer: the entry under its identifier.
func readRekorEntry(answer []byte, kind string) (*protorekor.TransparencyLogEntry, error) {
	var entries map[string]struct {
		Body           []byte   `json:"body"`
		IntegratedTime int64    `json:"integratedTime"`
		LogID          hexBytes `json:"logID"`
		LogIndex       int64    `json:"logIndex"`
		Verification   struct {
			SignedEntryTimestamp []byte `json:"signedEntryTimestamp"`
			InclusionProof       struct {
				Checkpoint string     `json:"checkpoint"`
				Hashes     []hexBytes `json:"hashes"`
				LogIndex   int64      `json:"logIndex"`
				RootHash   hexBytes   `json:"rootHash"`
				TreeSize   int64      `json:"treeSize"`
			} `json:"inclusionProof"`
		} `json:"verification"`
	}
	if err := json.Unmarshal(answer, &entries); err != nil {
		return nil, err
	}
	for _, e := range entries {
		p := e.Verification.InclusionProof
		entry := &protorekor.TransparencyLogEntry{
			LogIndex: e.LogIndex, LogId: &protocommon.LogId{KeyId: e.LogID}, IntegratedTime: e.IntegratedTime,
			KindVersion:       &protorekor.KindVersion{Kind: kind, Version: "0.0.1"},
			InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: e.Verification.SignedEntryTimestamp},
			CanonicalizedBody: e.Body,
			InclusionProof: &protorekor.InclusionProof{
				LogIndex: p.LogIndex, RootHash: p.RootHash, TreeSize: p.TreeSize, Checkpoint: &protorekor.Checkpoint{Envelope: p.Checkpoint},
			},
		}
		for _, h := range p.Hashes {
			entry.InclusionProof.Hashes = append(entry.InclusionProof.Hashes, h)
		}
		if len(e.Body) == 0 || len(e.LogID) == 0 || p.Checkpoint == "" {
			return nil, errors.New("an answer without the entry or its proof")
		}
		return entry, nil
	}
	return nil, errors.New("an answer without an entry")
}
