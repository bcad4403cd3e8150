package e2e_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChangesThatMatter asks the script that decides whether a pull request's
// changes need the end-to-end tests.
func TestChangesThatMatter(t *testing.T) {
	t.Parallel()
	matter := []string{
		"plugin/group.go", "installer/internal/store/store.go", "internal/openstacksim/any.json", "internal/toolimage/layout.go",
		"internal/test/e2e/install.sh", "internal/test/e2e/kube/go.mod", "internal/test/e2e/pod_test.go", "internal/dist/packages/main.go",
		"cmd/openstack-simulator/run.go", "internal/test/e2e/runner/absent/moa/moa.go",
		"docs/kubernetes/pin", "docs/monitoring/rules.yaml", "docs/guides/kubernetes.md", "go.sum", "Makefile", ".ci/e2e",
	}
	others := []string{
		"README.md", "docs/guides/monitor.md", "docs/README.md", "docs/tutorials/first-job.md", "plugin/group_test.go", "templates/publish.yml",
		"internal/demo/demo.go", "internal/tools/go.mod", ".github/workflows/release.yml", "plugins/group.go",
	}
	for name, test := range map[string]struct{ changed, want []string }{
		"all":     {append(matter, others...), matter},
		"none":    {others, nil},
		"nothing": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "../../../.ci/affects-e2e")
			cmd.Stdin = strings.NewReader(strings.Join(test.changed, "\n") + "\n")
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if diff := cmp.Diff(strings.Join(test.want, "\n"), strings.TrimSpace(string(out))); diff != "" || stderr.Len() > 0 {
				t.Errorf("(-want +got):\n%s%s", diff, stderr.String())
			}
			if (err == nil) != (len(test.want) > 0) {
				t.Errorf("got %v", err)
			}
		})
	}
}
