package openstacksim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// usage is what a project's servers take of its quota. Like Nova, it does not
// count those that are still to be scheduled: of creates that come together,
// more are accepted than fit, and the rest end in ERROR.
type usage struct{ instances, cores, ram int }

func (s *Simulator) usage(project string) usage {
	var u usage
	for _, srv := range s.serverOrder {
		if srv.project == project && !srv.gone() && srv.vm != vmSoftDeleted && srv.task != taskScheduling {
			u.instances++
			u.cores += srv.flavor.VCPUs
			u.ram += srv.flavor.RAM
		}
	}
	return u
}

// fitting gives how many more servers of a flavor the quota allows, at most
// want, and the refusal for when that is fewer than least.
func (s *Simulator) fitting(project *Project, f Flavor, least, want int) (int, error) {
	used, quota := s.usage(project.ID), s.quotaOf(project)
	resources := []struct {
		name              string
		used, limit, each int
	}{
		{"cores", used.cores, quota.Cores, f.VCPUs},
		{"instances", used.instances, quota.Instances, 1},
		{"ram", used.ram, quota.RAM, f.RAM},
	}
	fits := want
	var overs, asked, taken, limits []string
	for _, r := range resources {
		if r.limit == Unlimited || r.used+r.each*want <= r.limit {
			continue
		}
		request := strconv.Itoa(r.each * want)
		if r.name == "instances" && least < want {
			request = fmt.Sprintf("%d-%d", least, want)
		}
		overs, asked = append(overs, r.name), append(asked, request)
		taken, limits = append(taken, strconv.Itoa(r.used)), append(limits, strconv.Itoa(r.limit))
		fits = min(fits, max(r.limit-r.used, 0)/max(r.each, 1))
	}
	if fits >= least {
		return fits, nil
	}
	return fits, forbidden("Quota exceeded for %[1]s: Requested %[2]s, but already used %[3]s of %[4]s %[1]s",
		strings.Join(overs, ", "), strings.Join(asked, ", "), strings.Join(taken, ", "), strings.Join(limits, ", "))
}

func (s *Simulator) showLimits(c *call) (*answer, error) {
	quota, used := s.quotaOf(c.auth.project), s.usage(c.auth.project.ID)
	groups := 0
	for _, g := range s.serverGroups {
		if g.Project == c.auth.project.ID {
			groups++
		}
	}
	absolute := map[string]any{
		"maxTotalInstances": quota.Instances, "maxTotalCores": quota.Cores, "maxTotalRAMSize": quota.RAM,
		"maxServerMeta": quota.MetadataItems, "maxTotalKeypairs": quota.KeyPairs,
		"maxServerGroups": quota.ServerGroups, "maxServerGroupMembers": quota.ServerGroupMembers,
		"totalInstancesUsed": used.instances, "totalCoresUsed": used.cores, "totalRAMUsed": used.ram,
		"totalServerGroupsUsed": groups,
	}
	if !c.micro.least(57) {
		absolute["maxPersonality"], absolute["maxPersonalitySize"] = 5, 10240
	}
	return ok(map[string]any{"limits": map[string]any{"rate": []any{}, "absolute": absolute}})
}

func (s *Simulator) zones() []string {
	var zones []string
	for _, h := range s.hosts {
		if !slices.Contains(zones, h.Zone) {
			zones = append(zones, h.Zone)
		}
	}
	slices.Sort(zones)
	return zones
}

func (s *Simulator) listZones(*call) (*answer, error) {
	views := []any{}
	for _, zone := range s.zones() {
		views = append(views, map[string]any{"zoneName": zone, "zoneState": map[string]any{"available": true}, "hosts": nil})
	}
	return ok(map[string]any{"availabilityZoneInfo": views})
}
