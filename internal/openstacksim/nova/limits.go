package nova

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
)

// usage is what a project's servers take of its quota. Like Nova, it does not
// count those that are still to be scheduled: of creates that come together,
// more are accepted than fit, and the rest end in ERROR.
type usage struct{ instances, cores, ram int }

func (s *Nova) usage(project string) usage {
	var u usage
	for _, srv := range s.order {
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
func (s *Nova) fitting(project *cloud.Project, f Flavor, least, want int) (int, error) {
	used, quota := s.usage(project.ID), s.cloud.Quota(project)
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
		if r.limit == fault.Unlimited || r.used+r.each*want <= r.limit {
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
	return fits, cloud.Forbidden("Quota exceeded for %[1]s: Requested %[2]s, but already used %[3]s of %[4]s %[1]s",
		strings.Join(overs, ", "), strings.Join(asked, ", "), strings.Join(taken, ", "), strings.Join(limits, ", "))
}

func (s *Nova) showLimits(c *cloud.Call) (*cloud.Answer, error) {
	quota, used := s.cloud.Quota(c.Auth.Project), s.usage(c.Auth.Project.ID)
	absolute := map[string]any{
		"maxTotalInstances": quota.Instances, "maxTotalCores": quota.Cores, "maxTotalRAMSize": quota.RAM,
		"maxServerMeta": quota.MetadataItems, "maxTotalKeypairs": quota.KeyPairs,
		"maxServerGroups": quota.ServerGroups, "maxServerGroupMembers": quota.ServerGroupMembers,
		"totalInstancesUsed": used.instances, "totalCoresUsed": used.cores, "totalRAMUsed": used.ram,
		"totalServerGroupsUsed": s.groupsOf(c.Auth.Project.ID),
	}
	if !c.AtLeast(57) {
		absolute["maxPersonality"], absolute["maxPersonalitySize"] = 5, 10240
	}
	return cloud.OK(map[string]any{"limits": map[string]any{"rate": []any{}, "absolute": absolute}})
}

func (s *Nova) zones() []string {
	var zones []string
	for _, h := range s.hosts {
		if !slices.Contains(zones, h.Zone) {
			zones = append(zones, h.Zone)
		}
	}
	slices.Sort(zones)
	return zones
}

func (s *Nova) listZones(*cloud.Call) (*cloud.Answer, error) {
	views := []any{}
	for _, zone := range s.zones() {
		views = append(views, map[string]any{"zoneName": zone, "zoneState": map[string]any{"available": true}, "hosts": nil})
	}
	return cloud.OK(map[string]any{"availabilityZoneInfo": views})
}

// showQuota is what `openstack quota show` asks for. What the simulator does
// not bound has the service's defaults.
func (s *Nova) showQuota(c *cloud.Call) (*cloud.Answer, error) {
	if c.Arg("owner") != c.Auth.Project.ID {
		return nil, cloud.Policy("os_compute_api:os-quota-sets:show")
	}
	quota := s.cloud.Quota(c.Auth.Project)
	view := map[string]any{
		"id": c.Arg("owner"), "instances": quota.Instances, "cores": quota.Cores, "ram": quota.RAM,
		"key_pairs": quota.KeyPairs, "metadata_items": quota.MetadataItems,
		"server_groups": quota.ServerGroups, "server_group_members": quota.ServerGroupMembers,
	}
	if !c.AtLeast(36) {
		for _, name := range []string{"fixed_ips", "floating_ips", "security_groups", "security_group_rules"} {
			view[name] = fault.Unlimited
		}
	}
	if !c.AtLeast(57) {
		maps.Copy(view, map[string]any{"injected_files": 5, "injected_file_content_bytes": 10240, "injected_file_path_bytes": 255})
	}
	return cloud.OK(map[string]any{"quota_set": view})
}

func (s *Nova) detailZones(*cloud.Call) (*cloud.Answer, error) {
	return nil, cloud.Policy("os_compute_api:os-availability-zone:detail")
}
