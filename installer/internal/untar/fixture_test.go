package untar_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/untar"
)

func extract(tb testing.TB, dir string, r io.Reader, opts untar.Options) ([]untar.File, error) {
	tb.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	return untar.Extract(tb.Context(), root, r, opts)
}

func archiveOf(tb testing.TB, entries []entry) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Typeflag: e.kind, Linkname: e.link, Size: int64(len(e.body)), PAXRecords: e.pax}
		if e.kind == 0 {
			header.Typeflag = tar.TypeReg
		}
		if e.pax != nil {
			// The writer refuses these keys, as it should; put one in under another name of the same length.
			header.PAXRecords = map[string]string{"XXX.sparse.x": "1"}
		}
		if err := w.WriteHeader(header); err != nil {
			tb.Fatal(err)
		}
		if _, err := io.WriteString(w, e.body); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("XXX.sparse"), []byte("GNU.sparse"))
}

func encodings() map[string]func(testing.TB, []byte) []byte {
	return map[string]func(testing.TB, []byte) []byte{
		"gzip": gzipped, "zstd": zstded,
		"raw": func(_ testing.TB, b []byte) []byte { return bytes.Clone(b) },
	}
}

func gzipped(tb testing.TB, content []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func zstded(tb testing.TB, content []byte) []byte {
	tb.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	return w.EncodeAll(content, nil)
}

func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 0x10
	return b
}

func tree(t *testing.T, dir string, files []untar.File) map[string]string {
	t.Helper()
	reported := map[string]fs.FileMode{}
	for _, f := range files {
		reported[f.Name] = f.Mode
	}
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		mode := fmt.Sprintf("%o", info.Mode().Perm())
		if runtime.GOOS == "windows" { // whose files have none
			mode = fmt.Sprintf("%o", reported[filepath.ToSlash(name)])
		}
		if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
			mode = info.Mode().String()
		}
		found[filepath.ToSlash(name)] = mode + " " + string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func bytesIn(t *testing.T, dir string) int64 {
	t.Helper()
	var size int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}
