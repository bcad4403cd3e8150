package kube_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// translate makes of a document the objects that the API server sees: of values
// what the chart makes of them, of a Runner what the operator does. What is of
// another program makes none.
func translate(name string, document []byte) ([][]byte, error) {
	switch {
	case strings.Contains(name, "values"):
		return one(render(document))
	case bytes.Contains(document, []byte("apiVersion: apps.gitlab.com/")):
		return one(operate(document))
	case bytes.Contains(document, []byte("apiVersion: monitoring.coreos.com/")):
		return nil, nil // of the Prometheus operator: internal/test/docstest reads it, promtool evaluates it
	case strings.HasSuffix(name, patchFile):
		return patchShapes(document)
	case bytes.Contains(document, []byte("apiVersion:")):
		return [][]byte{document}, nil
	default:
		return nil, nil
	}
}

func one(document []byte, err error) ([][]byte, error) {
	if err != nil {
		return nil, err
	}
	return [][]byte{document}, nil
}

// chart is what we set of the values of the runner's chart, each under the
// chart's name for it: https://gitlab.com/gitlab-org/charts/gitlab-runner, whose
// version 0.86.0 was read, and initContainers, which came later.
type chart struct {
	GitLabURL                    string                      `json:"gitlabUrl"`
	Replicas                     *int32                      `json:"replicas"`
	Strategy                     appsv1.DeploymentStrategy   `json:"strategy"`
	PodAnnotations               map[string]string           `json:"podAnnotations"`
	Concurrent                   int                         `json:"concurrent"`
	Metrics                      chartMetrics                `json:"metrics"`
	Runners                      chartRunners                `json:"runners"`
	AutomountServiceAccountToken *bool                       `json:"automountServiceAccountToken"`
	PodSecurityContext           corev1.PodSecurityContext   `json:"podSecurityContext"`
	SecurityContext              corev1.SecurityContext      `json:"securityContext"`
	Resources                    corev1.ResourceRequirements `json:"resources"`
	InitContainers               []corev1.Container          `json:"initContainers"`
	Volumes                      []corev1.Volume             `json:"volumes"`
	VolumeMounts                 []corev1.VolumeMount        `json:"volumeMounts"`
	ExtraEnv                     map[string]string           `json:"extraEnv"`
}

type chartMetrics struct {
	Enabled bool `json:"enabled"`
}

type chartRunners struct {
	Name       string  `json:"name"`
	Executor   string  `json:"executor"`
	Secret     string  `json:"secret"`
	Config     *string `json:"config"`
	ConfigPath string  `json:"configPath"`
}

// parseChart reads values strictly, over the chart's defaults.
func parseChart(values []byte) (chart, error) {
	user, group, no, yes := int64(100), int64(65533), false, true
	in := chart{
		PodSecurityContext: corev1.PodSecurityContext{RunAsUser: &user, FSGroup: &group},
		SecurityContext: corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &no, RunAsNonRoot: &yes, Privileged: &no,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	return in, yaml.UnmarshalStrict(values, &in)
}

// render puts values where the chart's Deployment has them, among what is the
// chart's own.
func render(values []byte) ([]byte, error) {
	in, err := parseChart(values)
	if err != nil {
		return nil, err
	}
	const home = "/home/gitlab-runner/.gitlab-runner"
	memory := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}
	token := []corev1.KeyToPath{{Key: "runner-registration-token", Path: "runner-registration-token"}, {Key: "runner-token", Path: "runner-token"}}
	runner := corev1.Container{
		Name: "gitlab-runner", Image: "registry.gitlab.com/gitlab-org/gitlab-runner:alpine-v19.3.0", ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"/usr/bin/dumb-init", "--", "/bin/bash", "/configmaps/entrypoint"},
		SecurityContext: &in.SecurityContext, Resources: in.Resources,
		Env:   []corev1.EnvVar{{Name: "CI_SERVER_URL", Value: in.GitLabURL}, {Name: "RUNNER_EXECUTOR", Value: in.Runners.Executor}},
		Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9252}},
		VolumeMounts: append([]corev1.VolumeMount{
			{Name: "projected-secrets", MountPath: "/secrets"}, {Name: "etc-gitlab-runner", MountPath: home}, {Name: "configmaps", MountPath: "/configmaps"},
		}, in.VolumeMounts...),
	}
	for _, name := range slices.Sorted(maps.Keys(in.ExtraEnv)) {
		runner.Env = append(runner.Env, corev1.EnvVar{Name: name, Value: in.ExtraEnv[name]})
	}
	volumes := append([]corev1.Volume{
		{Name: "runner-secrets", VolumeSource: memory},
		{Name: "etc-gitlab-runner", VolumeSource: memory},
		{Name: "projected-secrets", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: in.Runners.Secret}, Items: token}},
		}}}},
		{Name: "configmaps", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "gitlab-runner"}}}},
	}, in.Volumes...)
	hour, labels := int64(3600), map[string]string{"app": "gitlab-runner"}
	return yaml.Marshal(&appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "gitlab-runner", Namespace: "gitlab-runner"},
		Spec: appsv1.DeploymentSpec{
			Replicas: in.Replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Strategy: in.Strategy,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: in.PodAnnotations}, Spec: corev1.PodSpec{
				AutomountServiceAccountToken: in.AutomountServiceAccountToken, SecurityContext: &in.PodSecurityContext,
				TerminationGracePeriodSeconds: &hour, InitContainers: in.InitContainers, Containers: []corev1.Container{runner}, Volumes: volumes,
			}},
		},
	})
}
