//go:build e2e

package e2e_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAlerts has Prometheus evaluate the alert rules of the documentation over the
// series in the file beside them, and wants each rule to be missed there.
func TestAlerts(t *testing.T) {
	dir := t.TempDir()
	// The package starts a service where it is installed, so it is unpacked.
	run(t, nil, "bash", "-c", `cd "$1" && chmod 0755 . && { apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; }; } && dpkg-deb --extract prometheus_*.deb .`, "bash", dir)
	promtool := filepath.Join(dir, "usr", "bin", "promtool")
	t.Log(run(t, nil, promtool, "--version"))
	run(t, nil, promtool, "check", "rules", filepath.Join(docs, "monitoring", "rules.yaml"))
	rules := readFile(t, filepath.Join(docs, "monitoring", "rules.yaml"))
	evaluate := func(rules string) (string, error) {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "rules.yaml"), rules)
		writeFile(t, filepath.Join(dir, "rules-test.yaml"), readFile(t, filepath.Join(docs, "monitoring", "rules-test.yaml")))
		_, out, err := try(t, nil, promtool, "test", "rules", filepath.Join(dir, "rules-test.yaml"))
		return out, err
	}
	if out, err := evaluate(rules); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	names := regexp.MustCompile(`(?m)^      - alert: (\w+)$`).FindAllStringSubmatch(rules, -1)
	if len(names) < 10 {
		t.Fatalf("found %d rules", len(names))
	}
	for _, name := range names {
		other := strings.Replace(rules, "- alert: "+name[1]+"\n", "- alert: Other\n", 1)
		if out, err := evaluate(other); err == nil {
			t.Errorf("without %s, nothing is missed:\n%s", name[1], out)
		}
	}
	t.Logf("%d rules", len(names))
}
