package docstest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// TestGuideShowsTheTemplate: the workflow in the guide is the one that
// docs/template has, which the rehearsal of a release runs.
func TestGuideShowsTheTemplate(t *testing.T) {
	t.Parallel()
	read := func(path ...string) string {
		content, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	_, workflow, found := strings.Cut(read("docs", "template", ".github", "workflows", "release.yml"), "\nname: ")
	if !found {
		t.Fatal("the template's workflow has no name")
	}
	if !strings.Contains(read("docs", "guides", "pipelines.md"), "```yaml\nname: "+workflow+"```") {
		t.Error("docs/guides/pipelines.md shows another workflow than docs/template/.github/workflows/release.yml")
	}
}

// componentHeader is the first document of the component.
type componentHeader struct {
	Spec struct {
		Inputs map[string]struct {
			Default     *string `yaml:"default"`
			Description string  `yaml:"description"`
		} `yaml:"inputs"`
	} `yaml:"spec"`
}

// readComponent returns the header of the GitLab component, and the text below.
func readComponent(t *testing.T) (componentHeader, string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "templates", "publish.yml"))
	if err != nil {
		t.Fatal(err)
	}
	head, body, ok := strings.Cut(string(content), "\n---\n")
	if !ok {
		t.Fatal("the component has no header")
	}
	var header componentHeader
	decoder := yaml.NewDecoder(strings.NewReader(head))
	decoder.KnownFields(true)
	if err := decoder.Decode(&header); err != nil {
		t.Fatal(err)
	}
	return header, body
}

// TestComponentIsIncluded: what the documentation gives the component is what it
// declares. GitLab refuses an input that is not declared; gitlab-ci-local, which
// `make component` runs, does not look. The guide shows what docs/template has.
func TestComponentIsIncluded(t *testing.T) {
	t.Parallel()
	header, _ := readComponent(t)
	read := func(path ...string) string {
		content, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	_, include, found := strings.Cut(read("docs", "template", ".gitlab-ci.yml"), "\ninclude:\n")
	if !found {
		t.Fatal("the template includes nothing")
	}
	include = "include:\n" + include
	if !strings.Contains(read("docs", "guides", "pipelines.md"), "```yaml\n"+include+"```") {
		t.Error("docs/guides/pipelines.md includes the component in another way than docs/template/.gitlab-ci.yml")
	}
	comment, _, _ := strings.Cut(read("templates", "publish.yml"), "\nspec:")
	_, comment, _ = strings.Cut(strings.ReplaceAll(comment, "\n#   ", "\n"), "\ninclude:\n")
	for where, text := range map[string]string{"docs/template/.gitlab-ci.yml": include, "templates/publish.yml": "include:\n" + comment} {
		var pipeline struct {
			Include []struct {
				Component string
				Inputs    map[string]string
			}
		}
		if err := yaml.Unmarshal([]byte(text), &pipeline); err != nil || len(pipeline.Include) != 1 {
			t.Errorf("%s: %d includes, %v", where, len(pipeline.Include), err)
			continue
		}
		for name := range pipeline.Include[0].Inputs {
			if _, ok := header.Spec.Inputs[name]; !ok {
				t.Errorf("%s: the component declares no input %s", where, name)
			}
		}
		for name, input := range header.Spec.Inputs {
			if _, ok := pipeline.Include[0].Inputs[name]; !ok && input.Default == nil {
				t.Errorf("%s: the component wants the input %s", where, name)
			}
		}
	}
}

// TestComponent: the GitLab component is two documents, the inputs that the
// first declares are those that the second uses, and each that has no default
// says what it is for. GitLab's schema itself is held by .ci/component.
// Format: https://docs.gitlab.com/ci/components/
func TestComponent(t *testing.T) {
	t.Parallel()
	header, body := readComponent(t)
	var jobs map[string]struct {
		IDTokens map[string]struct {
			Audience string `yaml:"aud"`
		} `yaml:"id_tokens"`
		Script []string `yaml:"script"`
	}
	if err := yaml.Unmarshal([]byte(body), &jobs); err != nil {
		t.Fatal(err)
	}

	declared := make([]string, 0, len(header.Spec.Inputs))
	for name, input := range header.Spec.Inputs {
		declared = append(declared, name)
		if input.Description == "" && name != "stage" {
			t.Errorf("input %s is not described", name)
		}
	}
	var used []string
	for _, match := range regexp.MustCompile(`\$\[\[ inputs\.([a-z-]+) \]\]`).FindAllStringSubmatch(body, -1) {
		used = append(used, match[1])
	}
	slices.Sort(declared)
	slices.Sort(used)
	if diff := cmp.Diff(declared, slices.Compact(used)); diff != "" {
		t.Errorf("inputs (-declared +used):\n%s", diff)
	}
	job, ok := jobs["publish-fleeting-plugin"]
	if !ok || len(jobs) != 1 {
		t.Fatalf("jobs: %v, want publish-fleeting-plugin only", jobs)
	}
	// The variable that sigstore's clients look for, and its audience.
	if got := job.IDTokens["SIGSTORE_ID_TOKEN"].Audience; got != "sigstore" {
		t.Errorf("audience of SIGSTORE_ID_TOKEN = %q", got)
	}
	if len(job.Script) == 0 {
		t.Error("the job has no script")
	}
}
