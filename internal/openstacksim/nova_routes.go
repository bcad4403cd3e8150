package openstacksim

import "net/http"

func (s *Simulator) novaRoutes() []route {
	const root, one = "/compute/v2.1", "/compute/v2.1/servers/{id}"
	return []route{
		{http.MethodGet, "/compute", OpComputeInfo, true, s.computeVersions},
		{http.MethodGet, root, OpComputeInfo, true, s.computeVersion},

		{http.MethodGet, root + "/flavors", OpFlavorList, false, s.listFlavors},
		{http.MethodGet, root + "/flavors/detail", OpFlavorList, false, s.detailFlavors},
		{http.MethodGet, root + "/flavors/{id}", OpFlavorShow, false, s.showFlavor},
		{http.MethodGet, root + "/flavors/{id}/os-extra_specs", OpFlavorShow, false, s.showExtraSpecs},

		{http.MethodGet, root + "/servers", OpServerList, false, s.listServers},
		{http.MethodGet, root + "/servers/detail", OpServerDetail, false, s.detailServers},
		{http.MethodPost, root + "/servers", OpServerCreate, false, s.createServers},
		{http.MethodGet, one, OpServerShow, false, s.showServer},
		{http.MethodPut, one, OpServerUpdate, false, s.updateServer},
		{http.MethodDelete, one, OpServerDelete, false, s.deleteServer},
		{http.MethodPost, one + "/action", OpServerAction, false, s.actOnServer},
		{http.MethodGet, one + "/ips", OpServerParts, false, s.showAddresses},
		{http.MethodGet, one + "/os-interface", OpServerParts, false, s.showInterfaces},
		{http.MethodGet, one + "/os-security-groups", OpServerParts, false, s.showServerSecurityGroups},
		{http.MethodGet, one + "/os-volume_attachments", OpServerParts, false, s.showAttachments},
		{http.MethodGet, one + "/os-instance-actions", OpServerParts, false, s.listInstanceActions},

		{http.MethodGet, one + "/tags", OpServerTags, false, s.listTags},
		{http.MethodPut, one + "/tags", OpServerTags, false, s.replaceTags},
		{http.MethodDelete, one + "/tags", OpServerTags, false, s.clearTags},
		{http.MethodGet, one + "/tags/{tag}", OpServerTags, false, s.hasTag},
		{http.MethodPut, one + "/tags/{tag}", OpServerTags, false, s.addTag},
		{http.MethodDelete, one + "/tags/{tag}", OpServerTags, false, s.removeTag},

		{http.MethodGet, one + "/metadata", OpServerMeta, false, s.listMetadata},
		{http.MethodPut, one + "/metadata", OpServerMeta, false, s.replaceMetadata},
		{http.MethodPost, one + "/metadata", OpServerMeta, false, s.mergeMetadata},
		{http.MethodDelete, one + "/metadata/{key}", OpServerMeta, false, s.removeMetadata},

		{http.MethodGet, root + "/os-keypairs", OpKeyPairs, false, s.listKeyPairs},
		{http.MethodPost, root + "/os-keypairs", OpKeyPairs, false, s.createKeyPair},
		{http.MethodGet, root + "/os-keypairs/{name}", OpKeyPairs, false, s.showKeyPair},
		{http.MethodDelete, root + "/os-keypairs/{name}", OpKeyPairs, false, s.deleteKeyPair},

		{http.MethodGet, root + "/os-server-groups", OpServerGroups, false, s.listServerGroups},
		{http.MethodPost, root + "/os-server-groups", OpServerGroups, false, s.createServerGroup},
		{http.MethodGet, root + "/os-server-groups/{id}", OpServerGroups, false, s.showServerGroup},
		{http.MethodDelete, root + "/os-server-groups/{id}", OpServerGroups, false, s.deleteServerGroup},

		{http.MethodGet, root + "/limits", OpLimits, false, s.showLimits},
		{http.MethodGet, root + "/os-availability-zone", OpZones, false, s.listZones},
	}
}
