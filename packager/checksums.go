package packager

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
			lines = append(lines, f.sha256+"  "+filepath.ToSlash(rel)+"\n")
		}
	}
	slices.Sort(lines)
	content := []byte(strings.Join(slices.Compact(lines), ""))
	out := &Checksums{File: filepath.Join(dist.dir, "SHA256SUMS")}
	if err := writeAtomically(out.File, content); err != nil {
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
	return out, writeAtomically(out.Bundle, bundle)
}

// writeAtomically never leaves half a file.
func writeAtomically(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".fleeting-plugin-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
