package notices_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/modcache"
	"github.com/radome-io/fleeting-plugin-openstack/internal/notices"
	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// installation writes files below a module cache and a Go installation.
func installation(t *testing.T, files map[string]string) modcache.Places {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return modcache.Places{ModuleCache: filepath.Join(dir, "mod"), GoRoot: filepath.Join(dir, "go")}
}

func executable(modules ...sbom.Module) sbom.Executable {
	return sbom.Executable{Name: "plugin", GoVersion: "go1.26.0 X:some", Modules: modules}
}

const collected = `The licences of this program and of everything that is linked into it

The list is that of the program's build information (go version -m); std is the
Go standard library. Below it are the licences, notices and patents of all, each
text once.

Module, version, licence:
std go1.26.0 BSD-3-Clause
example.com/A v1.0.0 MPL-2.0
example.com/b v1.2.0 Apache-2.0 OR GPL-2.0
example.com/folder - NOASSERTION

The source code of these is available to you under the terms of their licences:
from the repository that the module's path names, at the tag that its version
names, or as the archive below. Each is linked as it is there, unchanged.

example.com/A v1.0.0
  https://proxy.golang.org/example.com/!a/@v/v1.0.0.zip

--------------------------------------------------------------------------------
this program
--------------------------------------------------------------------------------

our own

--------------------------------------------------------------------------------
std go1.26.0: LICENSE
--------------------------------------------------------------------------------

of Go

--------------------------------------------------------------------------------
std go1.26.0: PATENTS
--------------------------------------------------------------------------------

a grant

--------------------------------------------------------------------------------
example.com/A v1.0.0: LICENSE
example.com/b v1.2.0: sub/LICENSE
--------------------------------------------------------------------------------

one
text

--------------------------------------------------------------------------------
example.com/b v1.2.0: COPYING
--------------------------------------------------------------------------------

another

--------------------------------------------------------------------------------
example.com/b v1.2.0: NOTICE
--------------------------------------------------------------------------------

who wrote it

--------------------------------------------------------------------------------
example.com/folder -: LICENSE
--------------------------------------------------------------------------------

given

`

func TestCollect(t *testing.T) {
	t.Parallel()
	places := installation(t, map[string]string{
		"go/LICENSE": "of Go\n", "go/PATENTS": "a grant\n", "go/src/vendor/x/LICENSE": "not asked for",
		"mod/example.com/!a@v1.0.0/LICENSE":     "\ufeffone  \r\ntext\r\n\r\n",
		"mod/example.com/b@v1.2.0/COPYING":      "another",
		"mod/example.com/b@v1.2.0/NOTICE":       "who wrote it\n",
		"mod/example.com/b@v1.2.0/sub/LICENSE":  "one\ntext\n",
		"mod/example.com/b@v1.2.0/testdata/ALL": "nothing",
	})
	a := sbom.Module{Path: "example.com/A", Version: "v1.0.0", License: "MPL-2.0"}
	b := sbom.Module{Path: "example.com/b", Version: "v1.2.0", License: "Apache-2.0 OR GPL-2.0"}
	folder := sbom.Module{Path: "example.com/folder"}
	opts := notices.Options{Places: places, Own: []byte("our own\n"), Given: map[string][]byte{"example.com/folder": []byte("given")}}
	text, err := notices.Collect(opts, executable(b, folder), executable(a, b))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(collected, string(text)); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	want := notices.Licenses{"std@go1.26.0": "BSD-3-Clause", "example.com/A@v1.0.0": "MPL-2.0", "example.com/b@v1.2.0": "Apache-2.0 OR GPL-2.0"}
	for name, text := range map[string][]byte{"as written": text, "with Windows' line ends": []byte(strings.ReplaceAll(string(text), "\n", "\r\n"))} {
		if diff := cmp.Diff(want, notices.ParseLicenses(text)); diff != "" {
			t.Errorf("licences, %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCollectRefuses: everything without a text is named at once.
func TestCollectRefuses(t *testing.T) {
	t.Parallel()
	whole := map[string]string{
		"go/LICENSE":                             "of Go",
		"mod/example.com/bare@v1.0.0/main.go":    "package main",
		"mod/example.com/notice@v1.0.0/NOTICE":   "a notice is no licence",
		"mod/example.com/empty@v1.0.0/LICENSE":   " \n",
		"mod/example.com/below@v1.0.0/x/COPYING": "of another's code",
		"mod/example.com/good@v1.0.0/LICENSE":    "text",
	}
	module := func(name string) sbom.Module { return sbom.Module{Path: "example.com/" + name, Version: "v1.0.0"} }
	places := installation(t, whole)
	tests := []struct {
		name string
		opts notices.Options
		exe  sbom.Executable
		is   error
		want []string
	}{
		{
			"modules",
			notices.Options{Places: places},
			executable(module("bare"), module("notice"), module("empty"), module("below"), module("gone"), module("good"), sbom.Module{Path: "example.com/folder"}),
			notices.ErrNoText,
			[]string{
				"example.com/bare@v1.0.0: its folder has no file", "example.com/notice@v1.0.0: its folder", "example.com/empty@v1.0.0: its folder",
				"example.com/below@v1.0.0: its folder", "example.com/gone@v1.0.0: it is not in the module cache", "example.com/folder: it comes from a folder",
			},
		},
		{
			"no Go",
			notices.Options{Places: modcache.Places{ModuleCache: places.ModuleCache, GoRoot: places.ModuleCache}},
			executable(module("good")), notices.ErrNoText,
			[]string{"the standard library of go1.26.0: there is no LICENSE in GOROOT"},
		},
		{
			"a text for nothing",
			notices.Options{Places: places, Given: map[string][]byte{"example.com/godo": []byte("text")}},
			executable(module("good")), notices.ErrUnused,
			[]string{"example.com/godo, for which a text is given"},
		},
		{"not built by Go", notices.Options{Places: places}, sbom.Executable{Name: "plugin"}, sbom.ErrNoBuildInfo, []string{"plugin: "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text, err := notices.Collect(tt.opts, tt.exe)
			if !errors.Is(err, tt.is) || text != nil {
				t.Fatalf("error = %v, want %v", err, tt.is)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error = %v, want %q in it", err, want)
				}
			}
			if strings.Contains(err.Error(), "/good@") {
				t.Errorf("error = %v names a module with a text", err)
			}
		})
	}
	if _, err := notices.Collect(notices.Options{Places: places}); !errors.Is(err, sbom.ErrNoBuildInfo) {
		t.Errorf("no executables: %v", err)
	}
}

func FuzzParseLicenses(f *testing.F) {
	f.Add([]byte(collected))
	f.Add([]byte("Module, version, licence:\na v1 MIT\n\n"))
	f.Add([]byte("Module, version, licence:\na v1 MIT\n"))
	f.Add([]byte("Module, version, licence:\na\nb v1\nc v1 \"MIT\"\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for key, license := range notices.ParseLicenses(text) {
			if license == "" || strings.ContainsAny(license, "\"\\<>\n\r\x00") || !strings.Contains(key, "@") {
				t.Errorf("%q: %q", key, license)
			}
		}
	})
}
