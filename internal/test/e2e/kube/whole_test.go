package kube_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestEachShapeIsWhole: whichever of the files an operator takes, the runner finds
// the Secret's files and the plugin where config.toml and the runner look for
// them, is alone, and may end its jobs.
func TestEachShapeIsWhole(t *testing.T) {
	t.Parallel()
	wanted := map[string]bool{
		"init-container.yaml": true, "image-volume.yaml": true, "verifying-init-container.yaml": true,
		"values.yaml": true, "values-image-volume.yaml": true, "openshift-runner.yaml": true, rendered: true,
	}
	shapes := 0
	for path, content := range yamlOf(t) {
		name := filepath.Base(path)
		if !wanted[name] {
			continue
		}
		shapes++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := 0
			for _, document := range split(t, content) {
				objects, err := translate(name, document)
				if err != nil {
					t.Fatal(err)
				}
				for _, text := range objects {
					object, err := decode(text)
					if err != nil {
						t.Fatal(err)
					}
					switch o := object.(type) {
					case *appsv1.StatefulSet:
						found++
						mustBeWhole(t, o.Spec.Replicas, o.Spec.PodManagementPolicy == appsv1.ParallelPodManagement, o.Spec.Template)
					case *appsv1.Deployment:
						found++
						mustBeWhole(t, o.Spec.Replicas, o.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType, o.Spec.Template)
					}
				}
			}
			if found != 1 {
				t.Errorf("%d runners, want one", found)
			}
		})
	}
	if shapes < len(wanted)-1 {
		t.Errorf("%d shapes of %v", shapes, wanted)
	}
}

func mustBeWhole(t *testing.T, replicas *int32, replaces bool, template corev1.PodTemplateSpec) {
	t.Helper()
	spec := template.Spec
	if template.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] != "false" {
		t.Errorf("the cluster autoscaler may evict it: annotations %v", template.Annotations)
	}
	mustAskForLittle(t, spec)
	if replicas == nil || *replicas != 1 {
		t.Errorf("replicas = %v", replicas)
	}
	if !replaces {
		t.Error("an update is not by replacement")
	}
	if seconds := spec.TerminationGracePeriodSeconds; seconds == nil || *seconds < 3600 {
		t.Errorf("terminationGracePeriodSeconds = %v", seconds)
	}
	runner := spec.Containers[0]
	variables := map[string]string{}
	for _, variable := range runner.Env {
		variables[variable.Name] = variable.Value
	}
	if folder := variables["FLEETING_PLUGIN_PATH"]; folder != "/plugins" {
		t.Errorf("FLEETING_PLUGIN_PATH = %q", folder)
	}
	// It decides where a runner is registered on start; a config.toml that is
	// mounted says it itself.
	if executor, registers := variables["RUNNER_EXECUTOR"]; registers && executor != "docker-autoscaler" {
		t.Errorf("RUNNER_EXECUTOR = %q", executor)
	}
	volumes := map[string]corev1.VolumeSource{}
	for _, volume := range spec.Volumes {
		volumes[volume.Name] = volume.VolumeSource
	}
	plugin, config := false, false
	for _, mount := range runner.VolumeMounts {
		switch {
		case strings.HasPrefix(mount.MountPath+"/", "/plugins/"):
			plugin = mount.ReadOnly
		case mount.MountPath == "/etc/gitlab-runner":
			secret := volumes[mount.Name].Secret
			config = mount.ReadOnly && secret != nil && secret.SecretName == "gitlab-runner" && len(secret.Items) == 0
		}
	}
	if !plugin || !config {
		t.Errorf("plugin mounted read-only: %v, Secret too: %v", plugin, config)
	}
}

// mustAskForLittle wants of each container of ours no more than it needs: of the
// Secret, init containers see config.toml only, and disks are bounded.
func mustAskForLittle(t *testing.T, spec corev1.PodSpec) {
	t.Helper()
	secrets := map[string]*corev1.SecretVolumeSource{}
	for _, volume := range spec.Volumes {
		secrets[volume.Name] = volume.Secret
		if empty := volume.EmptyDir; empty != nil && empty.Medium != corev1.StorageMediumMemory && empty.SizeLimit == nil {
			t.Errorf("the volume %s has no limit", volume.Name)
		}
	}
	for _, container := range spec.InitContainers {
		for _, mount := range container.VolumeMounts {
			secret := secrets[mount.Name]
			if secret != nil && (len(secret.Items) != 1 || secret.Items[0].Key != "config.toml" || !mount.ReadOnly) {
				t.Errorf("%s sees of the Secret more than config.toml: %+v", container.Name, secret)
			}
		}
	}
	for _, container := range append(spec.InitContainers, spec.Containers...) {
		if container.Name == "runner" {
			continue // the operator's, which has a setting of its own for them
		}
		for _, resources := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
			if resources.Memory().IsZero() || resources.StorageEphemeral().IsZero() {
				t.Errorf("%s has no memory or no ephemeral-storage among %v", container.Name, resources)
			}
		}
	}
}

