package packager

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
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
func WriteChecksums(ctx context.Context, from *dist.Dist, s *Signer) (*Checksums, error) {
	var lines []string
	for _, in := range from.Inputs() {
		for _, f := range in.Files() {
			rel, err := filepath.Rel(from.Dir(), f.Path())
			if err != nil || strings.HasPrefix(rel, "..") {
				rel = f.Path()
			}
			sum, err := from.Sum(ctx, f)
			if err != nil {
				return nil, err
			}
			lines = append(lines, sum+"  "+filepath.ToSlash(rel)+"\n")
		}
	}
	slices.Sort(lines)
	content := []byte(strings.Join(slices.Compact(lines), ""))
	out := &Checksums{File: filepath.Join(from.Dir(), "SHA256SUMS")}
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
