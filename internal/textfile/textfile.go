// Package textfile reads text that people wrote with any editor of any system.
//
// It knows encodings only: UTF-8, with or without a byte order mark. It
// bounds what it reads, parses nothing and converts nothing.
package textfile

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"
)

// ErrEncoding reports text that is not UTF-8. Windows PowerShell, for instance,
// writes UTF-16 with > and Out-File.
var ErrEncoding = errors.New("not UTF-8 text")

// UTF8 returns the text without a byte order mark. Text in another encoding is
// an [ErrEncoding] that names it.
func UTF8(content []byte) ([]byte, error) {
	content, err := Unmarked(content)
	if err != nil {
		return nil, err
	}
	switch at := bytes.IndexByte(content, 0); {
	case at >= 0 && at < 2:
		return nil, other("UTF-16 without a byte order mark")
	case at >= 0:
		return nil, other("binary data with a zero byte")
	case !utf8.Valid(content):
		return nil, other("text in a code page, such as Windows-1252")
	}
	return content, nil
}

// Unmarked returns what may be text or something else without the byte order mark
// of UTF-8. A mark of another encoding is an [ErrEncoding].
func Unmarked(content []byte) ([]byte, error) {
	switch {
	case bytes.HasPrefix(content, []byte{0xff, 0xfe, 0, 0}), bytes.HasPrefix(content, []byte{0, 0, 0xfe, 0xff}):
		return nil, other("UTF-32")
	case bytes.HasPrefix(content, []byte{0xff, 0xfe}), bytes.HasPrefix(content, []byte{0xfe, 0xff}):
		return nil, other("UTF-16")
	}
	return bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")), nil
}

// ReadPEM returns the content of a file with PEM blocks without a byte order mark,
// behind which the decoder of PEM finds no block. The text around the blocks may be
// in a code page. Errors name the file.
func ReadPEM(path string) ([]byte, error) {
	content, err := read(path)
	if err != nil {
		return nil, err
	}
	if content, err = Unmarked(content); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

// KeyPair is [tls.LoadX509KeyPair] of files that [ReadPEM] reads. One file may hold
// both.
func KeyPair(certFile, keyFile string) (tls.Certificate, error) {
	certificate, err := ReadPEM(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ReadPEM(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s and %s: %w", certFile, keyFile, err)
	}
	return pair, nil
}

// limit is more than any text file of ours has, in bytes.
const limit = 16 << 20

// read reads a file, or a pipe, that ends.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && len(content) > limit {
		err = fmt.Errorf("%s: longer than %d bytes", path, limit)
	}
	return content, err
}

func other(encoding string) error {
	return fmt.Errorf("%w: it is %s; save it as UTF-8", ErrEncoding, encoding)
}

// Read returns the text of a file, as [UTF8] does. Errors name the file.
func Read(path string) ([]byte, error) {
	content, err := read(path)
	if err != nil {
		return nil, err
	}
	text, err := UTF8(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}
