package packager

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"
)

// Build says where and how executables were built, for provenance.
type Build struct {
	// Type is a URI that says how to read the parameters.
	Type string
	// Builder is a URI for the platform that built.
	Builder string
	// Parameters are under the control of whoever starts a build; Internal are
	// those of the platform.
	Parameters, Internal map[string]any
	// Source is the repository, as "git+https://…@refs/tags/v1.2.3"; Revision
	// its commit.
	Source, Revision string
	// Invocation is a link to the run.
	Invocation string
	// Finished is when the build ended; zero leaves it out.
	Finished time.Time
	// LDFlags are the -ldflags of the go command. An executable that was built
	// with -trimpath does not say them, and without them nobody can build it
	// again.
	LDFlags string
}

// The build types. GitHub's is described at
// https://actions.github.io/buildtypes/workflow/v1, the other two in
// docs/reference/provenance.md.
const (
	BuildTypeGitHub = "https://actions.github.io/buildtypes/workflow/v1"
	BuildTypeGitLab = "https://github.com/radome-io/fleeting-plugin-openstack/blob/main/docs/reference/provenance.md#gitlab-ci"
	BuildTypeLocal  = "https://github.com/radome-io/fleeting-plugin-openstack/blob/main/docs/reference/provenance.md#local"
)

// DetectBuild reads the build from the variables that CI systems set: GitHub
// Actions, GitLab CI, or neither. lookup is like [os.LookupEnv].
func DetectBuild(lookup func(string) (string, bool)) Build {
	env := func(name string) string { v, _ := lookup(name); return v }
	switch {
	case env("GITHUB_ACTIONS") == "true":
		return githubBuild(env)
	case env("GITLAB_CI") == "true":
		return gitlabBuild(env)
	default:
		return Build{
			Type: BuildTypeLocal, Builder: BuildTypeLocal,
			Parameters: map[string]any{"tool": "fleeting-plugin"},
		}
	}
}

// githubBuild follows what GitHub's own attestations say, so that policies for
// those fit. https://docs.github.com/actions/reference/variables-reference
func githubBuild(env func(string) string) Build {
	server, repository := env("GITHUB_SERVER_URL"), env("GITHUB_REPOSITORY")
	project := server + "/" + repository
	workflow := strings.TrimPrefix(env("GITHUB_WORKFLOW_REF"), repository+"/")
	path, _, _ := strings.Cut(workflow, "@")
	return Build{
		Type:    BuildTypeGitHub,
		Builder: server + "/" + env("GITHUB_WORKFLOW_REF"),
		Parameters: map[string]any{"workflow": map[string]any{
			"ref": env("GITHUB_REF"), "repository": project, "path": path,
		}},
		Internal: map[string]any{"github": map[string]any{
			"event_name": env("GITHUB_EVENT_NAME"), "repository_id": env("GITHUB_REPOSITORY_ID"),
			"repository_owner_id": env("GITHUB_REPOSITORY_OWNER_ID"), "runner_environment": env("RUNNER_ENVIRONMENT"),
		}},
		Source:     "git+" + project + "@" + env("GITHUB_REF"),
		Revision:   env("GITHUB_SHA"),
		Invocation: fmt.Sprintf("%s/actions/runs/%s/attempts/%s", project, env("GITHUB_RUN_ID"), env("GITHUB_RUN_ATTEMPT")),
	}
}

// gitlabBuild reads https://docs.gitlab.com/ci/variables/predefined_variables/.
func gitlabBuild(env func(string) string) Build {
	ref := "refs/heads/" + env("CI_COMMIT_REF_NAME")
	if tag := env("CI_COMMIT_TAG"); tag != "" {
		ref = "refs/tags/" + tag
	}
	project := withoutUser(env("CI_PROJECT_URL"))
	return Build{
		Type:    BuildTypeGitLab,
		Builder: env("CI_SERVER_URL") + "/-/runners/" + env("CI_RUNNER_ID"),
		Parameters: map[string]any{"workflow": map[string]any{
			"ref": ref, "repository": project, "path": env("CI_CONFIG_PATH"), "job": env("CI_JOB_NAME"),
		}},
		Internal: map[string]any{"gitlab": map[string]any{
			"pipeline_source": env("CI_PIPELINE_SOURCE"), "project_id": env("CI_PROJECT_ID"),
			"pipeline_id": env("CI_PIPELINE_ID"), "runner_version": env("CI_RUNNER_VERSION"),
		}},
		Source:     "git+" + project + "@" + ref,
		Revision:   env("CI_COMMIT_SHA"),
		Invocation: env("CI_JOB_URL"),
	}
}

// Provenance returns the predicate of type [PredicateProvenance]. Links lose
// the user name and password that they may carry.
func (b Build) Provenance() (Predicate, error) {
	type resource struct {
		URI    string            `json:"uri"`
		Digest map[string]string `json:"digest,omitempty"`
	}
	type metadata struct {
		InvocationID string     `json:"invocationId,omitempty"`
		FinishedOn   *time.Time `json:"finishedOn,omitempty"`
	}
	var predicate struct {
		BuildDefinition struct {
			BuildType            string         `json:"buildType"`
			ExternalParameters   map[string]any `json:"externalParameters"`
			InternalParameters   map[string]any `json:"internalParameters,omitempty"`
			ResolvedDependencies []resource     `json:"resolvedDependencies,omitempty"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder struct {
				ID string `json:"id"`
			} `json:"builder"`
			Metadata metadata `json:"metadata"`
		} `json:"runDetails"`
	}
	if b.Type == "" || b.Builder == "" {
		return Predicate{}, fmt.Errorf("%w: provenance needs a build type and a builder", ErrInput)
	}
	predicate.BuildDefinition.BuildType = b.Type
	predicate.BuildDefinition.ExternalParameters = b.Parameters
	if b.Parameters == nil {
		predicate.BuildDefinition.ExternalParameters = map[string]any{}
	}
	predicate.BuildDefinition.InternalParameters = b.internal()
	if b.Source != "" {
		r := resource{URI: withoutUser(b.Source)}
		if b.Revision != "" {
			r.Digest = map[string]string{"gitCommit": b.Revision}
		}
		predicate.BuildDefinition.ResolvedDependencies = []resource{r}
	}
	predicate.RunDetails.Builder.ID = b.Builder
	predicate.RunDetails.Metadata.InvocationID = withoutUser(b.Invocation)
	if !b.Finished.IsZero() {
		finished := b.Finished.UTC().Truncate(time.Second)
		predicate.RunDetails.Metadata.FinishedOn = &finished
	}
	content, err := json.Marshal(predicate)
	if err != nil {
		return Predicate{}, fmt.Errorf("encoding provenance: %w", err)
	}
	return Predicate{Type: PredicateProvenance, Content: content}, nil
}

// internal adds what is the same on every platform to the parameters.
func (b Build) internal() map[string]any {
	if b.LDFlags == "" {
		return b.Internal
	}
	all := map[string]any{"go": map[string]any{"ldflags": b.LDFlags}}
	maps.Copy(all, b.Internal)
	return all
}

func withoutUser(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return "" // where its password is cannot be told
	}
	if u.User == nil {
		return link
	}
	u.User = nil
	return u.String()
}
