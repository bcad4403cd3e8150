package dist

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/radome-io/fleeting-plugin-openstack/internal/contextio"
)

// sums are the SHA-256 digests of a dist's files, hexadecimal, by path. A file
// is read for its digest only where it is not read for its layer anyway.
type sums struct {
	mu    sync.Mutex
	known map[string]string
}

// Sum returns the SHA-256 digest of a file, hexadecimal. The file is read unless
// [Dist.Copy] has read it.
func (d *Dist) Sum(ctx context.Context, f File) (string, error) { return d.sums.of(ctx, f) }

// Copy copies the content of a file, and fails if it is not the one any more that
// was checked.
func (d *Dist) Copy(ctx context.Context, w io.Writer, f File, buffer []byte) error {
	return d.sums.copy(ctx, w, f, buffer)
}

func (s *sums) get(f File) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[f.path]
}

// set remembers a digest. It must be that of any earlier reading.
func (s *sums) set(f File, sum string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.known[f.path]; ok && have != sum {
		return changed(f)
	}
	if s.known == nil {
		s.known = map[string]string{}
	}
	s.known[f.path] = sum
	return nil
}

// of returns the digest of a file, and reads the file if it is not known yet.
func (s *sums) of(ctx context.Context, f File) (string, error) {
	if sum := s.get(f); sum != "" {
		return sum, nil
	}
	if err := s.copy(ctx, io.Discard, f, make([]byte, copyBuffer)); err != nil {
		return "", err
	}
	return s.get(f), nil
}

// copy copies a file and makes sure that it is still the one that was checked.
func (s *sums) copy(ctx context.Context, w io.Writer, f File, buffer []byte) error {
	in, err := os.Open(f.path)
	if err != nil {
		return &InputError{Path: f.path, Problem: "cannot be read", Err: err}
	}
	defer in.Close() //nolint:errcheck // read only
	sum := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(w, sum)}, contextio.Reader(ctx, io.LimitReader(in, f.size+1)), buffer)
	if n > f.size {
		return changed(f)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", f.path, err)
	}
	info, err := in.Stat()
	if err != nil {
		return &InputError{Path: f.path, Problem: "cannot be read", Err: err}
	}
	if n != f.size || !f.same(info) {
		return changed(f)
	}
	return s.set(f, hexDigest(sum))
}

// same says whether the file that is open is still the one that was checked.
func (f File) same(now fs.FileInfo) bool {
	return os.SameFile(f.found, now) && f.found.Size() == now.Size() && f.found.ModTime().Equal(now.ModTime())
}

func changed(f File) error {
	return &InputError{Path: f.path, Problem: "changed while it was read", Remedy: "build first, and let nothing else write there"}
}

func hexDigest(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
