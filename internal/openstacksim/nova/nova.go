// Package nova is the compute service of the simulator, with its microversions:
// servers and what becomes of them on the clock, flavors, key pairs, server
// groups and limits.
//
// It imports Neutron, Glance and Cinder, as the real Nova is their client, and
// they know nothing of it. There is no hypervisor: a server is a few states and
// times. What answers SSH for it is not here.
package nova

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cinder"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/glance"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/neutron"
)

// Settings are the times and limits of one cloud's Nova.
type Settings struct {
	BuildTime, DeleteTime, ActionTime time.Duration
	MaxLimit                          int
	MaxMicroversion                   string
	NoVersions                        bool
}

// Seed is what exists from the start. User is the ID of the owner of the key
// pairs and groups.
type Seed struct {
	User         string
	Flavors      []Flavor
	Hosts        []Host
	KeyPairs     []KeyPair
	ServerGroups []ServerGroup
}

// Nova is the service of one cloud.
type Nova struct {
	// Destroyed is told of each server that is gone, by its ID; optional.
	Destroyed func(id string)

	cloud    *cloud.Cloud
	neutron  *neutron.Neutron
	glance   *glance.Glance
	cinder   *cinder.Cinder
	settings Settings

	owner    string // of what administrators make
	flavors  []Flavor
	hosts    []Host
	keyPairs []KeyPair
	groups   []*ServerGroup
	servers  map[string]*server
	order    []*server // oldest first

	fates   func(n int, server fault.ServerInfo) fault.Fate
	created int // by users, for SetFates
	entered int
}

// New adds Nova to a cloud that has the other services.
func New(c *cloud.Cloud, networks *neutron.Neutron, images *glance.Glance, volumes *cinder.Cinder, settings Settings, seed Seed) (*Nova, error) {
	if _, ok := parseMicroversion(settings.MaxMicroversion); !ok {
		return nil, fmt.Errorf("openstacksim: microversion %q: want 2.N", settings.MaxMicroversion)
	}
	s := &Nova{
		cloud: c, neutron: networks, glance: images, cinder: volumes, settings: settings,
		owner: seed.User, hosts: slices.Clone(seed.Hosts), servers: map[string]*server{},
	}
	for _, f := range seed.Flavors {
		f.ID = c.OrID(f.ID)
		s.flavors = append(s.flavors, f)
	}
	slices.SortFunc(s.flavors, func(a, b Flavor) int { return strings.Compare(a.ID, b.ID) })
	for _, k := range seed.KeyPairs {
		k.created, k.user = c.Now(), seed.User
		s.keyPairs = append(s.keyPairs, k)
	}
	for _, g := range seed.ServerGroups {
		g.ID, g.Project, g.user = c.OrID(g.ID), c.ProjectID(g.Project), seed.User
		s.groups = append(s.groups, &g)
	}
	s.serve()
	return s, nil
}

