package deptest

import (
	"fmt"
	"slices"
	"strings"
)

// A never rule: packages below From do not need, even through others, any
// package below Needs.
type never struct {
	from, needs []string
	why         string
}

// An only rule: of our packages, only those below Importers import a package
// below Import themselves.
type only struct {
	imports, importers []string
	why                string
}

// A closed rule: a package imports the standard library and what is listed.
type closed struct {
	pkg     string
	allowed []string
	why     string
}

// Modules of others that the rules name.
const (
	oras        = "oras.land"
	sigstore    = "github.com/sigstore"
	ggcr        = "github.com/google/go-containerregistry"
	gophercloud = "github.com/gophercloud"
	fleeting    = "gitlab.com/gitlab-org/fleeting"
)

func neverRules() []never {
	return []never{
		{
			[]string{"plugin", "cmd/fleeting-plugin-openstack"},
			[]string{oras, sigstore, ggcr, own("packager"), own("installer"), own("sbom"), own("internal/ociregistry")},
			"the plugin runs beside jobs' credentials: no registry and no signing code in it",
		},
		{
			[]string{"installer", "cmd/fleeting-plugin"},
			[]string{gophercloud, own("plugin"), fleeting},
			"the installer serves every plugin, and is not one",
		},
		{
			[]string{"installer"},
			[]string{own("packager")},
			"installing does not need publishing",
		},
		{
			[]string{"packager", "sbom"},
			// What installs needs installer/internal; installer/version is a leaf.
			[]string{gophercloud, own("plugin"), own("installer/internal"), fleeting},
			"publishing does not need installing, nor this plugin",
		},
		{
			[]string{"internal/openstacksim"},
			[]string{gophercloud, own("plugin"), fleeting},
			"the simulator is written from the services' answers, not from our client",
		},
		{
			[]string{"installer/internal/trust", "internal/sigstore", "internal/artifact"},
			[]string{own("internal/ociregistry"), oras},
			"what judges bytes does not fetch them",
		},
		{
			[]string{"installer", "packager", "sbom", "cmd/fleeting-plugin"},
			[]string{
				sigstore + "/cosign", sigstore + "/rekor", sigstore + "/sigstore-go/pkg/verify", sigstore + "/sigstore-go/pkg/sign",
				"github.com/go-openapi", "google.golang.org/grpc/resolver", "github.com/hashicorp/go-plugin", "k8s.io", "go.opentelemetry.io",
				"go.uber.org", "github.com/docker", "github.com/syndtr", "golang.org/x/oauth2",
			},
			"decision 11: what verification and signing do not use is not linked",
		},
		{
			[]string{"installer", "packager", "sbom"},
			[]string{"github.com/spf13"},
			"a library has no command line",
		},
		{
			[]string{"internal/cli"},
			[]string{own("packager"), own("installer"), own("plugin"), sigstore, gophercloud},
			"the frame knows no command",
		},
	}
}

func onlyRules() []only {
	return []only{
		{
			[]string{oras},
			[]string{"internal/ociregistry"},
			"one place for registry authentication, retries and limits",
		},
		{
			[]string{sigstore},
			[]string{"internal/sigstore", "installer/internal/trust", "packager/internal/signer", "internal/test/trusttest"},
			"one place that verifies, one that judges and one that signs",
		},
		{
			[]string{gophercloud},
			[]string{"plugin/internal/cloud"},
			"one place that turns OpenStack's errors into ours",
		},
		{
			[]string{own("internal/test/registrytest"), own("internal/test/trusttest"), own("internal/test/plugintest")},
			[]string{"internal/test/registrytest", "internal/test/trusttest", "internal/test/plugintest"},
			"test doubles are for tests",
		},
		{
			[]string{own("internal/openstacksim")},
			[]string{"internal/openstacksim", "cmd/openstack-simulator", "internal/test/contract"},
			"the simulator is for tests and its own command",
		},
		{
			[]string{own("internal/cli")},
			[]string{"cmd", "internal/docgen"},
			"libraries do not print, exit or read the environment",
		},
	}
}

