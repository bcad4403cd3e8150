package packager

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// DetectMetadata reads what GitHub Actions, GitLab CI and reproducible builds
// say in environment variables: links, commit, and the time, of
// SOURCE_DATE_EPOCH (https://reproducible-builds.org/specs/source-date-epoch/),
// else that of GitLab's commit
// (https://docs.gitlab.com/ci/variables/predefined_variables/).
// lookup is like [os.LookupEnv]. The error is of [dist.ErrInput].
func DetectMetadata(lookup func(string) (string, bool)) (Metadata, error) {
	env := func(name string) string { v, _ := lookup(name); return v }
	var m Metadata
	if env("GITHUB_ACTIONS") == "true" {
		m.Source = env("GITHUB_SERVER_URL") + "/" + env("GITHUB_REPOSITORY")
		m.Revision, m.Vendor = env("GITHUB_SHA"), env("GITHUB_REPOSITORY_OWNER")
	}
	if env("GITLAB_CI") == "true" {
		m.Source, m.Revision = env("CI_PROJECT_URL"), env("CI_COMMIT_SHA")
		if committed, err := time.Parse(time.RFC3339, env("CI_COMMIT_TIMESTAMP")); err == nil {
			m.Created = committed
		}
		m.Title, m.Description, m.Vendor = env("CI_PROJECT_NAME"), env("CI_PROJECT_DESCRIPTION"), env("CI_PROJECT_ROOT_NAMESPACE")
	}
	m.Source = strings.TrimSuffix(withoutUser(m.Source), ".git")
	m.URL = m.Source
	if epoch := env("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil || seconds < 0 {
			return m, &dist.InputError{Path: "SOURCE_DATE_EPOCH=" + epoch, Problem: "is not a number of seconds", Remedy: "unset it, or set it with: git log -1 --format=%ct"}
		}
		m.Created = time.Unix(seconds, 0)
	}
	return m, nil
}

// Or fills the empty fields of m from other.
func (m Metadata) Or(other Metadata) Metadata {
	for _, f := range []struct {
		field *string
		value string
	}{
		{&m.Title, other.Title},
		{&m.Description, other.Description},
		{&m.Revision, other.Revision},
		{&m.Source, other.Source},
		{&m.URL, other.URL},
		{&m.Documentation, other.Documentation},
		{&m.Licenses, other.Licenses},
		{&m.Vendor, other.Vendor},
		{&m.Authors, other.Authors},
		{&m.MinimumRunner, other.MinimumRunner},
	} {
		*f.field = cmp.Or(*f.field, f.value)
	}
	if m.Created.IsZero() {
		m.Created = other.Created
	}
	if m.Protocol == nil {
		m.Protocol = other.Protocol
	}
	return m
}