func (s *Nova) serve() {
	api := s.cloud.Serve(cloud.Service{Name: "compute", Wrap: wrap, Before: s.negotiate, Headers: headers})
	api.Open("GET ", fault.OpComputeInfo, s.versions)
	api.Open("GET /v2.1", fault.OpComputeInfo, s.version)

	api.Handle("GET /v2.1/flavors", fault.OpFlavorList, s.listFlavors)
	api.Handle("GET /v2.1/flavors/detail", fault.OpFlavorList, s.detailFlavors)
	api.Handle("GET /v2.1/flavors/{id}", fault.OpFlavorShow, cloud.With(s.flavor, s.showFlavor))
	api.Handle("GET /v2.1/flavors/{id}/os-extra_specs", fault.OpFlavorShow, cloud.With(s.flavor, s.showExtraSpecs))

	api.Handle("GET /v2.1/servers", fault.OpServerList, s.listServers)
	api.Handle("GET /v2.1/servers/detail", fault.OpServerDetail, s.detailServers)
	api.Handle("POST /v2.1/servers", fault.OpServerCreate, s.createServers)
	api.Handle("GET /v2.1/servers/{id}", fault.OpServerShow, s.showServer)
	api.Handle("PUT /v2.1/servers/{id}", fault.OpServerUpdate, cloud.With(s.server, s.updateServer))
	api.Handle("DELETE /v2.1/servers/{id}", fault.OpServerDelete, cloud.With(s.server, s.deleteServer))
	api.Handle("POST /v2.1/servers/{id}/action", fault.OpServerAction, cloud.With(s.server, s.actOnServer))
	api.Handle("GET /v2.1/servers/{id}/ips", fault.OpServerParts, cloud.With(s.server, s.showAddresses))
	api.Handle("GET /v2.1/servers/{id}/os-interface", fault.OpServerParts, cloud.With(s.server, s.showInterfaces))
	api.Handle("GET /v2.1/servers/{id}/os-security-groups", fault.OpServerParts, cloud.With(s.server, s.showServerSecurityGroups))
	api.Handle("GET /v2.1/servers/{id}/os-volume_attachments", fault.OpServerParts, cloud.With(s.server, s.showAttachments))
	api.Handle("GET /v2.1/servers/{id}/os-instance-actions", fault.OpServerParts, cloud.With(s.server, s.listInstanceActions))

	api.Handle("GET /v2.1/servers/{id}/tags", fault.OpServerTags, cloud.With(s.tagged, s.listTags))
	api.Handle("PUT /v2.1/servers/{id}/tags", fault.OpServerTags, cloud.With(s.tagged, s.replaceTags))
	api.Handle("DELETE /v2.1/servers/{id}/tags", fault.OpServerTags, cloud.With(s.tagged, s.clearTags))
	api.Handle("GET /v2.1/servers/{id}/tags/{tag}", fault.OpServerTags, cloud.With(s.tagged, s.hasTag))
	api.Handle("PUT /v2.1/servers/{id}/tags/{tag}", fault.OpServerTags, cloud.With(s.tagged, s.addTag))
	api.Handle("DELETE /v2.1/servers/{id}/tags/{tag}", fault.OpServerTags, cloud.With(s.tagged, s.removeTag))

	api.Handle("GET /v2.1/servers/{id}/metadata", fault.OpServerMeta, cloud.With(s.server, s.listMetadata))
	api.Handle("PUT /v2.1/servers/{id}/metadata", fault.OpServerMeta, cloud.With(s.server, s.replaceMetadata))
	api.Handle("POST /v2.1/servers/{id}/metadata", fault.OpServerMeta, cloud.With(s.server, s.mergeMetadata))
	api.Handle("DELETE /v2.1/servers/{id}/metadata/{key}", fault.OpServerMeta, cloud.With(s.server, s.removeMetadata))

	api.Handle("GET /v2.1/os-keypairs", fault.OpKeyPairs, s.listKeyPairs)
	api.Handle("POST /v2.1/os-keypairs", fault.OpKeyPairs, s.createKeyPair)
	api.Handle("GET /v2.1/os-keypairs/{name}", fault.OpKeyPairs, cloud.With(s.keyPair, s.showKeyPair))
	api.Handle("DELETE /v2.1/os-keypairs/{name}", fault.OpKeyPairs, cloud.With(s.keyPair, s.deleteKeyPair))

	api.Handle("GET /v2.1/os-server-groups", fault.OpServerGroups, s.listServerGroups)
	api.Handle("POST /v2.1/os-server-groups", fault.OpServerGroups, s.createServerGroup)
	api.Handle("GET /v2.1/os-server-groups/{id}", fault.OpServerGroups, cloud.With(s.serverGroup, s.showServerGroup))
	api.Handle("DELETE /v2.1/os-server-groups/{id}", fault.OpServerGroups, cloud.With(s.serverGroup, s.deleteServerGroup))

	api.Handle("GET /v2.1/limits", fault.OpLimits, s.showLimits)
	api.Handle("GET /v2.1/os-quota-sets/{owner}", fault.OpLimits, s.showQuota)
	api.Handle("GET /v2.1/os-availability-zone", fault.OpZones, s.listZones)
	api.Handle("GET /v2.1/os-availability-zone/detail", fault.OpZones, s.detailZones)
}

// parseMicroversion reads the N of 2.N.
func parseMicroversion(text string) (minor int, ok bool) {
	number, found := strings.CutPrefix(text, "2.")
	n, err := strconv.Atoi(number)
	return n, found && err == nil && n >= 1
}

