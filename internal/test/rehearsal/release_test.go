//go:build rehearsal

package rehearsal_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/interop/siglab"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/rehearsal/actions"
)

const ourRepository = "radome-io/fleeting-plugin-openstack"

// rehearsed is a release of this repository, as release.yml makes it, with its own
// defaults: what differs is where the names of hosts lead, and whom the policy
// trusts.
type rehearsed struct {
	lab     *siglab.Lab
	hosts   *hosts
	github  *github
	source  string
	tag     string
	commit  string
	folder  string // of the registry
	policy  string
	subject string
	runner  *actions.Runner
}

// release rehearses a release from its tag to GitHub, and looks at what came of it.
func release(t *testing.T, lab *siglab.Lab) {
	t.Helper()
	r := newRehearsal(t, lab)
	for _, job := range []string{"build", "rebuild"} {
		r.run(t, job, -1)
	}
	r.breaks(t, "publish")
	before := r.loses(t, "publish", "make release-publish")
	if shown := r.github.state(); len(shown) > 1 || shown["latest"] != "" {
		t.Errorf("GitHub shows %v before anything is checked", shown)
	}
	for tag := range before {
		if name := tag[strings.LastIndex(tag, ":")+1:]; name != strings.TrimPrefix(r.tag, "v") && !strings.HasPrefix(name, "sha256-") {
			t.Errorf("the alias %s is there before anything is checked", tag)
		}
	}
	for _, job := range []string{"check", "promote", "show"} {
		r.breaks(t, job)
		r.run(t, job, -1)
	}
	done, shown := r.published(t), r.github.state()
	r.whole(t, done, shown)

	// Everything once more.
	for _, job := range []string{"publish", "check", "promote", "show"} {
		r.run(t, job, -1)
	}
	if diff := cmp.Diff(done, r.published(t)); diff != "" {
		t.Errorf("running it again has changed the registry (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(shown, r.github.state()); diff != "" {
		t.Errorf("running it again has changed GitHub (-before +after):\n%s", diff)
	}
	r.judge(t)
}

// loses runs a job whose machine is lost before each step behind the first that is
// named, and then to its end. What is published stays as it is; loses returns it.
func (r *rehearsed) loses(t *testing.T, job, first string) map[string]string {
	t.Helper()
	steps := r.runner.Workflow.Jobs[job].Steps
	before := map[string]string{}
	for n := slices.IndexFunc(steps, func(s actions.Step) bool { return s.Run == first }) + 1; n <= len(steps); n++ {
		r.run(t, job, n)
		now := r.published(t)
		for tag, digest := range before {
			if now[tag] != digest {
				t.Errorf("publishing again has changed %s: %s, and now %s", tag, digest, now[tag])
			}
		}
		before = now
	}
	return before
}

// newRehearsal makes everything that the machines of a release reach.
func newRehearsal(t *testing.T, lab *siglab.Lab) *rehearsed {
	t.Helper()
	work := t.TempDir()
	r := &rehearsed{lab: lab, folder: "rehearsal-" + strings.ToLower(rand.Text()[:8])}
	r.source, r.tag = tagged(t, filepath.Join(work, "source"))
	r.commit = git(t, r.source, "rev-parse", "HEAD")
	r.subject = "https://github.com/" + ourRepository + "/.github/workflows/release.yml@refs/tags/" + r.tag
	served := filepath.Join(work, "github", ourRepository)
	git(t, "", "clone", "-q", "--bare", r.source, served)
	git(t, served, "update-server-info")
	r.github = &github{tags: strings.Fields(git(t, r.source, "tag"))}
	routes := map[string]http.Handler{
		"fulcio.sigstore.dev": forwardTo(t, siglab.Fulcio), "rekor.sigstore.dev": forwardTo(t, siglab.Rekor1),
		"github.com": http.FileServer(http.Dir(filepath.Join(work, "github"))), apiHost: r.github, uploadsHost: r.github,
	}
	routes["ghcr.io"] = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.hosts.registry(r.folder).ServeHTTP(w, q) })
	r.hosts = newHosts(t, routes)
	r.github.hosts = r.hosts
	r.policy = filepath.Join(work, "policy.toml")
	write(t, r.policy, fmt.Sprintf(`version = 1
[[rule]]
scope = "ghcr.io/radome-io/**"
  [[rule.identity]]
  issuer = %q
  subject-pattern = '^https://github\.com/%s/\.github/workflows/release\.yml@refs/tags/v[0-9][^/]*$'
  trusted-root = %q
  insecure-no-sct = true
  [[rule.attestation]]
  type = "provenance"
  source-repository = "https://github.com/%s"
  source-ref = "refs/tags/v*"
`, siglab.Issuer, ourRepository, trustedRoot(lab), ourRepository))

	content := read(t, filepath.Join(r.source, ".github", "workflows", "release.yml"))
	workflow, err := actions.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	if err := actions.Agree(workflow, read(t, filepath.Join(r.source, "release.mk")), "release-compare"); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(work, "bin")
	if err := lab.OpenGH(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Symlink(lab.GHPath(), filepath.Join(bin, "gh"))); err != nil {
		t.Fatal(err)
	}
	r.runner = &actions.Runner{
		Workflow: workflow, Source: r.source, Ref: "refs/tags/" + r.tag, Dir: filepath.Join(work, "run"),
		Path: bin + string(os.PathListSeparator) + os.Getenv("PATH"), Host: checkouts{}, Output: t.Output(),
		Env: func(name string, job *actions.Job) ([]string, error) { return r.env(t, work, name, job), nil },
		Values: func(_ string, job *actions.Job) (map[string]string, error) {
			return map[string]string{"github.actor": actor, "github.ref": "refs/tags/" + r.tag, "secrets.GITHUB_TOKEN": r.hosts.token(job.Permissions)}, nil
		},
		Done: func(job string, s actions.Step, took time.Duration) {
			t.Logf("step: %s: %s: %.1f s", job, s, took.Seconds())
		},
	}
	return r
}

