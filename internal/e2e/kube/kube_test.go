package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDocumentedManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../docs/kubernetes/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		if filepath.Base(file) == "values.yaml" {
			continue // of the Helm chart; TestHelmValues
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents, err := Check(content)
		if err != nil || documents == 0 {
			t.Errorf("%s: %d documents: %v", file, documents, err)
		}
		checked += documents
	}
	if checked < 2 {
		t.Errorf("only %d documents checked", checked)
	}
}

// TestHelmValues puts the values where the chart's template does, and judges
// the Deployment that results.
func TestHelmValues(t *testing.T) {
	t.Parallel()
	values, err := os.ReadFile("../../../docs/kubernetes/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	deployment, err := renderValues(values)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Check(deployment); err != nil {
		t.Errorf("%v\n%s", err, deployment)
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
	const safe = "  securityContext: {runAsNonRoot: true, runAsUser: 100, seccompProfile: {type: RuntimeDefault}}\n"
	const container = "{name: a, image: x, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"
	tests := []struct{ name, manifest, want string }{
		{"misspelt field", head + safe + "  containers: [" + container + ", volumeMount: []}]\n", `unknown field "spec.containers[0].volumeMount"`},
		{"duplicate field", head + "  hostNetwork: false\n  hostNetwork: false\n  containers: [" + container + "}]\n", "already set"},
		{"no container", head + safe + "  containers: []\n", "spec.containers: Required value"},
		{"unknown volume", head + safe + "  containers: [" + container + ", volumeMounts: [{name: nope, mountPath: /x}]}]\n", `Not found: "nope"`},
		{
			"sub path that leaves the volume",
			head + safe + "  containers: [" + container + ", volumeMounts: [{name: v, mountPath: /x, subPath: ../up}]}]\n  volumes: [{name: v, image: {reference: x}}]\n",
			"must not contain '..'",
		},
		{"image volume without a reference", head + safe + "  containers: [" + container + "}]\n  volumes: [{name: v, image: {pullPolicy: Always}}]\n", "spec.volumes[0].image.reference: Required value"},
		{"wrong pull policy", head + safe + "  containers: [" + container + ", imagePullPolicy: Sometimes}]\n", `Unsupported value: "Sometimes"`},
		{"runs as root", head + "  containers: [" + container + "}]\n", "restricted Pod Security standard"},
		{"another kind", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n", "not one that the documentation uses"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Check([]byte(tt.manifest))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
		})
	}
}
