//go:build rehearsal

package rehearsal_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/interop/siglab"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/rehearsal/actions"
)

const (
	ourModule = "github.com/radome-io/fleeting-plugin-openstack"
	// dummy is the plugin that fleeting's own module ships.
	dummy = "gitlab.com/gitlab-org/fleeting/fleeting/plugin/fleeting-plugin-dummy/cmd/fleeting-plugin-dummy"
)

// machine is one that a pipeline runs on: a home of its own, and a module proxy
// that has this repository as a released version.
type machine struct {
	work string
	env  []string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	m := machine{work: t.TempDir()}
	source := clone(t, filepath.Join(m.work, "source"))
	serveModule(t, source, filepath.Join(m.work, "proxy"))
	upstream := goEnv(t, "GOPROXY")
	known := "file://" + filepath.ToSlash(filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download"))
	m.env = []string{
		"HOME=" + filepath.Join(m.work, "home"), "PATH=" + filepath.Join(m.work, "home", "go", "bin") + string(os.PathListSeparator) + os.Getenv("PATH"),
		"TMPDIR=" + m.dir(t, "tmp"), "GOCACHE=" + goEnv(t, "GOCACHE"), "GOMODCACHE=" + filepath.Join(m.work, "modules"),
		"GOPROXY=file://" + filepath.ToSlash(filepath.Join(m.work, "proxy")) + "," + known + "," + upstream,
		"GONOSUMDB=" + ourModule, "GOFLAGS=-trimpath -modcacherw", "CGO_ENABLED=0", "TOOL_VERSION=v" + version,
	}
	return m
}

func (m machine) dir(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(m.work, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serveModule lays the module out as a proxy of it.
// https://go.dev/ref/mod#goproxy-protocol
func serveModule(t *testing.T, source, proxy string) {
	t.Helper()
	dir := filepath.Join(proxy, filepath.FromSlash(ourModule), "@v")
	var archive bytes.Buffer
	if err := zip.CreateFromDir(&archive, module.Version{Path: ourModule, Version: "v" + version}, source); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "list"), "v"+version+"\n")
	write(t, filepath.Join(dir, "v"+version+".info"), `{"Version": "v`+version+`"}`)
	write(t, filepath.Join(dir, "v"+version+".mod"), string(read(t, filepath.Join(source, "go.mod"))))
	write(t, filepath.Join(dir, "v"+version+".zip"), archive.String())
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// bash runs lines as a job does: the first that fails ends it.
func (m machine) bash(t *testing.T, dir string, env []string, lines ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", strings.Join(lines, "\n"))
	cmd.Dir, cmd.Env = dir, slices.Concat(m.env, env)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(lines, "\n"), err, out)
	}
	return string(out)
}