// negotiate finds the microversion of a call, and purges the server of its
// marker where a fault asks for that.
func (s *Nova) negotiate(c *cloud.Call) error {
	if marker := s.servers[c.Query.Get("marker")]; c.DropMarker && marker != nil {
		s.purge(marker)
	}
	greatest, _ := parseMicroversion(s.settings.MaxMicroversion)
	switch asked := cloud.AskedMicroversion(c.Request.Header); {
	case c.Legacy:
		c.Minor = 1
	case asked == "":
		c.Microversion, c.Minor = "2.1", 1
	case asked == "latest":
		c.Microversion, c.Minor = s.settings.MaxMicroversion, greatest
	case !regexp.MustCompile(`^[1-9]\d*\.(?:0|[1-9]\d*)$`).MatchString(asked):
		return cloud.BadRequest("API Version String %s is of invalid format. Must be of format MajorNum.MinorNum.", asked)
	default:
		minor, valid := parseMicroversion(asked)
		c.Microversion = asked
		if !valid || minor > greatest {
			return cloud.Refuse(http.StatusNotAcceptable,
				"Version %s is not supported by the API. Minimum is 2.1 and maximum is %s.", asked, s.settings.MaxMicroversion)
		}
		c.Minor = minor
	}
	return nil
}

func headers(c *cloud.Call, _ bool, header http.Header) {
	if !c.Plain {
		header.Set("X-Compute-Request-Id", c.RequestID)
	}
	if c.Microversion != "" {
		header.Set("Openstack-Api-Version", "compute "+c.Microversion)
		header.Set("X-Openstack-Nova-Api-Version", c.Microversion)
		header["Vary"] = []string{"OpenStack-API-Version", "X-OpenStack-Nova-API-Version"}
	}
}

func wrap(e *cloud.Error) *cloud.Answer {
	answer := cloud.NovaError(e)
	if e.Kind != cloud.NoRoute {
		answer.Header = http.Header{"Content-Type": {"application/json; charset=UTF-8"}}
	}
	return answer
}

func (s *Nova) versions(c *cloud.Call) (*cloud.Answer, error) {
	if s.settings.NoVersions {
		return nil, cloud.NotFound("The resource could not be found.")
	}
	old := map[string]any{
		"id": "v2.0", "status": "SUPPORTED", "version": "", "min_version": "", "updated": "2011-01-21T11:33:21Z",
		"links": []any{map[string]any{"rel": "self", "href": c.Root("compute") + "/v2/"}},
	}
	current := s.document(c)
	delete(current, "media-types")
	current["links"] = []any{map[string]any{"rel": "self", "href": c.Root("compute") + "/v2.1/"}}
	c.Microversion, c.Plain = "", true
	return cloud.OK(map[string]any{"versions": []any{old, current}})
}

func (s *Nova) version(c *cloud.Call) (*cloud.Answer, error) {
	if s.settings.NoVersions {
		return nil, cloud.NotFound("The resource could not be found.")
	}
	return cloud.One("version", s.document(c))
}

func (s *Nova) document(c *cloud.Call) map[string]any {
	return map[string]any{
		"id": "v2.1", "status": "CURRENT", "version": s.settings.MaxMicroversion, "min_version": "2.1",
		"updated": "2013-07-23T11:33:21Z",
		"links": []any{
			map[string]any{"rel": "self", "href": c.Root("compute") + "/v2.1/"},
			map[string]any{"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"},
		},
		"media-types": []any{map[string]any{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}},
	}
}

// links are the two links of a thing of Nova.
func links(c *cloud.Call, kind, id string) []cloud.Link {
	self, rest := c.Root("compute")+"/v2.1", c.Root("compute")
	if c.Legacy {
		self, rest = rest+"/v2/"+c.Auth.Project.ID, rest+"/"+c.Auth.Project.ID
	}
	return []cloud.Link{
		{Rel: "self", Href: fmt.Sprintf("%s/%s/%s", self, kind, id)},
		{Rel: "bookmark", Href: fmt.Sprintf("%s/%s/%s", rest, kind, id)},
	}
}

func bookmark(c *cloud.Call, kind, id string) []cloud.Link { return links(c, kind, id)[1:] }
