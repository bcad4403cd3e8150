package openstacksim

import (
	"maps"
	"net/http"
	"slices"
)

// quotaRoutes are what `openstack quota show` and `openstack availability zone
// list` ask for. What the simulator does not bound has the services' defaults.
func (s *Simulator) quotaRoutes() []route {
	const volume = "/volume/v3/{project}"
	return []route{
		{http.MethodGet, "/compute/v2.1/os-quota-sets/{owner}", OpLimits, false, s.showComputeQuota},
		{http.MethodGet, "/compute/v2.1/os-availability-zone/detail", OpZones, false, s.detailZones},
		{http.MethodGet, volume + "/os-quota-sets/{owner}", OpVolumeInfo, false, s.showVolumeQuota},
		{http.MethodGet, volume + "/os-availability-zone", OpVolumeInfo, false, s.listVolumeZones},
		{http.MethodGet, "/network/v2.0/quotas/{owner}", OpNetworkInfo, false, s.showNetworkQuota},
	}
}

// ownQuota refuses to show another project's quota, as the services do to
// everybody but an administrator.
func (s *Simulator) ownQuota(c *call, refusal error) (Quota, error) {
	if c.arg("owner") != c.auth.project.ID {
		return Quota{}, refusal
	}
	return s.quotaOf(c.auth.project), nil
}

func policy(rule string) error {
	return forbidden("Policy doesn't allow %s to be performed.", rule)
}

func (s *Simulator) showComputeQuota(c *call) (*answer, error) {
	quota, err := s.ownQuota(c, policy("os_compute_api:os-quota-sets:show"))
	if err != nil {
		return nil, err
	}
	view := map[string]any{
		"id": c.arg("owner"), "instances": quota.Instances, "cores": quota.Cores, "ram": quota.RAM,
		"key_pairs": quota.KeyPairs, "metadata_items": quota.MetadataItems,
		"server_groups": quota.ServerGroups, "server_group_members": quota.ServerGroupMembers,
	}
	if !c.micro.least(36) {
		for _, name := range []string{"fixed_ips", "floating_ips", "security_groups", "security_group_rules"} {
			view[name] = Unlimited
		}
	}
	if !c.micro.least(57) {
		maps.Copy(view, map[string]any{"injected_files": 5, "injected_file_content_bytes": 10240, "injected_file_path_bytes": 255})
	}
	return ok(map[string]any{"quota_set": view})
}

func (s *Simulator) detailZones(*call) (*answer, error) {
	return nil, policy("os_compute_api:os-availability-zone:detail")
}

func (s *Simulator) showVolumeQuota(c *call) (*answer, error) {
	quota, err := s.ownQuota(c, policy("volume_extension:quotas:show"))
	if err != nil {
		return nil, err
	}
	view := map[string]any{
		"id": c.arg("owner"), "volumes": quota.Volumes, "gigabytes": quota.Gigabytes, "per_volume_gigabytes": Unlimited,
		"snapshots": 10, "backups": 10, "backup_gigabytes": 1000, "groups": 10,
	}
	for _, kind := range slices.Concat(s.volumeTypes, []string{"__DEFAULT__"}) {
		for _, name := range []string{"volumes_", "gigabytes_", "snapshots_"} {
			view[name+kind] = Unlimited
		}
	}
	return ok(map[string]any{"quota_set": view})
}

func (s *Simulator) listVolumeZones(*call) (*answer, error) {
	return ok(map[string]any{"availabilityZoneInfo": []any{
		map[string]any{"zoneName": "nova", "zoneState": map[string]any{"available": true}},
	}})
}

func (s *Simulator) showNetworkQuota(c *call) (*answer, error) {
	quota, err := s.ownQuota(c, neutronRefusal(http.StatusForbidden, "PolicyNotAuthorized", "rule:get_quota is disallowed by policy"))
	if err != nil {
		return nil, err
	}
	return ok(map[string]any{"quota": map[string]any{
		"port": quota.Ports, "floatingip": quota.FloatingIPs, "network": 100, "subnet": 100, "subnetpool": Unlimited, "router": 10,
		"rbac_policy": 10, "security_group": 100, "security_group_rule": 1000,
	}})
}
