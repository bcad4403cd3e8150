package untar_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/untar"
)

// entry is one entry of an archive that a test makes.
type entry struct {
	name string
	body string
	mode int64
	kind byte
	link string
	pax  map[string]string
}

func TestExtract(t *testing.T) {
	t.Parallel()
	plugin := entry{name: "plugin/plugin", body: "ELF", mode: 0o755}
	for name, test := range map[string]struct {
		entries   []entry
		selection untar.Selection
		want      map[string]string
	}{
		"the runner's layout": {
			entries:   []entry{{name: "plugin/", kind: tar.TypeDir}, plugin, {name: "plugin/LICENSE", body: "MIT", mode: 0o600}},
			selection: untar.Plugin("plugin"),
			want:      map[string]string{"plugin": "755 ELF", "LICENSE": "644 MIT"},
		},
		"C2b setuid and setgid bits are dropped": {
			entries:   []entry{{name: "plugin/plugin", body: "ELF", mode: 0o6777}},
			selection: untar.Plugin("plugin"),
			want:      map[string]string{"plugin": "755 ELF"},
		},
		"C13 a plugin with a sub-directory": {
			entries:   []entry{plugin, {name: "plugin/lib/deep/x.so", body: "so", mode: 0o755}},
			selection: untar.Plugin("plugin"),
			want:      map[string]string{"plugin": "755 ELF", "lib/deep/x.so": "755 so"},
		},
		"Windows": {
			entries: []entry{
				{name: "Files", kind: tar.TypeDir},
				{name: "Hives", kind: tar.TypeDir},
				{name: "Files/plugin/plugin.exe", body: "MZ"},
			},
			selection: untar.Plugin("plugin.exe"),
			want:      map[string]string{"plugin.exe": "755 MZ"},
		},
		"leading dot": {
			entries:   []entry{{name: "./", kind: tar.TypeDir}, {name: "./plugin/plugin", body: "ELF"}},
			selection: untar.Plugin("plugin"),
			want:      map[string]string{"plugin": "755 ELF"},
		},
		"an image with a base": {
			entries: []entry{
				{name: "bin/sh", kind: tar.TypeSymlink, link: "busybox"},
				{name: "usr/share/man/man3/A::B.3", body: "man"},
				{name: "/usr/local/bin/fleeting-plugin-x", body: "ELF"},
				{name: "usr/local/bin/other", body: "other"},
			},
			selection: untar.Single("/usr/local/bin/fleeting-plugin-x", "plugin"),
			want:      map[string]string{"plugin": "755 ELF"},
		},
		"ko": {
			entries:   []entry{{name: "ko-app", kind: tar.TypeDir}, {name: "ko-app/x", body: "ELF"}, {name: "ko-app/data", body: "d"}},
			selection: untar.Folder("/ko-app/x", "plugin"),
			want:      map[string]string{"plugin": "755 ELF", "data": "644 d"},
		},
		"an opaque whiteout in the layer that brings the file": {
			entries:   []entry{{name: "app/.wh..wh..opq"}, {name: "app/x", body: "ELF"}},
			selection: untar.Folder("/app/x", "plugin"),
			want:      map[string]string{"plugin": "755 ELF"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive := archiveOf(t, test.entries)
			for encoding, compress := range encodings() {
				dir := t.TempDir()
				blob := compress(t, archive)
				files, err := extract(t, dir, bytes.NewReader(blob), untar.Options{Selection: test.selection, Size: int64(len(blob))})
				if err != nil {
					t.Fatalf("%s: %v", encoding, err)
				}
				if diff := cmp.Diff(test.want, tree(t, dir, files)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", encoding, diff)
				}
				for _, f := range files {
					content, err := os.ReadFile(filepath.Join(dir, f.Name))
					if err != nil || digest.FromBytes(content) != f.Digest || int64(len(content)) != f.Size {
						t.Errorf("%s: reported %+v, on disk %d bytes, %v", encoding, f, len(content), err)
					}
				}
			}
		})
	}
}

