package kube

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// chartValues are the values of the runner's Helm chart that we document:
// https://gitlab.com/gitlab-org/charts/gitlab-runner/-/blob/main/values.yaml.
type chartValues struct {
	InitContainers []corev1.Container        `json:"initContainers"`
	Volumes        []corev1.Volume           `json:"volumes"`
	VolumeMounts   []corev1.VolumeMount      `json:"volumeMounts"`
	ExtraEnv       map[string]string         `json:"extraEnv"`
	Strategy       appsv1.DeploymentStrategy `json:"strategy"`
}

// renderValues puts values into a Deployment with what the chart sets by
// default: user 100, group 65533, no privileges. Unknown values are refused.
func renderValues(values []byte) ([]byte, error) {
	var v chartValues
	if err := yaml.UnmarshalStrict(values, &v); err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	user, group, yes, no := int64(100), int64(65533), true, false
	labels := map[string]string{"app": "gitlab-runner"}
	runner := corev1.Container{
		Name: "gitlab-runner", Image: "registry.gitlab.com/gitlab-org/gitlab-runner:alpine-v19.3.0",
		VolumeMounts: v.VolumeMounts,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no,
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	for name, value := range v.ExtraEnv {
		runner.Env = append(runner.Env, corev1.EnvVar{Name: name, Value: value})
	}
	return yaml.Marshal(appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "gitlab-runner"},
		Spec: appsv1.DeploymentSpec{
			Strategy: v.Strategy,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					InitContainers: v.InitContainers,
					Containers:     []corev1.Container{runner},
					Volumes:        v.Volumes,
					SecurityContext: &corev1.PodSecurityContext{
						RunAsUser: &user, FSGroup: &group, RunAsNonRoot: &yes,
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
				},
			},
		},
	})
}
