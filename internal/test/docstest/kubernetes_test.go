package docstest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

// kubernetesFile reads a file that readers copy as a whole.
func kubernetesFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "docs", "kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestKubernetesSecretIsWhole: the Secret that the guide makes holds every file
// that config.toml names, and nothing that it does not; the files are beside it,
// but for the key, and belong together.
func TestKubernetesSecretIsWhole(t *testing.T) {
	t.Parallel()
	const key, mount = "id_ed25519", "/etc/gitlab-runner"
	text := kubernetesFile(t, "config.toml")
	want := []string{"config.toml"}
	for _, found := range regexp.MustCompile(`"`+mount+`/([^"]+)"`).FindAllStringSubmatch(text, -1) {
		want = append(want, found[1])
	}
	slices.Sort(want)
	page, err := Blocks(root, "docs/guides/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	secrets := 0
	for _, block := range page {
		for _, command := range block.Commands() {
			words := Words(command)
			if len(words) < 7 || words[0] != "kubectl" || !slices.Equal(words[3:7], []string{"create", "secret", "generic", "gitlab-runner"}) {
				continue
			}
			secrets++
			var got []string
			for _, word := range words {
				if file, ok := strings.CutPrefix(word, "--from-file="); ok {
					got = append(got, path.Base(file))
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: the Secret's files (-named by config.toml +made):\n%s", block.Where(), diff)
			}
		}
	}
	if secrets == 0 {
		t.Error("the guide makes no Secret")
	}

	var clouds struct {
		Clouds map[string]any `yaml:"clouds"`
	}
	var user struct {
		Users []struct {
			Name   string   `yaml:"name"`
			Groups []string `yaml:"groups"`
			Keys   []string `yaml:"ssh_authorized_keys"`
		} `yaml:"users"`
		Packages []string `yaml:"packages"`
	}
	for name, into := range map[string]any{"clouds.yaml": &clouds, "cloud-init.yaml": &user} {
		if err := yaml.Unmarshal([]byte(kubernetesFile(t, name)), into); err != nil {
			t.Fatal(err)
		}
	}
	config := autoscalerOf(t, text)
	if clouds.Clouds[config.Plugin.Cloud] == nil {
		t.Errorf("clouds.yaml has no cloud %q", config.Plugin.Cloud)
	}
	if !strings.HasPrefix(kubernetesFile(t, "cloud-init.yaml"), "#cloud-config\n") {
		t.Error("cloud-init does not take cloud-init.yaml for its own")
	}
	if len(user.Users) != 1 || user.Users[0].Name != config.Connector.Username || len(user.Users[0].Keys) == 0 ||
		!slices.Contains(user.Users[0].Groups, "docker") || !slices.Contains(user.Packages, "docker.io") {
		t.Errorf("servers get %+v, and jobs log in as %s and want Docker", user, config.Connector.Username)
	}
	if path.Base(config.Connector.KeyPath) != key {
		t.Errorf("key_path is %s", config.Connector.KeyPath)
	}
}

type autoscalerSection struct {
	Plugin struct {
		Cloud string `toml:"cloud"`
	} `toml:"plugin_config"`
	Connector struct {
		Username string `toml:"username"`
		KeyPath  string `toml:"key_path"`
	} `toml:"connector_config"`
}

func autoscalerOf(t *testing.T, text string) autoscalerSection {
	t.Helper()
	var config struct {
		Runners []struct {
			Autoscaler autoscalerSection `toml:"autoscaler"`
		} `toml:"runners"`
	}
	if err := toml.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Runners) != 1 {
		t.Fatalf("%d runners, not one", len(config.Runners))
	}
	return config.Runners[0].Autoscaler
}
