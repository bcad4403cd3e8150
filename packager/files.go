package packager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/internal/contextio"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
	"github.com/radome-io/fleeting-plugin-openstack/packager/internal/signer"
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

// AttestedFiles says what [AttestFiles] attested.
type AttestedFiles struct {
	// Bundle is the file that was written.
	Bundle string `json:"bundle"`
	// PredicateType is what is said of the files.
	PredicateType string `json:"predicateType"`
	// Files are the statement's subjects, by name.
	Files []AttestedFile `json:"files"`
}

// AttestedFile is one subject of a statement.
type AttestedFile struct {
	// Name is the file's, without a folder.
	Name string `json:"name"`
	// Digest is that of its content, Size in bytes.
	Digest digest.Digest `json:"digest"`
	Size   int64         `json:"size"`
}

// AttestFiles signs one attestation about files that are not in a registry, such
// as those that a forge shows with a release, and writes it to the file bundle: a
// sigstore bundle, version 0.3, with a statement whose subjects are the files.
// `gh attestation verify`, `cosign verify-blob-attestation` and our installer's
// VerifyFile read it.
//
// The files have different names, since those are all that a subject keeps of a
// path. A bundle that is there already is replaced if it says the same type of
// thing about the same files, otherwise it is an [*dist.InputError], as is a file that
// cannot be read. Errors of signing are those of [Sign]; after any error, the
// bundle is as it was before.
func AttestFiles(ctx context.Context, files []string, bundle string, s *Signer, p Predicate) (*AttestedFiles, error) {
	out := &AttestedFiles{Bundle: bundle, PredicateType: p.Type}
	if len(files) == 0 {
		return nil, &dist.InputError{Path: bundle, Problem: "an attestation about no file"}
	}
	for _, path := range files {
		f, err := subjectFile(ctx, path)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out.Files, func(o AttestedFile) bool { return o.Name == f.Name }) {
			return nil, &dist.InputError{Path: path, Problem: "is the second file of this name", Remedy: "name each file once, and give each a name of its own"}
		}
		out.Files = append(out.Files, f)
	}
	slices.SortFunc(out.Files, func(a, b AttestedFile) int { return strings.Compare(a.Name, b.Name) })
	if err := out.mayReplace(); err != nil {
		return nil, err
	}
	subjects := make([]signer.Subject, len(out.Files))
	for i, f := range out.Files {
		subjects[i] = signer.Subject{Name: f.Name, Digest: f.Digest}
	}
	signed, err := s.s.AttestBundle(ctx, subjects, p.Type, p.Content)
	if err != nil {
		return nil, fmt.Errorf("attesting %s: %w", p.Type, err)
	}
	return out, durable.WriteFile(bundle, signed, 0o644)
}

// subjectFile reads a file for its digest.
func subjectFile(ctx context.Context, path string) (AttestedFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return AttestedFile{}, &dist.InputError{Path: path, Problem: "cannot be read", Err: errors.Unwrap(err)}
	}
	if !info.Mode().IsRegular() {
		return AttestedFile{}, &dist.InputError{Path: path, Problem: "is not a regular file (" + info.Mode().Type().String() + ")"}
	}
	f, err := os.Open(path)
	if err != nil {
		return AttestedFile{}, &dist.InputError{Path: path, Problem: "cannot be read", Err: errors.Unwrap(err)}
	}
	defer f.Close() //nolint:errcheck // read only
	sum := digest.SHA256.Digester()
	n, err := io.Copy(sum.Hash(), contextio.Reader(ctx, f))
	if err == nil && n != info.Size() {
		err = &dist.InputError{Path: path, Problem: "changed while it was read", Remedy: "build first, and let nothing else write there"}
	}
	return AttestedFile{Name: filepath.Base(path), Digest: sum.Digest(), Size: n}, err
}

// bundleLimit bounds what is read of a file that is to be replaced, in bytes.
const bundleLimit = 16 << 20

// mayReplace keeps a slip of the keyboard from replacing something else.
func (a *AttestedFiles) mayReplace() error {
	info, err := os.Stat(a.Bundle)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	other := &dist.InputError{
		Path: a.Bundle, Problem: "is there, and is not an attestation of this type about these files",
		Remedy: "write to another file, or remove this one",
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > bundleLimit {
		other.Err = err
		return other
	}
	content, err := os.ReadFile(a.Bundle)
	if err != nil {
		other.Err = err
		return other
	}
	var have struct {
		Envelope envelope `json:"dsseEnvelope"`
	}
	var statement struct {
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Name   string            `json:"name"`
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if json.Unmarshal(content, &have) != nil || json.Unmarshal(have.Envelope.Payload, &statement) != nil {
		return other
	}
	if statement.PredicateType != a.PredicateType || len(statement.Subject) != len(a.Files) {
		return other
	}
	for i, f := range a.Files {
		if s := statement.Subject[i]; s.Name != f.Name || s.Digest["sha256"] != f.Digest.Encoded() {
			return other
		}
	}
	return nil
}