// TestWritableConfig: with the patch, whichever shape it is for, the runner writes
// its config.toml on a volume that one Pod at a time can have, and only that init
// container sees the Secret's.
func TestWritableConfig(t *testing.T) {
	t.Parallel()
	patched, err := patchShapes(read(t, patchFile))
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range patched {
		object, err := decode(text)
		if err != nil {
			t.Fatal(err)
		}
		set, ok := object.(*appsv1.StatefulSet)
		if !ok {
			t.Fatalf("%T", object)
		}
		spec, name := set.Spec.Template.Spec, shapeFiles()[i]
		mustAskForLittle(t, spec)
		claims := set.Spec.VolumeClaimTemplates
		if len(claims) != 1 || len(claims[0].Spec.AccessModes) != 1 || claims[0].Spec.AccessModes[0] != corev1.ReadWriteOncePod {
			t.Errorf("%s: volume claims %+v", name, claims)
			continue
		}
		runner := spec.Containers[0]
		if len(spec.Containers) != 1 || !slices.Contains(runner.Args, "/config/config.toml") {
			t.Errorf("%s: the runner's arguments are %v", name, runner.Args)
		}
		copies := slices.IndexFunc(spec.InitContainers, func(c corev1.Container) bool { return c.Name == "config" })
		if copies < 0 {
			t.Errorf("%s: nothing copies config.toml", name)
			continue
		}
		for _, container := range []corev1.Container{runner, spec.InitContainers[copies]} {
			if !slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.Name == claims[0].Name && m.MountPath == "/config" && !m.ReadOnly
			}) {
				t.Errorf("%s: %s cannot write to the volume: %+v", name, container.Name, container.VolumeMounts)
			}
		}
	}
}

// TestGuardsAreForThePod: the budget and the policy choose the Pods of each shape.
func TestGuardsAreForThePod(t *testing.T) {
	t.Parallel()
	var selectors []*metav1.LabelSelector
	for _, file := range []string{"disruption-budget.yaml", "network-policy.yaml"} {
		object, err := decode(read(t, file))
		if err != nil {
			t.Fatal(err)
		}
		switch o := object.(type) {
		case *policyv1.PodDisruptionBudget:
			selectors = append(selectors, o.Spec.Selector)
			if o.Spec.MaxUnavailable == nil || o.Spec.MaxUnavailable.IntValue() != 0 {
				t.Errorf("the budget lets %v be evicted", o.Spec.MaxUnavailable)
			}
		case *networkingv1.NetworkPolicy:
			selectors = append(selectors, &o.Spec.PodSelector)
			if len(o.Spec.PolicyTypes) != 2 || len(o.Spec.Ingress) == 0 || len(o.Spec.Egress) == 0 {
				t.Errorf("the policy is about %v", o.Spec.PolicyTypes)
			}
		default:
			t.Errorf("%s has a %T", file, object)
		}
	}
	for _, file := range append(shapeFiles(), "values.yaml") {
		for _, document := range split(t, read(t, file)) {
			made, err := translate(file, document)
			if err != nil {
				t.Fatal(err)
			}
			object, err := decode(made[0])
			if err != nil {
				t.Fatal(err)
			}
			pod := map[string]string{}
			switch o := object.(type) {
			case *appsv1.StatefulSet:
				pod = o.Spec.Template.Labels
			case *appsv1.Deployment:
				pod = o.Spec.Template.Labels
			default:
				continue
			}
			for _, selector := range selectors {
				chosen, err := metav1.LabelSelectorAsSelector(selector)
				if err != nil || chosen.Empty() || !chosen.Matches(labels.Set(pod)) {
					t.Errorf("%s: %v does not choose %v: %v", file, selector, pod, err)
				}
			}
		}
	}
}

// TestValuesAgreeWithConfig: of config.toml the chart takes no more than what is
// below [[runners]], and not its name, URL and executor: values that differ would
// win without a word.
func TestValuesAgreeWithConfig(t *testing.T) {
	t.Parallel()
	config := string(read(t, "config.toml"))
	for _, file := range []string{"values.yaml", "values-image-volume.yaml"} {
		in, err := parseChart(read(t, file))
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range map[string]any{"concurrent": in.Concurrent, "  name": in.Runners.Name, "  url": in.GitLabURL, "  executor": in.Runners.Executor} {
			if want := fmt.Sprintf("\n%s = %#v\n", key, value); !strings.Contains(config, want) {
				t.Errorf("%s: config.toml does not say %q", file, want)
			}
		}
		if in.Runners.Config == nil || *in.Runners.Config != "" || in.Runners.ConfigPath != "/etc/gitlab-runner/config.toml" {
			t.Errorf("%s: the chart does not take config.toml from the Secret: %+v", file, in.Runners)
		}
		if in.Runners.Secret == "" || !in.Metrics.Enabled {
			t.Errorf("%s: no token, or no metrics", file)
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(docs, "kubernetes", file))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