func closedRules() []closed {
	const sim = "internal/openstacksim/"
	shared := []string{own(sim + "cloud"), own(sim + "fault")}
	return []closed{
		{"plugin/internal/fleet", []string{own("plugin/internal/backoff")}, "group logic is tested without a cloud"},
		{"plugin/internal/backoff", nil, "a leaf"},
		{
			"plugin/internal/peers",
			[]string{"github.com/gofrs/flock", own("internal/access"), own("internal/durable")},
			"which processes live is told without a cloud",
		},
		{"internal/durable", []string{"golang.org/x/sys/unix"}, "a leaf, which the plugin needs too"},
		{"internal/plaintext", nil, "a leaf, which the plugin needs too"},
		{"internal/jsonbound", nil, "a leaf"},
		{"internal/reason", nil, "a leaf"},
		{"installer/version", nil, "a leaf, which publishing needs too"},
		{sim + "fault", []string{own("internal/nearest")}, "what can go wrong is decided without a service"},
		{sim + "cloud", []string{own(sim + "fault")}, "what the services share knows none of them"},
		{sim + "keystone", shared, "a service stands on what all share"},
		{sim + "glance", shared, "a service stands on what all share"},
		{sim + "neutron", shared, "a service stands on what all share"},
		{sim + "cinder", append([]string{own(sim + "glance")}, shared...), "volumes are made of images, and nothing else"},
		{
			sim + "nova",
			append([]string{own(sim + "glance"), own(sim + "neutron"), own(sim + "cinder"), "golang.org/x/crypto/ssh"}, shared...),
			"Nova is a client of the services below it",
		},
		{sim + "guest", []string{"golang.org/x/crypto/ssh"}, "the inside of a server knows no OpenStack"},
		{
			"internal/artifact",
			[]string{
				"github.com/opencontainers/image-spec", "github.com/opencontainers/go-digest", "golang.org/x/sys/cpu", // which ARM the host is
				"golang.org/x/text/unicode/norm", // names that are one file on macOS
				own("internal/jsonbound"), own("internal/reason"),
			},
			"the format is bytes in and bytes out",
		},
	}
}

// A budget is the most packages that one of ours may need, itself and the
// standard library's among them.
type budget struct {
	pkg  string
	most int
}

// budgets leave a little room for the standard library, which grows with each
// version of Go. Decision 11 has the reason of each module that is linked.
func budgets() []budget {
	return []budget{
		{"cmd/fleeting-plugin", 470},
		{"installer", 420},
		{"packager", 430},
		{"cmd/fleeting-plugin-openstack", 430},
	}
}

func own(pkg string) string { return Module + "/" + pkg }

// Violations returns a sentence for each arrow that points the wrong way.
func (g Graph) Violations() []string {
	var found []string
	for _, rule := range neverRules() {
		found = append(found, g.checkNever(rule)...)
	}
	for _, rule := range onlyRules() {
		found = append(found, g.checkOnly(rule)...)
	}
	for _, rule := range closedRules() {
		found = append(found, g.checkClosed(rule)...)
	}
	for _, b := range budgets() {
		if n := len(g.Links(own(b.pkg))); n > b.most {
			found = append(found, fmt.Sprintf("%s links %d packages, more than %d: say in decision 11 what the new ones are for", b.pkg, n, b.most))
		}
	}
	return found
}

func (g Graph) checkNever(rule never) []string {
	var found []string
	for _, pkg := range g.Own() {
		if !slices.ContainsFunc(rule.from, func(from string) bool { return Under(pkg, own(from)) }) {
			continue
		}
		for _, target := range rule.needs {
			if way := g.Why(pkg, target); way != nil {
				found = append(found, fmt.Sprintf("%s: %s", strings.Join(way, " imports "), rule.why))
			}
		}
	}
	return found
}

func (g Graph) checkOnly(rule only) []string {
	var found []string
	for _, pkg := range g.Own() {
		if slices.ContainsFunc(rule.importers, func(may string) bool { return Under(pkg, own(may)) }) {
			continue
		}
		for _, imported := range g[pkg].Imports {
			if slices.ContainsFunc(rule.imports, func(target string) bool { return Under(imported, target) }) {
				found = append(found, fmt.Sprintf("%s imports %s: %s", pkg, imported, rule.why))
			}
		}
	}
	return found
}

func (g Graph) checkClosed(rule closed) []string {
	var found []string
	for _, pkg := range g.Own() {
		if !Under(pkg, own(rule.pkg)) {
			continue
		}
		for _, imported := range g[pkg].Imports {
			allowed := g[imported].Standard || Under(imported, own(rule.pkg)) ||
				slices.ContainsFunc(rule.allowed, func(target string) bool { return Under(imported, target) })
			if !allowed {
				found = append(found, fmt.Sprintf("%s imports %s: %s", pkg, imported, rule.why))
			}
		}
	}
	return found
}
