package openstacksim

import (
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/glance"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/guest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/keystone"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/neutron"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/nova"
)

// What users of a simulator name, from the rooms that hold it.

//nolint:revive // each is documented in its room
type (
	Call                  = cloud.Record
	Project               = cloud.Project
	User                  = keystone.User
	ApplicationCredential = keystone.ApplicationCredential
	AccessRule            = keystone.AccessRule
	Image                 = glance.Image
	Network               = neutron.Network
	SecurityGroup         = neutron.SecurityGroup
	SecurityRule          = neutron.SecurityRule
	Flavor                = nova.Flavor
	Host                  = nova.Host
	KeyPair               = nova.KeyPair
	ServerGroup           = nova.ServerGroup
	ServerSpec            = nova.ServerSpec
	SSH                   = guest.Options

	Quota        = fault.Quota
	ServerInfo   = fault.ServerInfo
	Rule         = fault.Rule
	Fault        = fault.Fault
	Fate         = fault.Fate
	Injected     = fault.Injected
	Operation    = fault.Operation
	FaultKind    = fault.Kind
	FaultScope   = fault.Scope
	FaultSetting = fault.Setting
)

// The operations that users name; [Operations] lists them all.
const (
	OpFlavorList    = fault.OpFlavorList
	OpFloatingIPs   = fault.OpFloatingIPs
	OpIdentityInfo  = fault.OpIdentityInfo
	OpImageList     = fault.OpImageList
	OpKeyPairs      = fault.OpKeyPairs
	OpNetworks      = fault.OpNetworks
	OpPorts         = fault.OpPorts
	OpSecurityGroup = fault.OpSecurityGroup
	OpServerCreate  = fault.OpServerCreate
	OpServerDelete  = fault.OpServerDelete
	OpServerDetail  = fault.OpServerDetail
	OpServerGroups  = fault.OpServerGroups
	OpServerShow    = fault.OpServerShow
	OpTokenCreate   = fault.OpTokenCreate
	OpVolumeInfo    = fault.OpVolumeInfo
	OpZones         = fault.OpZones
)

// Values of rules and fates.
const (
	Unlimited        = fault.Unlimited
	Always           = fault.Always
	FaultNoValidHost = fault.NoValidHost
	FaultRetries     = fault.RetriesExceeded
	ScopeCalls       = fault.ScopeCalls
	ScopeServers     = fault.ScopeServers
	ScopeCloud       = fault.ScopeCloud
)

var (
	// ErrFault reports a text that [ParseRule] cannot read.
	ErrFault = fault.ErrText
	// ErrSSHPort reports that servers could not answer SSH on the port asked for.
	ErrSSHPort = guest.ErrPort
)

// Operations lists all but that of unknown calls.
func Operations() []Operation { return fault.Operations() }

// ParseRule is [fault.Parse].
func ParseRule(text string) (Rule, error) { return fault.Parse(text) }

// FaultKinds is [fault.Kinds].
func FaultKinds() []FaultKind { return fault.Kinds() }

// CommonFaultSettings is [fault.CommonSettings].
func CommonFaultSettings() []FaultSetting { return fault.CommonSettings() }

// Refuse is [fault.Refuse].
func Refuse(status int, message string) Fault { return fault.Refuse(status, message) }

// Gateway is [fault.Gateway].
func Gateway(status int) Fault { return fault.Gateway(status) }

// RateLimited is [fault.RateLimited].
func RateLimited(retryAfter string) Fault { return fault.RateLimited(retryAfter) }

// Delay is [fault.Delay].
func Delay(d time.Duration) Fault { return fault.Delay(d) }

// Refused is [fault.Refused].
func Refused() Fault { return fault.Refused() }

// Reset is [fault.Reset].
func Reset() Fault { return fault.Reset() }

// Hang is [fault.Hang].
func Hang() Fault { return fault.Hang() }

// CommitThenStatus is [fault.CommitThenStatus].
func CommitThenStatus(status int) Fault { return fault.CommitThenStatus(status) }

// CommitThenReset is [fault.CommitThenReset].
func CommitThenReset() Fault { return fault.CommitThenReset() }

// CommitThenTruncate is [fault.CommitThenTruncate].
func CommitThenTruncate() Fault { return fault.CommitThenTruncate() }

// CommitThenHang is [fault.CommitThenHang].
func CommitThenHang() Fault { return fault.CommitThenHang() }
