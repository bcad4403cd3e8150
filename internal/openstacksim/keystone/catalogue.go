package keystone

import (
	"path"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
)

// catalogue lists the services, each in every region and for every interface.
func (s *Keystone) catalogue(c *cloud.Call, projectID string) []any {
	compute := c.Root("compute") + "/v2.1"
	if s.cloud.Condition.LegacyEndpoint {
		compute = c.Root("compute") + "/v2/" + projectID
	}
	services := []struct{ kind, name, url string }{
		{"identity", "keystone", c.Root("identity") + "/v3"},
		{"compute", "nova", compute},
		{"image", "glance", c.Root("image")},
		{"network", "neutron", c.Root("network")},
		{"volumev3", "cinder", c.Root("volume") + "/v3/" + projectID},
		{"placement", "placement", c.Root("placement")},
	}
	entries := make([]any, 0, len(services))
	for _, service := range services {
		endpoints := []any{}
		for _, region := range s.regions {
			for _, face := range []string{"public", "internal", "admin"} {
				endpoints = append(endpoints, map[string]any{
					"id": cloud.StableHex(service.kind + region + face), "interface": face,
					"region": region, "region_id": region, "url": service.url,
				})
			}
		}
		entries = append(entries, map[string]any{
			"id": cloud.StableHex(service.kind), "type": service.kind, "name": service.name, "endpoints": endpoints,
		})
	}
	return entries
}

// AccessRule lets an application credential make one kind of call. Service is
// the type in the catalogue; in Path, as Nova and the others see it, * stands
// for part of a segment, ** for any rest, and {name} for one segment.
type AccessRule struct{ Service, Method, Path string }

func allowed(rules []AccessRule, c *cloud.Call) bool {
	if rules == nil {
		return true
	}
	inService := strings.TrimPrefix(c.Request.URL.Path, "/"+c.Service())
	for _, rule := range rules {
		kind := rule.Service
		if kind == "volumev3" || kind == "block-storage" {
			kind = "volume"
		}
		if kind == c.Service() && rule.Method == c.Request.Method && pathMatches(rule.Path, inService) {
			return true
		}
	}
	return false
}

func pathMatches(pattern, actual string) bool {
	want, got := split(pattern), split(actual)
	for i, segment := range want {
		if segment == "**" {
			return true
		}
		if i >= len(got) {
			return false
		}
		if strings.HasPrefix(segment, "{") {
			continue
		}
		if match, err := path.Match(segment, got[i]); err != nil || !match {
			return false
		}
	}
	return len(want) == len(got)
}

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}
