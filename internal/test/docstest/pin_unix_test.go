//go:build unix

package docstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pinTool stands for fleeting-plugin: it verifies what is named a, b or c, each with
// a digest of its own, and nothing else.
const pinTool = `#!/usr/bin/env bash
set -euo pipefail
[[ $1 == verify && $2 == --all-platforms ]] || { echo "unexpected: $*" >&2; exit 9; }
letter=${!#}; letter=${letter##*/}; letter=${letter%%:*}
[[ $letter == [abc] ]] || { echo "not signed: ${!#}" >&2; exit 3; }
printf 'digest  sha256:%064d\n' | tr 0 "$letter"
`

// TestPinForms: docs/kubernetes/pin finds an image however YAML writes it, changes
// nothing else, and prints nothing if one does not verify. That it takes what the
// real tool says is tested by internal/test/e2e.
func TestPinForms(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs(filepath.Join(root, "docs", "kubernetes", "pin"))
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "fleeting-plugin"), []byte(pinTool), 0o755); err != nil {
		t.Fatal(err)
	}
	digest := func(letter string) string { return "@sha256:" + strings.Repeat(letter, 64) }
	tests := []struct {
		name, manifest, want string
	}{
		{"plain", "image: r.test/x/a:1@sha256:DIGEST\n", "image: r.test/x/a:1" + digest("a") + "\n"},
		{"double quotes", `image: "r.test/x/a:1@sha256:DIGEST"`, `image: "r.test/x/a:1` + digest("a") + `"`},
		{"single quotes", `image: 'r.test/x/a:1@sha256:DIGEST' # ours`, `image: 'r.test/x/a:1` + digest("a") + `' # ours`},
		{"in braces", `{image: r.test/x/a:1@sha256:DIGEST, name: "x"}`, `{image: r.test/x/a:1` + digest("a") + `, name: "x"}`},
		{"JSON", `{"image":"r.test/x/a:1@sha256:DIGEST"}`, `{"image":"r.test/x/a:1` + digest("a") + `"}`},
		{"a list", `["r.test/x/a:1@sha256:DIGEST","r.test/x/b:1@sha256:DIGEST"]`, `["r.test/x/a:1` + digest("a") + `","r.test/x/b:1` + digest("b") + `"]`},
		{"Windows' line ends", "image: r.test/x/a:1@sha256:DIGEST\r\n", "image: r.test/x/a:1" + digest("a") + "\r\n"},
		{"a port", `image: "r.test:5000/x/a:1@sha256:DIGEST"`, `image: "r.test:5000/x/a:1` + digest("a") + `"`},
		{"one name at the end of another", "- r.test/x/a:1@sha256:DIGEST\n- \"mirror/r.test/x/a:1@sha256:DIGEST\"\n", "- r.test/x/a:1" + digest("a") + "\n- \"mirror/r.test/x/a:1" + digest("a") + "\"\n"},
		{"twice", "r.test/x/a:1@sha256:DIGEST 'r.test/x/a:1@sha256:DIGEST'", "r.test/x/a:1" + digest("a") + " 'r.test/x/a:1" + digest("a") + "'"},
		{"a dot is a dot", "r.test/x/a:1.2@sha256:DIGEST rxtest/x/a:1x2@sha256:" + strings.Repeat("1", 64), "r.test/x/a:1.2" + digest("a") + " rxtest/x/a:1x2@sha256:" + strings.Repeat("1", 64)},
		{"one does not verify", "'r.test/x/a:1@sha256:DIGEST' 'r.test/x/d:1@sha256:DIGEST'", ""},
		{"none", "image: r.test/x/a:1", ""},
		{"no name", `image: "@sha256:DIGEST"`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "manifest.yaml")
			if err := os.WriteFile(file, []byte(tt.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), script, file)
			cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			var said strings.Builder
			cmd.Stderr = &said
			out, err := cmd.Output()
			if (err == nil) != (tt.want != "") {
				t.Errorf("error = %v: %s", err, said.String())
			}
			// GNU's sed ends the last line as it was, others with a line end.
			if diff := cmp.Diff(strings.TrimSuffix(tt.want, "\n"), strings.TrimSuffix(string(out), "\n")); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
		})
	}
}
