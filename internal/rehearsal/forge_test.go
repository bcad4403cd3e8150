//go:build rehearsal

package rehearsal_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/interop/siglab"
)

// forge is what a pipeline and its users see of the forge that the source lies
// on: the repository over HTTP, and variables.
type forge struct {
	url, commit, version string
}

// serveGit serves the repository in dir as a server of static files does, for
// the pipeline of a version's tag.
func serveGit(t *testing.T, dir, version string) forge {
	t.Helper()
	root := t.TempDir()
	bare := filepath.Join(root, "group", "plugin")
	git(t, "", "clone", "-q", "--bare", dir, bare)
	git(t, bare, "update-server-info")
	server := httptest.NewServer(http.FileServer(http.Dir(root)))
	t.Cleanup(server.Close)
	return forge{server.URL, git(t, dir, "rev-parse", "HEAD"), version}
}

// github are the variables of a job of GitHub Actions.
func (f forge) github() []string {
	return []string{
		"GITHUB_ACTIONS=true", "GITHUB_SERVER_URL=" + f.url, "GITHUB_REPOSITORY=group/plugin", "GITHUB_REPOSITORY_OWNER=group",
		"GITHUB_REF=refs/tags/v" + f.version, "GITHUB_SHA=" + f.commit, "GITHUB_RUN_ID=1", "GITHUB_RUN_ATTEMPT=1",
		"GITHUB_WORKFLOW_REF=group/plugin/.github/workflows/release.yml@refs/tags/v" + f.version,
	}
}

// gitlab are the variables of a job of GitLab CI.
func (f forge) gitlab(registry string) []string {
	return []string{
		"GITLAB_CI=true", "CI_SERVER_URL=" + f.url, "CI_PROJECT_URL=" + f.url + "/group/plugin", "CI_PROJECT_NAME=plugin",
		"CI_COMMIT_TAG=v" + f.version, "CI_COMMIT_REF_NAME=v" + f.version, "CI_COMMIT_SHA=" + f.commit, "CI_RUNNER_ID=1",
		"CI_JOB_URL=" + f.url + "/group/plugin/-/jobs/1", "CI_REGISTRY=" + siglab.Registry, "CI_REGISTRY_IMAGE=" + registry,
		"CI_REGISTRY_USER=job", "CI_REGISTRY_PASSWORD=token",
	}
}

// tokenService answers as GitHub's does, and returns the variables that lead to
// it.
func tokenService(t *testing.T, lab *siglab.Lab, commit string) []string {
	t.Helper()
	const bearer = "request-token"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+bearer || r.URL.Query().Get("audience") != "sigstore" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		token, err := lab.TokenAt(r.Context(), commit)
		if err == nil {
			err = json.NewEncoder(w).Encode(map[string]string{"value": token})
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return []string{"ACTIONS_ID_TOKEN_REQUEST_URL=" + server.URL + "/?api-version=2", "ACTIONS_ID_TOKEN_REQUEST_TOKEN=" + bearer}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{
		"-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false",
	}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
