package dist

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// TestOneBuild: what build information tells of two builds.
func TestOneBuild(t *testing.T) {
	t.Parallel()
	main := func(version, commit string) *debug.BuildInfo {
		return &debug.BuildInfo{
			GoVersion: "go1.26.8", Path: "example.com/plugin", Main: debug.Module{Path: "example.com/plugin", Version: version},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: commit}},
			Deps:     []*debug.Module{{Path: "example.com/a", Version: "v1.0.0"}},
		}
	}
	with := func(change func(*debug.BuildInfo)) *debug.BuildInfo {
		info := main("(devel)", "")
		change(info)
		return info
	}
	for name, c := range map[string]struct {
		a, b     *debug.BuildInfo
		err, say string
	}{
		"the same":            {main("v1.0.0", "abc"), main("v1.0.0", "abc"), "", ""},
		"one is dirty":        {main("v1.0.0", "abc"), main("v1.0.0+dirty", "abc"), "", ""},
		"one does not say it": {main("(devel)", ""), main("v1.0.0", "abc"), "", ""},
		"none is Go":          {nil, main("v1.0.0", "abc"), "", ""},
		"other commit":        {main("v1.0.0", "abc"), main("v1.0.0", "def"), "commit def, and commit abc there", ""},
		"other version":       {main("v1.0.0", ""), main("v1.0.1", ""), "version v1.0.1 of example.com/plugin, and v1.0.0 there", ""},
		"other Go":            {main("(devel)", ""), with(func(i *debug.BuildInfo) { i.GoVersion = "go1.25.0" }), "", "built with go1.25.0"},
		"other package":       {main("(devel)", ""), with(func(i *debug.BuildInfo) { i.Path += "/cmd" }), "", "package example.com/plugin/cmd"},
		"other module":        {main("(devel)", ""), with(func(i *debug.BuildInfo) { i.Deps[0].Version = "v1.1.0" }), "", "module example.com/a v1.1.0, and v1.0.0 there"},
		"changes uncommitted": {main("v1.0.0", "abc"), with(func(i *debug.BuildInfo) {
			i.Settings = []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}}
		}), "", "arm64: built from a checkout with changes that are not committed"},
		"more modules": {main("(devel)", ""), with(func(i *debug.BuildInfo) { i.Deps = append(i.Deps, &debug.Module{Path: "example.com/b"}) }), "", ""},
	} {
		var d Dist
		for arch, info := range map[string]*debug.BuildInfo{"amd64": c.a, "arm64": c.b} {
			p, err := artifact.ParsePlatform("linux/" + arch)
			if err != nil {
				t.Fatal(err)
			}
			d.inputs = append(d.inputs, Input{platform: p, info: info, files: []File{{name: "plugin", path: arch}}})
		}
		if d.inputs[0].platform.Arch() != "amd64" {
			d.inputs[0], d.inputs[1] = d.inputs[1], d.inputs[0]
		}
		warnings, err := d.oneBuild()
		switch {
		case (err != nil) != (c.err != ""), err != nil && !strings.Contains(err.Error(), c.err):
			t.Errorf("%s: error %v, want %q", name, err, c.err)
		case (len(warnings) > 0) != (c.say != ""), c.say != "" && !strings.Contains(warnings[0].String(), c.say):
			t.Errorf("%s: warnings %v, want %q", name, warnings, c.say)
		}
	}
}

// TestHolds finds a text wherever it lies in a file, but not the version of
// another module.
func TestHolds(t *testing.T) {
	t.Parallel()
	pad := func(n int) []byte { return bytes.Repeat([]byte{'1'}, n) }
	for name, c := range map[string]struct {
		content []byte
		want    bool
	}{
		"empty":                 {nil, false},
		"alone":                 {[]byte("1.2.3"), true},
		"with v":                {[]byte("v1.2.3"), true},
		"between other text":    {[]byte("0.1.2.34"), true},
		"another":               {[]byte("1.2.4"), false},
		"of a module":           {[]byte("dep\texample.com/a\tv1.2.3\th1:"), false},
		"of a source":           {[]byte("example.com/a@v1.2.3/a.go"), false},
		"of a module, and else": {[]byte("dep\texample.com/a\tv1.2.3\th1:1.2.3"), true},
	} {
		for _, before := range []int{0, copyBuffer - 3, copyBuffer - 1, copyBuffer, copyBuffer + 5, 2*copyBuffer + 3} {
			path := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path, append(pad(before), c.content...), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := holds(t.Context(), path, "1.2.3")
			if err != nil || got != c.want {
				t.Errorf("%s after %d bytes: %v, %v", name, before, got, err)
			}
		}
	}
}
