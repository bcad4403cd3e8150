package textfile_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

func TestUTF8(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want string }{
		"plain":             {"key = 1\n", "key = 1\n"},
		"empty":             {"", ""},
		"byte order mark":   {"\xef\xbb\xbfkey = 1\r\n", "key = 1\r\n"},
		"only the mark":     {"\xef\xbb\xbf", ""},
		"a mark in between": {"a\xef\xbb\xbfb", "a\xef\xbb\xbfb"},
		"beyond ASCII":      {"name = \"Prüfung 试\"", "name = \"Prüfung 试\""},
	} {
		got, err := textfile.UTF8([]byte(test.in))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, test.want)
		}
	}
}

func TestOtherEncodings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in   []byte
		want string
	}{
		"UTF-16, little endian, with a mark":    {encoded(t, binary.LittleEndian, "\ufeffkey = 1"), "UTF-16"},
		"UTF-16, big endian, with a mark":       {encoded(t, binary.BigEndian, "\ufeffkey = 1"), "UTF-16"},
		"UTF-16, little endian, without a mark": {encoded(t, binary.LittleEndian, "key = 1"), "UTF-16 without"},
		"UTF-16, big endian, without a mark":    {encoded(t, binary.BigEndian, "key = 1"), "UTF-16 without"},
		"UTF-32":                                {[]byte("\xff\xfe\x00\x00k\x00\x00\x00"), "UTF-32"},
		"Windows-1252":                          {[]byte("name = \"Pr\xfcfung\""), "code page"},
		"zero byte behind a mark":               {[]byte("\xef\xbb\xbfab\x00"), "zero byte"},
	} {
		_, err := textfile.UTF8(test.in)
		if !errors.Is(err, textfile.ErrEncoding) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%s: got %v; want ErrEncoding with %q", name, err, test.want)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.toml")
	if _, err := textfile.Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for content, want := range map[string]string{"\xef\xbb\xbfa": "a", "\xff\xfea\x00": ""} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := textfile.Read(path)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", content, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("the error does not name the file: %v", err)
		}
	}
}

// TestReadIsBounded: a file that somebody else wrote does not fill the memory.
func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<30); err != nil { // takes no space
		t.Fatal(err)
	}
	for name, read := range map[string]func(string) ([]byte, error){"Read": textfile.Read, "ReadPEM": textfile.ReadPEM} {
		if _, err := read(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "longer than") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadPEM(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ca.crt")
	const block = "-----BEGIN CERTIFICATE-----\n"
	for content, want := range map[string]string{
		block: block, "\xef\xbb\xbf" + block: block, "Pr\xfcfung\n" + block: "Pr\xfcfung\n" + block, "\xff\xfe" + block: "",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := textfile.ReadPEM(path)
		if string(got) != want || (err == nil) != (want != "") || err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("%q: got %q, %v", content, got, err)
		}
	}
}

func encoded(t *testing.T, order binary.ByteOrder, text string) []byte {
	t.Helper()
	content, err := binary.Append(nil, order, utf16.Encode([]rune(text)))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
