//go:build rehearsal

package rehearsal_test

import (
	"context"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/interop/siglab"
)

// labRepository is the repository that the lab's certificates name.
const labRepository = "lab-org/lab-plugin"

// forge is what a pipeline and its users see of the forge that the source lies
// on: the repository, by the name that the certificates have, and variables.
type forge struct {
	hosts           *hosts
	commit, version string
}

// serveGit serves the repository in dir as a server of static files does, for
// the pipeline of a version's tag.
func serveGit(t *testing.T, dir, version string) forge {
	t.Helper()
	root := t.TempDir()
	bare := filepath.Join(root, labRepository)
	git(t, "", "clone", "-q", "--bare", dir, bare)
	git(t, bare, "update-server-info")
	h := newHosts(t, map[string]http.Handler{"github.com": http.FileServer(http.Dir(root))})
	return forge{h, git(t, dir, "rev-parse", "HEAD"), version}
}

// github are the variables of a job of GitHub Actions.
func (f forge) github() []string {
	return []string{
		"GITHUB_ACTIONS=true", "GITHUB_SERVER_URL=https://github.com", "GITHUB_REPOSITORY=" + labRepository, "GITHUB_REPOSITORY_OWNER=lab-org",
		"GITHUB_REF=refs/tags/v" + f.version, "GITHUB_SHA=" + f.commit, "GITHUB_RUN_ID=1", "GITHUB_RUN_ATTEMPT=1",
		"GITHUB_WORKFLOW_REF=" + labRepository + "/.github/workflows/release.yml@refs/tags/v" + f.version,
	}
}

// gitlab are the variables of a job of GitLab CI.
func (f forge) gitlab(registry, token string) map[string]string {
	const address = "https://github.com"
	return map[string]string{
		"GITLAB_CI": "true", "CI_SERVER_URL": address, "CI_PROJECT_URL": address + "/" + labRepository, "CI_PROJECT_NAME": "lab-plugin",
		"CI_COMMIT_TAG": "v" + f.version, "CI_COMMIT_REF_NAME": "v" + f.version, "CI_COMMIT_SHA": f.commit, "CI_RUNNER_ID": "1",
		"CI_JOB_URL": address + "/" + labRepository + "/-/jobs/1", "CI_REGISTRY": siglab.Registry, "CI_REGISTRY_IMAGE": registry,
		"CI_REGISTRY_USER": "job", "CI_REGISTRY_PASSWORD": "token", "SIGSTORE_ID_TOKEN": token,
	}
}

// labTokens are tokens of the lab's repository at a commit.
func labTokens(t *testing.T, lab *siglab.Lab, commit string) []string {
	t.Helper()
	return tokenService(t, func(ctx context.Context) (string, error) { return lab.TokenAt(ctx, commit) })
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
