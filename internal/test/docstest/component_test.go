package docstest

import (
	"io/fs"
	"os"
	"path"
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

// signing is a job of a workflow, as far as it matters who may sign.
type signing struct {
	Permissions map[string]string `yaml:"permissions"`
	Environment string            `yaml:"environment"`
	Steps       []struct {
		Uses string `yaml:"uses"`
		Run  string `yaml:"run"`
	} `yaml:"steps"`
}

// TestSigningJobsRunNothing: in what users copy, the job that may sign starts nothing
// of the project, and is bound to an environment.
func TestSigningJobsRunNothing(t *testing.T) {
	t.Parallel()
	var workflow struct {
		Permissions map[string]string  `yaml:"permissions"`
		Jobs        map[string]signing `yaml:"jobs"`
	}
	readYAML(t, &workflow, "docs", "template", ".github", "workflows", "release.yml")
	may := 0
	for name, job := range workflow.Jobs {
		if job.Permissions["id-token"] == "" {
			continue
		}
		may++
		if job.Environment == "" {
			t.Errorf("job %s may sign, and has no environment", name)
		}
		for _, s := range job.Steps {
			action, _, _ := strings.Cut(s.Uses, "@")
			if !slices.Contains([]string{"actions/checkout", "actions/download-artifact", "radome-io/fleeting-plugin-openstack/.github/actions/publish"}, action) {
				t.Errorf("job %s may sign, and runs %s%s", name, s.Uses, s.Run)
			}
		}
	}
	if may != 1 || workflow.Permissions == nil || len(workflow.Permissions) > 0 {
		t.Errorf("%d jobs may sign; permissions of all are %v", may, workflow.Permissions)
	}
	var pipeline map[string]any
	readYAML(t, &pipeline, "docs", "template", ".gitlab-ci.yml")
	for name, job := range pipeline {
		if fields, ok := job.(map[string]any); ok && fields["id_tokens"] != nil {
			t.Errorf("job %s of the template's pipeline may sign beside the component", name)
		}
	}
}

// TestImages: the component and the template's pipeline name the image that
// dependabot keeps.
func TestImages(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(root, "internal", "tools", "gitlab", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^FROM (\S+)$`).FindSubmatch(content)
	if match == nil {
		t.Fatal("the Dockerfile names no image")
	}
	header, _ := readComponent(t)
	if image := header.Spec.Inputs["image"].Default; image == nil || *image != string(match[1]) {
		t.Errorf("image of the component: %v, want %s", image, match[1])
	}
	var pipeline map[string]any
	readYAML(t, &pipeline, "docs", "template", ".gitlab-ci.yml")
	for name, job := range pipeline {
		if fields, ok := job.(map[string]any); ok && fields["image"] != string(match[1]) {
			t.Errorf("image of the job %s: %v, want %s", name, fields["image"], match[1])
		}
	}
}

// TestDependabotSeesEveryPin: each folder with a workflow or an action is listed.
func TestDependabotSeesEveryPin(t *testing.T) {
	t.Parallel()
	var config struct {
		Updates []struct {
			Ecosystem   string   `yaml:"package-ecosystem"`
			Directory   string   `yaml:"directory"`
			Directories []string `yaml:"directories"`
		} `yaml:"updates"`
	}
	readYAML(t, &config, ".github", "dependabot.yml")
	listed := map[string]bool{}
	for _, u := range config.Updates {
		for _, directory := range append(u.Directories, u.Directory) {
			listed[u.Ecosystem+" "+directory] = true
		}
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "build", "node_modules", "testdata"}, d.Name()) {
			return fs.SkipDir
		}
		folder := "/" + path.Dir(name)
		want := ""
		switch {
		case folder == "/.github/workflows":
			want = "github-actions /" // is looked for there
		case strings.HasSuffix(folder, "/.github/workflows"), d.Name() == "action.yml":
			want = "github-actions " + folder
		case d.Name() == "Dockerfile":
			want = "docker " + folder
		}
		if want != "" && !listed[want] {
			t.Errorf("dependabot does not look at %s: no %q", name, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func readYAML(t *testing.T, into any, elem ...string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{root}, elem...)...))
	if err == nil {
		err = yaml.Unmarshal(content, into)
	}
	if err != nil {
		t.Fatal(err)
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