// TestHostile is the corpus of archives that must not be extracted. Nothing may
// appear outside the folder, whatever the verdict.
func TestHostile(t *testing.T) {
	t.Parallel()
	plugin := entry{name: "plugin/plugin", body: "ELF", mode: 0o755}
	at := func(name string) []entry { return []entry{plugin, {name: name, body: "evil"}} }
	cases := map[string]struct {
		entries []entry
		want    error
	}{
		"no entries":                     {nil, untar.ErrNoExecutable},
		"C2c no plugin":                  {[]entry{{name: "plugin/real", body: "x"}}, untar.ErrNoExecutable},
		"C2c plugin is a link":           {[]entry{{name: "plugin/real", body: "x"}, {name: "plugin/plugin", kind: tar.TypeSymlink, link: "real"}}, untar.ErrUnsafe},
		"plugin is a folder":             {[]entry{{name: "plugin/plugin", kind: tar.TypeDir}}, untar.ErrNoExecutable},
		"plugin is empty":                {[]entry{{name: "plugin/plugin"}}, untar.ErrNoExecutable},
		"C2 climbs":                      {at("plugin/../../../../../tmp/PWNED"), untar.ErrUnsafe},
		"C2 climbs in the prefix":        {at("../plugin/plugin"), untar.ErrUnsafe},
		"C2 another plugin":              {at("plugin/../127.0.0.1/victim/1.0.0/plugin"), untar.ErrUnsafe},
		"C2 prefix without a slash":      {at("plugin-evil"), untar.ErrUnsafe},
		"C2 prefix as another folder":    {at("pluginX/plugin"), untar.ErrUnsafe},
		"absolute":                       {at("/etc/passwd"), untar.ErrUnsafe},
		"absolute within":                {at("plugin//etc/passwd"), untar.ErrUnsafe},
		"dot element":                    {at("plugin/./x"), untar.ErrUnsafe},
		"backslashes":                    {at(`plugin\..\..\x`), untar.ErrUnsafe},
		"backslashes within":             {at(`plugin/..\..\x`), untar.ErrUnsafe},
		"drive letter":                   {at(`plugin/C:x`), untar.ErrUnsafe},
		"alternate stream":               {at(`plugin/plugin:evil`), untar.ErrUnsafe},
		"device name":                    {at("plugin/NUL.txt"), untar.ErrUnsafe},
		"serial port":                    {at("plugin/com1"), untar.ErrUnsafe},
		"trailing dot":                   {at("plugin/x."), untar.ErrUnsafe},
		"trailing space":                 {at("plugin/x "), untar.ErrUnsafe},
		"control character":              {at("plugin/a\x1b[2Jb"), untar.ErrUnsafe},
		"broken UTF-8":                   {at("plugin/a\xff"), untar.ErrUnsafe},
		"climbing in UTF-8 overlong":     {at("plugin/\xc0\xae\xc0\xae/x"), untar.ErrUnsafe},
		"outside plugin/":                {at("etc/passwd"), untar.ErrUnsafe},
		"a folder outside that climbs":   {[]entry{plugin, {name: "../x/", kind: tar.TypeDir}}, untar.ErrUnsafe},
		"symbolic link":                  {[]entry{plugin, {name: "plugin/x", kind: tar.TypeSymlink, link: "/etc/passwd"}}, untar.ErrUnsafe},
		"symbolic link as a folder":      {[]entry{{name: "plugin/d", kind: tar.TypeSymlink, link: "/tmp"}, {name: "plugin/d/x", body: "evil"}, plugin}, untar.ErrUnsafe},
		"hard link":                      {[]entry{plugin, {name: "plugin/x", kind: tar.TypeLink, link: "plugin/plugin"}}, untar.ErrUnsafe},
		"character device":               {[]entry{plugin, {name: "plugin/x", kind: tar.TypeChar}}, untar.ErrUnsafe},
		"block device":                   {[]entry{plugin, {name: "plugin/x", kind: tar.TypeBlock}}, untar.ErrUnsafe},
		"named pipe":                     {[]entry{plugin, {name: "plugin/x", kind: tar.TypeFifo}}, untar.ErrUnsafe},
		"C2c duplicate":                  {[]entry{plugin, plugin}, untar.ErrUnsafe},
		"duplicate by case":              {[]entry{plugin, {name: "plugin/PLUGIN", body: "evil"}}, untar.ErrUnsafe},
		"duplicate by a folder's case":   {[]entry{plugin, {name: "plugin/d/x", body: "a"}, {name: "plugin/D/x", body: "evil"}}, untar.ErrUnsafe},
		"two spellings of a folder":      {[]entry{plugin, {name: "plugin/d/x", body: "a"}, {name: "plugin/D/y", body: "evil"}}, untar.ErrUnsafe},
		"duplicate by an accent":         {[]entry{plugin, {name: "plugin/é", body: "a"}, {name: "plugin/e\u0301", body: "evil"}}, untar.ErrUnsafe},
		"device name of a folder":        {at("plugin/aux/x"), untar.ErrUnsafe},
		"device name before a space":     {at("plugin/con .txt"), untar.ErrUnsafe},
		"device name of a console":       {at("plugin/CONOUT$"), untar.ErrUnsafe},
		"device name with a superscript": {at("plugin/com¹.txt"), untar.ErrUnsafe},
		"duplicate through Files/":       {[]entry{plugin, {name: "Files/plugin/plugin", body: "evil"}}, untar.ErrUnsafe},
		"file beneath a file":            {[]entry{plugin, {name: "plugin/plugin/x", body: "evil"}}, untar.ErrUnsafe},
		"file over a folder":             {[]entry{{name: "plugin/x/y", body: "a"}, {name: "plugin/x", body: "b"}, plugin}, untar.ErrUnsafe},
		"whiteout":                       {[]entry{plugin, {name: "plugin/.wh.x"}}, untar.ErrUnsafe},
		"reserved name":                  {at("plugin/Fleeting-Plugin.receipt.JSON"), untar.ErrUnsafe},
		"deep nesting":                   {at("plugin/" + strings.Repeat("d/", 40) + "x"), untar.ErrUnsafe},
		"long name":                      {at("plugin/" + strings.Repeat("x", 300)), untar.ErrUnsafe},
		"very long name":                 {at("plugin/" + strings.Repeat("x/", 3000) + "x"), untar.ErrUnsafe},
		"sparse by PAX":                  {[]entry{{name: "plugin/plugin", body: "ELF", pax: map[string]string{"GNU.sparse.x": "1"}}}, untar.ErrUnsafe},
		"only a whiteout of the program": {[]entry{{name: "plugin/.wh.plugin"}}, untar.ErrUnsafe},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outside := t.TempDir()
			dir := filepath.Join(outside, "a", "b")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			blob := gzipped(t, archiveOf(t, test.entries))
			_, err := extract(t, dir, bytes.NewReader(blob), untar.Options{
				Selection: untar.Plugin("plugin"), Size: int64(len(blob)),
			})
			if !errors.Is(err, test.want) {
				t.Errorf("got %v; want %v", err, test.want)
			}
			onlyBeneath(t, outside, dir)
		})
	}
}

