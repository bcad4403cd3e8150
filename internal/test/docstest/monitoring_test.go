package docstest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// ruleGroup is a group of alert rules, in a file of Prometheus and in a
// PrometheusRule of its operator alike.
type ruleGroup struct {
	Name  string `yaml:"name"`
	Rules []struct {
		Alert       string            `yaml:"alert"`
		Expr        string            `yaml:"expr"`
		For         string            `yaml:"for"`
		Labels      map[string]string `yaml:"labels"`
		Annotations map[string]string `yaml:"annotations"`
	} `yaml:"rules"`
}

// TestAlertRulesAgree: Kubernetes' users get the rules that are tested, each is in
// the page, and one of them needs no metric of the manager's own. internal/test/e2e has
// Prometheus evaluate them.
func TestAlertRulesAgree(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(root, "docs", "monitoring", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []ruleGroup `yaml:"groups"`
	}
	strict(t, content, &file)
	var monitor struct {
		object `yaml:",inline"`
		Spec   struct {
			Selector  struct{ MatchLabels map[string]string } `yaml:"selector"`
			Endpoints []struct{ Port string }                 `yaml:"podMetricsEndpoints"`
		} `yaml:"spec"`
	}
	var rule struct {
		object `yaml:",inline"`
		Spec   struct {
			Groups []ruleGroup `yaml:"groups"`
		} `yaml:"spec"`
	}
	documents := strings.Split(kubernetesFile(t, "monitoring.yaml"), "\n---\n")
	if len(documents) != 2 {
		t.Fatalf("%d documents, not two", len(documents))
	}
	if err := yaml.Unmarshal([]byte(documents[0]), &monitor); err != nil {
		t.Fatal(err)
	}
	strict(t, []byte(documents[1]), &rule)
	if monitor.Kind != "PodMonitor" || rule.Kind != "PrometheusRule" || monitor.APIVersion != rule.APIVersion || rule.APIVersion != "monitoring.coreos.com/v1" {
		t.Errorf("kinds %s and %s of %s", monitor.Kind, rule.Kind, rule.APIVersion)
	}
	if diff := cmp.Diff(file.Groups, rule.Spec.Groups); diff != "" {
		t.Errorf("rules (-docs/monitoring/rules.yaml +docs/kubernetes/monitoring.yaml):\n%s", diff)
	}
	manifest := kubernetesFile(t, "init-container.yaml")
	if len(monitor.Spec.Endpoints) != 1 || !strings.Contains(manifest, "- {name: "+monitor.Spec.Endpoints[0].Port+", containerPort: 9252}") {
		t.Errorf("the manifest has no port of %v", monitor.Spec.Endpoints)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "guides", "monitor.md"))
	if err != nil {
		t.Fatal(err)
	}
	alone := 0
	for _, group := range file.Groups {
		for _, one := range group.Rules {
			if !bytes.Contains(page, []byte("`"+one.Alert+"`")) {
				t.Errorf("monitor.md does not name %s", one.Alert)
			}
			if one.Labels["severity"] == "" || one.Annotations["summary"] == "" || one.Annotations["description"] == "" {
				t.Errorf("%s has no severity, summary or description", one.Alert)
			}
			if strings.HasPrefix(one.Expr, "absent(") {
				alone++
			}
		}
	}
	if alone == 0 {
		t.Error("no rule fires when all metrics are gone")
	}
	for _, named := range regexp.MustCompile("`(Fleeting[A-Z]\\w+)`").FindAllStringSubmatch(string(page), -1) {
		if !bytes.Contains(content, []byte("alert: "+named[1]+"\n")) {
			t.Errorf("monitor.md names %s, and there is no such rule", named[1])
		}
	}
}

// object is what every object of Kubernetes has.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace"`
	} `yaml:"metadata"`
}

// strict reads one document without unknown keys.
func strict(t *testing.T, content []byte, into any) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		t.Fatal(err)
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Fatalf("more than one document: %v", err)
	}
}
