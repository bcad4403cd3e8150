package packager

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// Metadata is what people and tools are told about the artifact. Empty fields
// are left out. The first nine become org.opencontainers.image.* annotations
// (image-spec v1.1.1, annotations.md), the last two the JSON annotation
// io.radome.fleeting.plugin.
type Metadata struct {
	// Title is the plugin's name, for instance "fleeting-plugin-openstack". By
	// default it is the name of the main package.
	Title string
	// Description is one sentence.
	Description string
	// Revision is the commit that was built. By default it comes from the
	// executables' build information.
	Revision string
	// Source, URL and Documentation are links to the code, the project and its
	// manual.
	Source, URL, Documentation string
	// Licenses is an SPDX expression.
	Licenses string
	// Vendor and Authors name who publishes and who wrote it.
	Vendor, Authors string
	// Created is the time that everything in the artifact carries. By default
	// it is the commit's time, from the executables' build information: never the
	// clock, which would make each artifact another one. Where that is missing
	// too, the artifact does not say when it was made, and what cannot do without
	// a time, such as files, carries 1970-01-01.
	Created time.Time

	// MinimumRunner is the oldest GitLab Runner known to work, such as "17.9".
	MinimumRunner string
	// Protocol is the version of go-plugin's protocol that the plugin speaks.
	// By default it is 0 for executables built with fleeting's library, which
	// has no other.
	Protocol *int
}

// fleetingModule is the library that plugins are built with.
const fleetingModule = "gitlab.com/gitlab-org/fleeting/fleeting"

// complete fills in what the executables tell.
func (m Metadata) complete(executables []sbom.Executable) (Metadata, artifact.Metadata) {
	extra := artifact.Metadata{MinimumRunner: m.MinimumRunner, Protocol: m.Protocol}
	for _, e := range executables {
		m.Title = cmp.Or(m.Title, titleOf(e.Package))
		if m.Revision == "" && e.Setting("vcs.modified") != "true" {
			m.Revision = e.Setting("vcs.revision")
		}
		if m.Created.IsZero() {
			if t, err := time.Parse(time.RFC3339, e.Setting("vcs.time")); err == nil {
				m.Created = t
			}
		}
		for _, dep := range e.Modules {
			if dep.Path == fleetingModule && extra.Library == "" {
				extra.Library = dep.Version
			}
		}
	}
	if extra.Library != "" && extra.Protocol == nil {
		extra.Protocol = new(int)
	}
	m.Created = m.Created.UTC().Truncate(time.Second)
	return m, extra
}

// titleOf is the name of a plugin by that of its main package.
func titleOf(pkg string) string {
	if pkg == "" || pkg == "command-line-arguments" {
		return ""
	}
	return path.Base(pkg)
}

// moment is the time for what must carry one: when nothing tells it, that of
// the epoch, which everybody knows to be none.
func (m Metadata) moment() time.Time {
	if m.Created.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return m.Created
}

// told is the time that the artifact carries, nil if nothing tells one.
func (m Metadata) told() *time.Time {
	if m.Created.IsZero() {
		return nil
	}
	return &m.Created
}

// annotations returns those of index and manifests.
func (m Metadata) annotations(version Version) map[string]string {
	all := map[string]string{
		ocispec.AnnotationTitle:         m.Title,
		ocispec.AnnotationDescription:   m.Description,
		ocispec.AnnotationVersion:       version.String(),
		ocispec.AnnotationRevision:      m.Revision,
		ocispec.AnnotationSource:        m.Source,
		ocispec.AnnotationURL:           m.URL,
		ocispec.AnnotationDocumentation: m.Documentation,
		ocispec.AnnotationLicenses:      m.Licenses,
		ocispec.AnnotationVendor:        m.Vendor,
		ocispec.AnnotationAuthors:       m.Authors,
	}
	if !m.Created.IsZero() {
		all[ocispec.AnnotationCreated] = m.Created.Format(time.RFC3339)
	}
	maps.DeleteFunc(all, func(_, v string) bool { return v == "" })
	return all
}

// runnerVersion is how GitLab names its releases.
var runnerVersion = regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`)

// validate refuses values that readers could not use.
func (m Metadata) validate() error {
	if m.MinimumRunner != "" && !runnerVersion.MatchString(m.MinimumRunner) {
		return &dist.InputError{Path: m.MinimumRunner, Problem: "is not a version of GitLab Runner", Remedy: "write it as 17.9 or 17.9.1"}
	}
	if m.Protocol != nil && *m.Protocol < 0 {
		return &dist.InputError{Path: fmt.Sprint(*m.Protocol), Problem: "is not a protocol version"}
	}
	return nil
}

// ReadMetadata reads back what [Pack] wrote into annotations; annotation gives
// the value of one, "" where there is none.
func ReadMetadata(annotation func(name string) string) (Metadata, error) {
	m := Metadata{
		Title: annotation(ocispec.AnnotationTitle), Description: annotation(ocispec.AnnotationDescription),
		Revision: annotation(ocispec.AnnotationRevision), Source: annotation(ocispec.AnnotationSource),
		URL: annotation(ocispec.AnnotationURL), Documentation: annotation(ocispec.AnnotationDocumentation),
		Licenses: annotation(ocispec.AnnotationLicenses), Vendor: annotation(ocispec.AnnotationVendor),
		Authors: annotation(ocispec.AnnotationAuthors),
	}
	// Without it, the artifact was made without a time.
	if text := annotation(ocispec.AnnotationCreated); text != "" {
		created, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return m, fmt.Errorf("annotation %s: %w", ocispec.AnnotationCreated, err)
		}
		m.Created = created
	}
	if text := annotation(artifact.AnnotationMetadata); text != "" {
		said, err := artifact.DecodeMetadata(text)
		if err != nil {
			return m, err
		}
		m.MinimumRunner, m.Protocol = said.MinimumRunner, said.Protocol
	}
	return m, nil
}

// PublishedMetadata reads what the index, or the single manifest, says that a tag
// or digest resolves to. Nothing is verified. Errors are those of the registry and
// [ErrNotPlugin].
func PublishedMetadata(ctx context.Context, from Source, reference string) (Metadata, error) {
	t, err := readTree(ctx, from, reference)
	if err != nil {
		return Metadata{}, err
	}
	return ReadMetadata(func(name string) string { return t.annotations[name] })
}

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