// onlyBeneath fails if anything exists in outside that is neither dir nor in it nor above it.
func onlyBeneath(t *testing.T, outside, dir string) {
	t.Helper()
	err := filepath.WalkDir(outside, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !strings.HasPrefix(dir, path) && !strings.HasPrefix(path, dir+string(filepath.Separator)) {
			t.Errorf("written outside: %s", path)
		}
		if err == nil && !d.IsDir() && !d.Type().IsRegular() {
			t.Errorf("not a regular file: %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRemovedByLayer(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"app/.wh.x", ".wh.app", "app/.wh..wh..opq"} {
		blob := gzipped(t, archiveOf(t, []entry{{name: name}}))
		_, err := extract(t, t.TempDir(), bytes.NewReader(blob), untar.Options{Selection: untar.Single("/app/x", "plugin"), Size: int64(len(blob))})
		if !errors.Is(err, untar.ErrUnsafe) {
			t.Errorf("%s: got %v; want ErrUnsafe", name, err)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("\x00", 40<<20)
	bomb := archiveOf(t, []entry{{name: "plugin/plugin", body: zeros}})
	var many []entry
	for i := range 50 {
		many = append(many, entry{name: fmt.Sprintf("plugin/%d", i), body: "x"})
	}
	for name, test := range map[string]struct {
		blob   []byte
		limits untar.Limits
	}{
		"C2c ratio of a gzip bomb": {gzipped(t, bomb), untar.Limits{}},
		"ratio of a zstd bomb":     {zstded(t, bomb), untar.Limits{}},
		"bytes":                    {gzipped(t, bomb), untar.Limits{Bytes: 1 << 20, Ratio: 1e6}},
		"bytes of a raw archive":   {bomb, untar.Limits{Bytes: 1 << 20, Ratio: 1e6}},
		"entries":                  {gzipped(t, archiveOf(t, many)), untar.Limits{Entries: 49}},
		"zeros behind the end":     {gzipped(t, append(archiveOf(t, []entry{{name: "plugin/plugin", body: "ELF"}}), zeros...)), untar.Limits{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			_, err := extract(t, dir, bytes.NewReader(test.blob), untar.Options{
				Selection: untar.Plugin("plugin"), Size: int64(len(test.blob)), Limits: test.limits,
			})
			if !errors.Is(err, untar.ErrLimit) {
				t.Errorf("got %v; want ErrLimit", err)
			}
			if size := bytesIn(t, dir); size > 17<<20 {
				t.Errorf("%d bytes were written", size)
			}
		})
	}
}

func TestCorrupt(t *testing.T) {
	t.Parallel()
	archive := archiveOf(t, []entry{{name: "plugin/plugin", body: strings.Repeat("ELF", 1000)}})
	zipped := gzipped(t, archive)
	for name, blob := range map[string][]byte{
		"empty":                           {},
		"not an archive":                  []byte(strings.Repeat("text ", 300)),
		"truncated gzip":                  zipped[:len(zipped)-6],
		"truncated in the middle":         zipped[:len(zipped)/2],
		"truncated raw":                   archive[:len(archive)-1500],
		"trailing data behind gzip":       append(bytes.Clone(zipped), "evil"...),
		"trailing data behind zstd":       append(zstded(t, archive), "evil"...),
		"trailing data behind the marker": gzipped(t, append(bytes.Clone(archive), "evil"...)),
		"a second archive":                gzipped(t, append(bytes.Clone(archive), archive...)),
		"gzip of gzip":                    gzipped(t, zipped),
		"flipped bit":                     flip(zipped, len(zipped)/2),
		"flipped checksum":                flip(zipped, len(zipped)-7),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := extract(t, t.TempDir(), bytes.NewReader(blob), untar.Options{Selection: untar.Plugin("plugin"), Size: int64(len(blob))})
			if !errors.Is(err, untar.ErrCorrupt) {
				t.Errorf("got %v; want ErrCorrupt", err)
			}
		})
	}
}

func TestGzipMembers(t *testing.T) {
	t.Parallel()
	archive := archiveOf(t, []entry{{name: "plugin/plugin", body: strings.Repeat("ELF", 1000)}})
	blob := append(gzipped(t, archive[:700]), gzipped(t, archive[700:])...)
	if _, err := extract(t, t.TempDir(), bytes.NewReader(blob), untar.Options{Selection: untar.Plugin("plugin"), Size: int64(len(blob))}); err != nil {
		t.Fatal(err)
	}
}

// TestSourceError holds that the error of the reader is the one that comes out,
// also when it comes instead of the end: that is where digests are compared.
func TestSourceError(t *testing.T) {
	t.Parallel()
	mismatch := errors.New("digest mismatch")
	for name, compress := range encodings() {
		blob := compress(t, archiveOf(t, []entry{{name: "plugin/plugin", body: "ELF"}}))
		for _, cut := range []int{len(blob), len(blob) / 2, 0} {
			r := io.MultiReader(bytes.NewReader(blob[:cut]), iotest.ErrReader(mismatch))
			_, err := extract(t, t.TempDir(), r, untar.Options{Selection: untar.Plugin("plugin"), Size: int64(len(blob))})
			if !errors.Is(err, mismatch) || errors.Is(err, untar.ErrCorrupt) {
				t.Errorf("%s after %d bytes: got %v; want the error of the source", name, cut, err)
			}
		}
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	_, err = untar.Extract(ctx, root, bytes.NewReader(gzipped(t, nil)), untar.Options{Selection: untar.Plugin("plugin")})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func FuzzExtract(f *testing.F) {
	for _, entries := range [][]entry{
		{{name: "plugin/plugin", body: "ELF", mode: 0o755}},
		{{name: "Files/plugin/plugin", body: "MZ"}, {name: "../x", body: "evil"}},
		{{name: "plugin/a", kind: tar.TypeSymlink, link: "/tmp"}, {name: "plugin/a/x", body: "x"}},
	} {
		archive := archiveOf(f, entries)
		f.Add(archive)
		f.Add(gzipped(f, archive))
		f.Add(zstded(f, archive))
	}
	f.Fuzz(func(t *testing.T, blob []byte) {
		t.Helper()
		outside := t.TempDir()
		dir := filepath.Join(outside, "in")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		opts := untar.Options{Selection: untar.Plugin("plugin"), Size: int64(len(blob)), Limits: untar.Limits{Bytes: 1 << 20}}
		files, err := extract(t, dir, bytes.NewReader(blob), opts)
		onlyBeneath(t, outside, dir)
		if err == nil && len(files) == 0 {
			t.Error("accepted without files")
		}
	})
}
