package kube_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
						mustBeWhole(t, o.Spec.Replicas, o.Spec.PodManagementPolicy == appsv1.ParallelPodManagement, o.Spec.Template.Spec)
					case *appsv1.Deployment:
						found++
						mustBeWhole(t, o.Spec.Replicas, o.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType, o.Spec.Template.Spec)
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

func mustBeWhole(t *testing.T, replicas *int32, replaces bool, spec corev1.PodSpec) {
	t.Helper()
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
