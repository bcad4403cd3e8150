package packager

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// Checksums says what [WriteChecksums] wrote.
type Checksums struct {
	// File lists the digests, in the format that "sha256sum --check" reads.
	File string `json:"file"`
	// Bundle is the signature of File, a sigstore bundle that
	// "cosign verify-blob --bundle" reads; empty without a signer.
	Bundle string `json:"bundle,omitempty"`
}

// WriteChecksums writes SHA256SUMS into the folder that was scanned: the
// digests of all executables and companions, with paths relative to it, and
// beside it SHA256SUMS.sigstore.json, if there is a signer. It is for those who
// publish the plain executables as well.
func WriteChecksums(ctx context.Context, dist *Dist, s *Signer) (*Checksums, error) {
	var lines []string
	for _, in := range dist.inputs {
		for _, f := range in.files {
			rel, err := filepath.Rel(dist.dir, f.path)
			if err != nil || strings.HasPrefix(rel, "..") {
				rel = f.path
			}
			sum, err := dist.sums.of(ctx, f)
			if err != nil {
				return nil, err
			}
			lines = append(lines, sum+"  "+filepath.ToSlash(rel)+"\n")
		}
	}
	slices.Sort(lines)
	content := []byte(strings.Join(slices.Compact(lines), ""))
	out := &Checksums{File: filepath.Join(dist.dir, "SHA256SUMS")}
	if err := durable.WriteFile(out.File, content, 0o644); err != nil {
		return nil, err
	}
	if s == nil {
		return out, nil
	}
	bundle, err := s.s.SignBlob(ctx, content)
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", out.File, err)
	}
	out.Bundle = out.File + ".sigstore.json"
	return out, durable.WriteFile(out.Bundle, bundle, 0o644)
}