// checkouts have the origin that those of GitHub have.
type checkouts struct{ actions.Local }

// Checkout clones, and names the origin.
func (c checkouts) Checkout(ctx context.Context, repository, tag, dir string, depth int, env []string) error {
	if err := c.Local.Checkout(ctx, "file://"+filepath.ToSlash(repository), tag, dir, depth, env); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "remote", "set-url", "origin", "https://github.com/"+ourRepository)
	cmd.Env = env
	return cmd.Run()
}

// env is what a machine of GitHub has. Machines share what was compiled, wherever
// their checkouts are; the one that builds again shares nothing.
func (r *rehearsed) env(t *testing.T, work, name string, job *actions.Job) []string {
	cache, flags := goEnv(t, "GOCACHE"), []string{"GOFLAGS=-trimpath", "CGO_ENABLED=0"}
	if name == "rebuild" {
		flags = nil
		cache = filepath.Join(work, "cache")
	}
	env := append(slices.Concat(r.hosts.env(), flags),
		"GITHUB_SERVER_URL=https://github.com", "GITHUB_REPOSITORY="+ourRepository, "GITHUB_REPOSITORY_OWNER=radome-io", "GITHUB_SHA="+r.commit, "GITHUB_RUN_ID=42",
		"GITHUB_WORKFLOW_REF="+strings.TrimPrefix(r.subject, "https://github.com/"), "FLEETING_PLUGIN_POLICY="+r.policy,
		"GOPROXY="+goEnv(t, "GOPROXY"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"), "GOCACHE="+cache,
		"GH_NO_UPDATE_NOTIFIER=1", "PLATFORMS="+os.Getenv("REHEARSAL_PLATFORMS"),
	)
	if job.Permissions["id-token"] == "write" {
		env = append(env, r.tokens(t)...)
	}
	return env
}

// tokens serves identity tokens as GitHub does, and returns the variables that lead
// there.
func (r *rehearsed) tokens(t *testing.T) []string {
	return tokenService(t, func(ctx context.Context) (string, error) {
		return r.lab.TokenOf(ctx, ourRepository, "refs/tags/"+r.tag, r.commit)
	})
}

func tokenService(t *testing.T, token func(ctx context.Context) (string, error)) []string {
	const bearer = "request-token"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "Bearer "+bearer || q.URL.Query().Get("audience") != "sigstore" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		value, err := token(q.Context())
		if err == nil {
			err = json.NewEncoder(w).Encode(map[string]string{"value": value})
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return []string{"ACTIONS_ID_TOKEN_REQUEST_URL=" + server.URL + "/?api-version=2", "ACTIONS_ID_TOKEN_REQUEST_TOKEN=" + bearer}
}

func (r *rehearsed) run(t *testing.T, job string, steps int) {
	t.Helper()
	if err := r.runner.RunJob(t.Context(), job, steps); err != nil {
		t.Fatal(err)
	}
}

func (r *rehearsed) published(t *testing.T) map[string]string {
	t.Helper()
	return published(t, r.folder+"/"+ourRepository, r.folder+"/radome-io/fleeting-plugin")
}

// whole says whether everything of a release is there, under every name.
func (r *rehearsed) whole(t *testing.T, done, shown map[string]string) {
	t.Helper()
	version := strings.TrimPrefix(r.tag, "v")
	minor, major := version[:strings.LastIndex(version, ".")], version[:strings.Index(version, ".")]
	for _, repository := range []string{ourRepository, "radome-io/fleeting-plugin"} {
		want := done[r.folder+"/"+repository+":"+version]
		for _, alias := range []string{minor, major, "latest"} {
			if got := done[r.folder+"/"+repository+":"+alias]; want == "" || got != want {
				t.Errorf("%s:%s is %q, want %q as %s; there are %v", repository, alias, got, want, version, done)
			}
		}
	}
	entries, err := os.ReadDir(filepath.Join(r.machine(t, "publish"), "build", "dist", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := map[string]string{"latest": r.tag, "0 " + r.tag + " draft=false prerelease=false": strings.Join(names, " ")}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("GitHub shows (-want +got):\n%s", diff)
	}
	if body := r.github.releases[0].Body; !strings.Contains(body, "\n- ") || strings.Contains(body, "\n## ") {
		t.Errorf("the release says:\n%s", body)
	}
	for _, home := range r.homes(t) {
		for _, file := range []string{".docker/config.json", ".config/containers/auth.json"} {
			if content, err := os.ReadFile(filepath.Join(home, file)); err == nil && strings.Contains(string(content), "ghcr.io") {
				t.Errorf("the login is still in %s/%s", home, file)
			}
		}
	}
}

// machine returns the workspace of the last machine of a job.
func (r *rehearsed) machine(t *testing.T, job string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.runner.Dir, "machines", "*-"+job))
	if err != nil || len(found) == 0 {
		t.Fatalf("no machine of %s: %v", job, err)
	}
	slices.SortFunc(found, func(a, b string) int { return len(a) - len(b) })
	return filepath.Join(found[len(found)-1], "work")
}

func (r *rehearsed) homes(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.runner.Dir, "machines", "*", "home"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// judge asks both cosigns and gh about what was published.
func (r *rehearsed) judge(t *testing.T) {
	t.Helper()
	at := siglab.Registry + "/" + r.folder + "/"
	version := strings.TrimPrefix(r.tag, "v")
	reference, image := at+ourRepository+":"+version, at+"radome-io/fleeting-plugin:"+version
	for _, v := range []int{2, 3} {
		cosign(t, r.lab, v, r.subject, reference, image)
	}
	user := r.machine(t, "check")
	agreement(t, r.lab, user, r.subject)
	ghArtifact(t, r.lab, user, r.subject, reference, image)
}

// tagged clones the present commit, and returns the clone and its tag: the one that
// the commit has, or that of the release which the documentation names, on a commit
// that is ready for it.
func tagged(t *testing.T, dir string) (clone, tag string) {
	t.Helper()
	top, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	git(t, "", "clone", "-q", "--no-hardlinks", top, dir)
	for have := range strings.FieldsSeq(git(t, dir, "tag", "--points-at", "HEAD")) {
		if strings.HasPrefix(have, "v") {
			t.Logf("the commit has the tag %s", have)
			return dir, have
		}
	}
	match := regexp.MustCompile(`publish@(v\S+)`).FindStringSubmatch(string(read(t, filepath.Join(dir, "templates", "publish.yml"))))
	if match == nil {
		t.Fatal("templates/publish.yml names no release")
	}
	changelog, page := filepath.Join(dir, "CHANGELOG.md"), filepath.Join(dir, "docs", "guides", "install.md")
	write(t, changelog, strings.Replace(string(read(t, changelog)), "## Unreleased\n", "## "+strings.TrimPrefix(match[1], "v")+"\n", 1))
	write(t, page, regexp.MustCompile(`(?m)^There is no release yet.*\n\n`).ReplaceAllString(string(read(t, page)), ""))
	git(t, dir, "commit", "-q", "-a", "-m", "release")
	git(t, dir, "tag", match[1])
	t.Logf("the commit has no tag; made %s", match[1])
	return dir, match[1]
}
