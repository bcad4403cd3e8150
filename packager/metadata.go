package packager

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
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
