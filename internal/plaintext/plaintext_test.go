package plaintext_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

// TestLine holds what is made visible and what stays as it is.
func TestLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"words":                   {"Gänsefüßchen „ja“ 東京 1.2.3 ✓ ⚠️", "Gänsefüßchen „ja“ 東京 1.2.3 ✓ ⚠️"},
		"no-break space":          {"10\u00a0GB", "10\u00a0GB"},
		"a colour":                {"\x1b[31mred", `\u001b[31mred`},
		"a title of the terminal": {"\x1b]0;title\x07", `\u001b]0;title\u0007`},
		"a line break":            {"a\nsigned by: everybody", `a\nsigned by: everybody`},
		"a return":                {"a\rb", `a\rb`},
		"a tab":                   {"a\tb", `a\tb`},
		"other line breaks":       {"a\v\f\u0085\u2028\u2029b", `a\u000b\u000c\u0085\u2028\u2029b`},
		"right to left":           {"exe\u202egnp", `exe\u202egnp`},
		"isolates and marks":      {"\u2066\u2067\u2068\u2069\u200e\u200f\u061c", `\u2066\u2067\u2068\u2069\u200e\u200f\u061c`},
		"C1":                      {"\u009b31m\u0090", `\u009b31m\u0090`},
		"delete":                  {"\x7f\b", `\u007f\u0008`},
		"not UTF-8":               {"\x9b31m\xff", `\x9b31m\xff`},
		"half a character":        {"\xe2\x80", `\xe2\x80`},
		"invisible":               {"a\u200b\u2060\ufeff\u00ad\u3164\u180e", `a\u200b\u2060\ufeff\u00ad\u3164\u180e`},
		"tags":                    {"\U000e0041\U000e0100", `\udb40\udc41\udb40\udd00`},
		"private use":             {"\ue000", `\ue000`},
		"a backslash":             {`a\nb`, `a\nb`},
	} {
		if diff := cmp.Diff(c.want, plaintext.Line(c.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got, want := plaintext.Escape("a\tb\nc\x1b\r"), "a\tb\nc"+`\u001b\r`; got != want {
		t.Errorf("Escape: %q, want %q", got, want)
	}
}

// hostile has one of everything that may not reach a terminal.
const hostile = "\x00\x07\x08\x1b\x7f\r\u0085\u009b\u061c\u200e\u202e\u2066\u2028\ufeff\U000e0041"

// TestWriterKeepsJSON: JSON that was written through the filter is JSON with the
// same value, and has none of what a terminal obeys.
func TestWriterKeepsJSON(t *testing.T) {
	t.Parallel()
	want := map[string]string{"a": hostile + "ß東", "b": "line\nline"}
	content, err := json.MarshalIndent(want, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := plaintext.NewWriter(&out).Write(content); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexAny(out.String(), hostile); i >= 0 {
		t.Errorf("%q is left at %d", out.String(), i)
	}
	var got map[string]string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestWriterTakesPieces: a character may come in two writes.
func TestWriterTakesPieces(t *testing.T) {
	t.Parallel()
	text := "ab ß 東京 🦊 \u202e \xff\xe2\x80. end\n"
	var out bytes.Buffer
	w := plaintext.NewWriter(&out)
	if n, err := bytes.NewReader([]byte(text)).WriteTo(iotest.TruncateWriter(w, int64(len(text)))); err != nil || n != int64(len(text)) {
		t.Fatal(n, err)
	}
	whole := out.String()
	out.Reset()
	for i := range len(text) {
		if n, err := w.Write([]byte{text[i]}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if diff := cmp.Diff(whole, out.String()); diff != "" {
		t.Error(diff)
	}
	if want := `ab ß 東京 🦊 \u202e \xff\xe2\x80. end` + "\n"; whole != want {
		t.Errorf("got %q, want %q", whole, want)
	}
}

type named struct{ name string }

func (n named) String() string { return n.name }

// kind is text of a type of its own.
type kind string

// TestFprintf: line breaks come from the format.
func TestFprintf(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	plaintext.Fprintf(&out, "%s|%v|%v|%v|%d|%-4s|%v|%s\n", "a\nb", errors.New("c\nd"), named{"e\n"}, []string{"f\n", "g"}, 7, "h", nil, kind("i\n\u202e"))
	if want := `a\nb|c\nd|e\n|[f\n g]|7|h   |<nil>|i\n\u202e` + "\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestRedact: an address is named without what lets its reader in.
func TestRedact(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`Get "https://s3.test/bucket/blob?X-Amz-Signature=abc&X=1": EOF`: `Get "https://s3.test/bucket/blob?…": EOF`,
		"https://user:pass@registry.test/v2/: refused":                   "https://…@registry.test/v2/: refused",
		"see https://registry.test/v2/a, then http://b?x.":               "see https://registry.test/v2/a, then http://b?….",
		"HTTPS://registry.test/#token":                                   "HTTPS://registry.test/#…",
		"https://registry.test/a@b":                                      "https://registry.test/a@b",
		"no address?":                                                    "no address?",
		"https://u:p@ss@registry.test?q":                                 "https://…@registry.test?…",
	} {
		if got := plaintext.Redact(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add(hostile)
	f.Add("plain")
	f.Fuzz(func(t *testing.T, text string) {
		line := plaintext.Line(text)
		if !utf8.ValidString(line) || strings.ContainsAny(line, "\n\t"+hostile) {
			t.Errorf("%q became %q", text, line)
		}
		if again := plaintext.Line(line); again != line {
			t.Errorf("%q became %q, then %q", text, line, again)
		}
		var out bytes.Buffer
		w := plaintext.NewWriter(&out)
		half := len(text) / 2
		_, _ = w.Write([]byte(text[:half]))
		_, _ = w.Write([]byte(text[half:]))
		if _, _ = w.Write([]byte(".")); out.String() != plaintext.Escape(text+".") {
			t.Errorf("in pieces %q, whole %q", out.String(), plaintext.Escape(text+"."))
		}
	})
}
