package packager

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// Build says where and how executables were built, for provenance. Make it with
// [CertifiedBuild] or [LocalBuild].
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
// https://actions.github.io/buildtypes/workflow/v1, the others in
// docs/reference/provenance.md.
const (
	BuildTypeGitHub = "https://actions.github.io/buildtypes/workflow/v1"
	BuildTypeGitLab = provenancePage + "#gitlab-ci"
	BuildTypeOther  = provenancePage + "#other-systems"
	BuildTypeLocal  = provenancePage + "#local"

	provenancePage = "https://github.com/radome-io/fleeting-plugin-openstack/blob/main/docs/reference/provenance.md"
)

// CertifiedBuild is the build that a certificate vouches for. Everything in it is
// from the certificate, so a verifier finds both to agree. It is false for the
// certificate of a person, which says nothing of a build.
func CertifiedBuild(c Certified) (Build, bool) {
	if c.BuildSigner == "" || c.Repository == "" {
		return Build{}, false
	}
	config, _, _ := strings.Cut(strings.TrimPrefix(c.BuildConfig, c.Repository), "@")
	workflow := map[string]any{"ref": c.Ref, "repository": c.Repository, "path": strings.TrimLeft(config, "/")}
	b := Build{
		Builder: c.BuildSigner, Parameters: map[string]any{"workflow": workflow},
		Source: "git+" + c.Repository + "@" + c.Ref, Revision: c.Commit, Invocation: c.Run,
	}
	ids := map[string]any{
		"event_name": c.Trigger, "repository_id": c.RepositoryID, "repository_owner_id": c.OwnerID, "runner_environment": c.RunnerEnvironment,
	}
	switch {
	case strings.HasPrefix(config, "/.github/workflows/"):
		b.Type, b.Internal = BuildTypeGitHub, map[string]any{"github": ids}
	case strings.HasPrefix(config, "//"):
		b.Type, b.Internal = BuildTypeGitLab, map[string]any{"gitlab": map[string]any{
			"pipeline_source": c.Trigger, "project_id": c.RepositoryID, "runner_environment": c.RunnerEnvironment,
		}}
	default:
		workflow["path"] = c.BuildConfig
		b.Type, b.Internal = BuildTypeOther, map[string]any{"system": ids}
	}
	return b, true
}

// LocalBuild is a build that nothing but its signer vouches for: by hand, or
// anywhere that a key signs. The variables of GitHub Actions and GitLab CI, which
// anybody can set, name the source and are recorded as what the environment says;
// they make no builder of it. lookup is like [os.LookupEnv].
func LocalBuild(lookup func(string) (string, bool)) Build {
	env := func(name string) string { v, _ := lookup(name); return v }
	b := Build{Type: BuildTypeLocal, Builder: BuildTypeLocal, Parameters: map[string]any{"tool": "fleeting-plugin"}}
	var repository, ref string
	said := map[string]any{}
	switch {
	case env("GITHUB_ACTIONS") == "true":
		repository, ref, b.Revision = env("GITHUB_SERVER_URL")+"/"+env("GITHUB_REPOSITORY"), env("GITHUB_REF"), env("GITHUB_SHA")
		said["system"], said["workflow"] = "GitHub Actions", env("GITHUB_WORKFLOW_REF")
		b.Invocation = fmt.Sprintf("%s/actions/runs/%s/attempts/%s", repository, env("GITHUB_RUN_ID"), env("GITHUB_RUN_ATTEMPT"))
	case env("GITLAB_CI") == "true":
		repository, ref, b.Revision = env("CI_PROJECT_URL"), "refs/heads/"+env("CI_COMMIT_REF_NAME"), env("CI_COMMIT_SHA")
		if tag := env("CI_COMMIT_TAG"); tag != "" {
			ref = "refs/tags/" + tag
		}
		said["system"], said["workflow"], said["job"] = "GitLab CI", env("CI_CONFIG_PATH"), env("CI_JOB_NAME")
		b.Invocation = env("CI_JOB_URL")
	default:
		return b
	}
	repository = withoutUser(repository)
	said["repository"], said["ref"] = repository, ref
	b.Source, b.Internal = "git+"+repository+"@"+ref, map[string]any{"environment": said}
	return b
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
		return Predicate{}, fmt.Errorf("%w: provenance needs a build type and a builder", dist.ErrInput)
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
