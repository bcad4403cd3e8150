package fault

import "strings"

// Operation names a kind of call, for rules and for budgets. It starts with
// the name of the service and a colon.
type Operation string

// The operations that tests count and disturb most. Every call has one: what
// the simulator does not know is OpUnknown.
const (
	OpUnknown Operation = "unknown"

	OpTokenCreate   Operation = "identity:token.create"
	OpIdentityInfo  Operation = "identity:info"
	OpCredentials   Operation = "identity:application-credentials"
	OpComputeInfo   Operation = "compute:versions"
	OpFlavorList    Operation = "compute:flavor.list"
	OpFlavorShow    Operation = "compute:flavor.show"
	OpServerCreate  Operation = "compute:server.create"
	OpServerList    Operation = "compute:server.list"
	OpServerDetail  Operation = "compute:server.detail"
	OpServerShow    Operation = "compute:server.show"
	OpServerUpdate  Operation = "compute:server.update"
	OpServerDelete  Operation = "compute:server.delete"
	OpServerAction  Operation = "compute:server.action"
	OpServerTags    Operation = "compute:server.tags"
	OpServerMeta    Operation = "compute:server.metadata"
	OpServerParts   Operation = "compute:server.parts"
	OpKeyPairs      Operation = "compute:keypairs"
	OpServerGroups  Operation = "compute:server-groups"
	OpLimits        Operation = "compute:limits"
	OpZones         Operation = "compute:zones"
	OpImageList     Operation = "image:image.list"
	OpImageShow     Operation = "image:image.show"
	OpImageUpdate   Operation = "image:image.update"
	OpImageInfo     Operation = "image:versions"
	OpNetworks      Operation = "network:networks"
	OpSubnets       Operation = "network:subnets"
	OpPorts         Operation = "network:ports"
	OpSecurityGroup Operation = "network:security-groups"
	OpFloatingIPs   Operation = "network:floatingips"
	OpNetworkInfo   Operation = "network:info"
	OpVolumes       Operation = "volume:volumes"
	OpVolumeInfo    Operation = "volume:info"
)

// Operations lists all but [OpUnknown].
func Operations() []Operation {
	return []Operation{
		OpTokenCreate, OpIdentityInfo, OpCredentials, OpComputeInfo, OpFlavorList, OpFlavorShow, OpServerCreate,
		OpServerList, OpServerDetail, OpServerShow, OpServerUpdate, OpServerDelete, OpServerAction, OpServerTags,
		OpServerMeta, OpServerParts, OpKeyPairs, OpServerGroups, OpLimits, OpZones, OpImageList, OpImageShow, OpImageUpdate, OpImageInfo,
		OpNetworks, OpSubnets, OpPorts, OpSecurityGroup, OpFloatingIPs, OpNetworkInfo, OpVolumes, OpVolumeInfo,
	}
}

// Matches reports whether an operation is the one that is named or, with a
// trailing *, starts so. An empty pattern matches all.
func (pattern Operation) Matches(op Operation) bool {
	if pattern == "" || pattern == op {
		return true
	}
	prefix, isPrefix := strings.CutSuffix(string(pattern), "*")
	return isPrefix && strings.HasPrefix(string(op), prefix)
}