// buildDummy builds the dummy plugin for two platforms, as its publisher would,
// and takes the executable bit off, as artifacts of pipelines do.
// The version is that of its module, which it also tells.
func (m machine) buildDummy(t *testing.T) (dist, version string) {
	t.Helper()
	dist = m.dir(t, "dist")
	for _, arch := range []string{"amd64", "arm64"} {
		out := filepath.Join(dist, "linux", arch, "plugin")
		m.bash(t, filepath.Join(m.work, "source"), []string{"GOOS=linux", "GOARCH=" + arch}, "go build -buildvcs=false -ldflags '-s -w' -o "+out+" "+dummy)
		if err := os.Chmod(out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := m.bash(t, filepath.Join(m.work, "source"), nil, "go list -m -f '{{.Version}}' gitlab.com/gitlab-org/fleeting/fleeting")
	return dist, strings.TrimPrefix(strings.TrimSpace(out), "v")
}

// runAction runs the script of our action as GitHub does, and returns its outputs.
// The step that installs Go is left out: Go is here.
func (m machine) runAction(t *testing.T, dir string, env []string, with map[string]string) string {
	t.Helper()
	folder := filepath.Join(m.work, "source", ".github", "actions", "publish")
	definition, err := actions.ParseAction(read(t, filepath.Join(folder, "action.yml")))
	if err != nil {
		t.Fatal(err)
	}
	script, variables, err := definition.Script(with, map[string]string{"github.action_path": folder, "github.actor": "actor", "github.token": ""})
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(m.work, "output")
	write(t, output, "")
	t.Log(m.bash(t, dir, slices.Concat(env, list(variables), []string{"GITHUB_OUTPUT=" + output, "GITHUB_ACTION_PATH=" + folder}), script))
	return string(read(t, output))
}

// list returns variables as NAME=VALUE.
func list(variables map[string]string) []string {
	var all []string
	for name, value := range variables {
		all = append(all, name+"="+value)
	}
	return all
}

// action publishes the dummy plugin with the GitHub Action.
func action(t *testing.T, lab *siglab.Lab) {
	t.Helper()
	m := newMachine(t)
	dist, dummyVersion := m.buildDummy(t)
	reference, forge := newReference("dummy", dummyVersion), serveGit(t, filepath.Join(m.work, "source"), dummyVersion)
	var outputs string
	step(t, "action", func() {
		outputs = m.runAction(t, m.work, slices.Concat(forge.github(), labTokens(t, lab, forge.commit)), map[string]string{
			"dist": dist, "reference": reference, "flags": keylessFlags(lab),
		})
	})
	if !regexp.MustCompile(`^digest=sha256:[0-9a-f]{64}\n$`).MatchString(outputs) {
		t.Errorf("outputs of the action: %q", outputs)
	}
	m.installs(t, lab, reference, dummyVersion)
	for _, v := range []int{2, 3} {
		cosign(t, lab, v, siglab.Subject, reference)
	}
}

// installs installs what was published as a user does, and starts it.
func (m machine) installs(t *testing.T, lab *siglab.Lab, reference, as string) {
	t.Helper()
	policy := writePolicy(t, lab)
	m.bash(t, m.work, nil, "go install "+ourModule+"/cmd/fleeting-plugin@v"+version)
	step(t, "install", func() {
		t.Log(m.bash(t, m.work, nil,
			"fleeting-plugin install --policy "+policy+" --dir installed --as "+installedAs+" "+reference,
			"fleeting-plugin verify --installed --dir installed",
			filepath.Join("installed", filepath.FromSlash(installedAs), as, "plugin")+" -version",
		))
	})
}

// component publishes the dummy plugin with the GitLab component.
func component(t *testing.T, lab *siglab.Lab) {
	t.Helper()
	m := newMachine(t)
	dist, dummyVersion := m.buildDummy(t)
	reference, forge := newReference("dummy", dummyVersion), serveGit(t, filepath.Join(m.work, "source"), dummyVersion)
	token, err := lab.TokenAt(t.Context(), forge.commit)
	if err != nil {
		t.Fatal(err)
	}
	variables := forge.gitlab(strings.TrimSuffix(reference, ":"+dummyVersion), token)
	content := read(t, filepath.Join(m.work, "source", "templates", "publish.yml"))
	script, env, err := actions.Component(content, "publish-fleeting-plugin", map[string]string{"dist": dist, "tool-version": "v" + version}, variables)
	if err != nil {
		t.Fatal(err)
	}
	env["FLAGS"] = keylessFlags(lab)
	step(t, "component", func() { t.Log(m.bash(t, m.work, list(env), script)) })
	m.installs(t, lab, reference, dummyVersion)
}

// template releases the plugin of docs/template from a repository of its own,
// and builds it again from what its provenance says.
func template(t *testing.T, lab *siglab.Lab) {
	t.Helper()
	m := newMachine(t)
	repository := filepath.Join(m.work, "repository")
	if err := os.CopyFS(repository, os.DirFS(filepath.Join(m.work, "source", "docs", "template"))); err != nil {
		t.Fatal(err)
	}
	git(t, repository, "init", "-q", "--initial-branch", "main")
	git(t, repository, "add", ".")
	git(t, repository, "commit", "-q", "-m", "first")
	git(t, repository, "tag", "v"+version)
	forge, reference := serveGit(t, repository, version), newReference("acme", version)
	step(t, "template: test and build", func() { m.bash(t, repository, nil, "make test dist", "make -s ldflags >ldflags.txt") })
	step(t, "template: publish", func() {
		m.runAction(t, repository, slices.Concat(forge.github(), labTokens(t, lab, forge.commit)), map[string]string{
			"dist": "dist", "reference": reference, "tool-version": "v" + version, "flags": keylessFlags(lab), "ldflags-file": "ldflags.txt",
		})
	})
	m.installs(t, lab, reference, version)
	policy := writePolicy(t, lab)
	step(t, "template: rebuild", func() {
		t.Log(m.bash(t, m.work, forge.hosts.env(), "fleeting-plugin rebuild --policy "+policy+" "+reference))
	})
}
