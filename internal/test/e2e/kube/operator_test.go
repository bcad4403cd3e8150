package kube_test

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// operatorRunner is what we set of a Runner, as GitLab documents it:
// https://docs.gitlab.com/runner/configuration/configuring_runner_operator/
type operatorRunner struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		GitLabURL      string          `json:"gitlabUrl"`
		Token          string          `json:"token"`
		Config         string          `json:"config"`
		Concurrent     int             `json:"concurrent"`
		PodSpec        []operatorPatch `json:"podSpec"`
		DeploymentSpec []operatorPatch `json:"deploymentSpec"`
	} `json:"spec"`
}

type operatorPatch struct {
	Name      string `json:"name"`
	Patch     string `json:"patch"`
	PatchType string `json:"patchType"`
}

// operate patches a Deployment as the documentation says that the operator does:
// first its specification, then its Pod's. What the operator's own looks like is
// not documented, but for the name of the container, which its guide to metrics
// has; the rest of it here is the least that is valid, and a rolling update.
func operate(document []byte) ([]byte, error) {
	var in operatorRunner
	if err := yaml.UnmarshalStrict(document, &in); err != nil {
		return nil, err
	}
	no, yes, quarter, labels := false, true, intstr.FromString("25%"), map[string]string{"app": "runner"}
	own := appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: in.Name, Namespace: in.Namespace},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &quarter, MaxUnavailable: &quarter},
			},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
				Containers: []corev1.Container{{
					Name: "runner", Image: "registry.gitlab.com/gitlab-org/ci-cd/gitlab-runner-ubi-images/gitlab-runner-ocp:v19.3.0",
					Env:             []corev1.EnvVar{{Name: "RUNNER_EXECUTOR", Value: "kubernetes"}},
					SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				}},
			}},
		},
	}
	if err := patchAll(&own.Spec, in.Spec.DeploymentSpec); err != nil {
		return nil, err
	}
	if err := patchAll(&own.Spec.Template.Spec, in.Spec.PodSpec); err != nil {
		return nil, err
	}
	return yaml.Marshal(own)
}

// patchAll applies strategic patches, each of which has to be of the type of what
// it patches.
func patchAll[T any](to *T, patches []operatorPatch) error {
	for _, p := range patches {
		if p.PatchType != "strategic" {
			return fmt.Errorf("%s: nothing here applies %s", p.Name, p.PatchType)
		}
		patch, err := yaml.YAMLToJSONStrict([]byte(p.Patch))
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		before, err := json.Marshal(to)
		if err != nil {
			return err
		}
		after, err := strategicpatch.StrategicMergePatch(before, patch, *to)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		var patched T
		if err := yaml.UnmarshalStrict(after, &patched); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		*to = patched
	}
	return nil
}
