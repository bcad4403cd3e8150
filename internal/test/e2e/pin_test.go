//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testPin pins the documentation's manifests as the guide says, with the script
// beside them: to what verifies, and to nothing else.
func testPin(t *testing.T, l *lab) {
	bin := filepath.Join(l.dir, "pin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(l.dir, "tool", architectures()[0]), filepath.Join(bin, "fleeting-plugin")); err != nil {
		t.Fatal(err)
	}
	_, stranger := newSigner(t)
	for _, name := range []string{"init-container.yaml", "verifying-init-container.yaml", "image-volume.yaml", "values.yaml", "values-image-volume.yaml", "openshift-runner.yaml"} {
		open := l.local(documentation(t, name))
		file := filepath.Join(bin, name)
		writeFile(t, file, open)
		pin := func(t *testing.T, key []byte) (string, string, error) {
			t.Helper()
			policy := filepath.Join(t.TempDir(), "policy.toml")
			writeFile(t, policy, fmt.Sprintf("version = 1\n[[rule]]\nscope = \"%s/%s/**\"\n[[rule.key]]\npem = '''\n%s'''\n", l.registry.Host, owner, key))
			env := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "FLEETING_PLUGIN_POLICY=" + policy}
			return try(t, env, filepath.Join(docs, "kubernetes", "pin"), file)
		}
		l.report.check(t, "docs/kubernetes/pin", "pins "+name+", and not what another signed", func(t *testing.T) {
			out, all, err := pin(t, l.publicKey)
			if want := l.pinned(open); err != nil || out != want || strings.Contains(out, placeholder) {
				t.Errorf("%v, %s\nwant:\n%s", err, all, want)
			}
			if out, all, err := pin(t, stranger); err == nil || out != "" {
				t.Errorf("by another's key: %v, %s", err, all)
			}
		})
	}
}
