package docstest

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// blocks returns the blocks of all pages in a language.
func blocks(t *testing.T, language string) []Block {
	t.Helper()
	var found []Block
	for _, page := range pages(t) {
		list, err := Blocks(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range list {
			if block.Language == language {
				found = append(found, block)
			}
		}
	}
	return found
}

// samples returns the blocks of all pages in a language, and the files of the
// documentation that are written in it.
func samples(t *testing.T, language string) []Block {
	t.Helper()
	found := blocks(t, language)
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{"." + language, strings.Replace("."+language, "yaml", "yml", 1)}, filepath.Ext(path)) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		found = append(found, Block{File: filepath.ToSlash(name), Line: 1, Language: language, Text: string(content)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestTOMLSamples reads each sample with the code that would read it in use:
// plugin_config with the plugin, the rest of config.toml and policies with the
// installer.
func TestTOMLSamples(t *testing.T) {
	t.Parallel()
	files := func(name string) ([]byte, error) {
		if strings.HasSuffix(name, ".json") {
			return os.ReadFile(filepath.Join(root, "installer", "internal", "trust", "public_root.json"))
		}
		_, public, err := packager.GenerateKeyPair(nil) // each file another key
		return public, err
	}
	configs, policies := 0, 0
	for _, block := range samples(t, "toml") {
		var sample struct {
			Version int              `toml:"version"`
			Rule    []any            `toml:"rule"`
			Runners []map[string]any `toml:"runners"`
		}
		if err := toml.Unmarshal([]byte(block.Text), &sample); err != nil {
			t.Errorf("%s: %v", block.Where(), err)
			continue
		}
		if sample.Version != 0 || sample.Rule != nil {
			policies++
			_, err := installer.ParsePolicy([]byte(block.Text), files)
			if err != nil {
				t.Errorf("%s: %v", block.Where(), err)
			}
		}
		for _, runner := range sample.Runners {
			if _, err := installer.ParseRunnerConfig([]byte(block.Text)); err != nil {
				t.Errorf("%s: %v", block.Where(), err)
			}
			autoscaler, _ := runner["autoscaler"].(map[string]any)
			if autoscaler["max_instances"] != nil {
				checkEntry(t, block, runner, autoscaler)
			}
			if autoscaler["plugin_config"] == nil {
				continue
			}
			configs++
			raw, err := json.Marshal(autoscaler["plugin_config"])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := plugin.ParseConfig(raw); err != nil {
				t.Errorf("%s: %v", block.Where(), err)
			}
		}
	}
	if configs < 10 || policies < 8 {
		t.Errorf("only %d configurations and %d policies found", configs, policies)
	}
}

// checkEntry: what is shown as a whole entry is taken for one, so jobs have to
// run with it, as many at a time as it has servers for. The files that it names
// and the image are the reader's.
func checkEntry(t *testing.T, block Block, runner, autoscaler map[string]any) {
	t.Helper()
	var file map[string]any
	if err := toml.Unmarshal([]byte(block.Text), &file); err != nil {
		t.Fatal(err)
	}
	for _, f := range plugin.CheckRunner(plugin.RunnerConfig{Content: file}, runner, "") {
		ours := autoscaler["plugin_config"] != nil // others may need no login
		if slices.Contains([]string{"key_path", "plugin", "gitlab-runner"}, f.Subject) || (f.Note || !ours) && f.Subject == "connector_config" {
			continue
		}
		if f.Note || !f.OK {
			t.Errorf("%s: %s: %s", block.Where(), f.Subject, f.Detail)
		}
	}
	if autoscaler["capacity_per_instance"] == nil {
		t.Errorf("%s: no capacity_per_instance", block.Where())
	}
}

func TestYAMLSamples(t *testing.T) {
	t.Parallel()
	clouds := 0
	for _, block := range samples(t, "yaml") {
		decoder := yaml.NewDecoder(strings.NewReader(block.Text))
		for {
			var sample struct {
				Clouds map[string]struct {
					Auth map[string]string `yaml:"auth"`
				} `yaml:"clouds"`
			}
			err := decoder.Decode(&sample)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Errorf("%s: %v", block.Where(), err)
				break
			}
			for name, cloud := range sample.Clouds {
				clouds++
				if cloud.Auth["auth_url"] == "" {
					t.Errorf("%s: the cloud %s has no auth_url", block.Where(), name)
				}
			}
		}
	}
	if clouds == 0 {
		t.Error("no clouds.yaml found")
	}
}
