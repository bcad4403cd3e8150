package nova

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cinder"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/neutron"
)

// vmState is Nova's state of a server; the status that the API shows follows
// from it and the task state.
type vmState string

const (
	vmBuilding  vmState = "building"
	vmActive    vmState = "active"
	vmStopped   vmState = "stopped"
	vmPaused    vmState = "paused"
	vmSuspended vmState = "suspended"
	vmShelved   vmState = "shelved_offloaded"
	vmError     vmState = "error"
	vmDeleted   vmState = "deleted"
	// vmSoftDeleted is deleted and kept for a while.
	vmSoftDeleted vmState = "soft-delete"
)

// Task states that matter here.
const (
	taskScheduling = "scheduling"
	taskSpawning   = "spawning"
	taskDeleting   = "deleting"

	taskSoftDeleting = "soft-deleting"
)

// server is one of Nova's instances.
type server struct {
	id, name, project, user string
	reservation             string
	hostname                string // from the first name
	flavor                  Flavor
	image                   string // empty when it boots from a volume
	keyName                 string
	configDrive             bool
	userData                string
	description             *string
	metadata                map[string]string
	tags                    []string
	wantGroups              []string // security groups as named at create
	wantNetworks            []neutron.Wanted
	wantVolume              *cinder.Wanted
	wantZone                string
	group                   *ServerGroup

	vm          vmState
	power       int
	task        string
	shown       string // replaces the status when not empty
	host        string
	zone        string
	locked      bool
	adminLocked bool
	lockReason  *string
	fault       *serverFault
	ports       []string
	volumes     []string
	created     time.Time
	updated     time.Time
	launched    time.Time
	terminated  time.Time
	actions     []instanceAction
	fate        fault.Fate
	planted     bool // past the API, with a fate of its own
	build       int  // counts the steps planned for it, so that a stale one does nothing
}

type serverFault struct {
	code    int
	message string
	at      time.Time
}

type instanceAction struct {
	name, requestID string
	at              time.Time
}

// gone tells whether the server is deleted.
func (srv *server) gone() bool { return srv.vm == vmDeleted }

// status is what the API calls the server's state.
func (srv *server) status() string {
	switch {
	case srv.shown != "":
		return srv.shown
	case srv.fate.Status != "" && srv.host != "":
		return srv.fate.Status
	}
	switch srv.vm {
	case vmBuilding:
		return "BUILD"
	case vmActive:
		return activeStatus(srv.task)
	case vmStopped:
		return "SHUTOFF"
	case vmSoftDeleted:
		return "SOFT_DELETED"
	default:
		return strings.ToUpper(string(srv.vm)) // its own name in capitals
	}
}

// activeStatus is the status of a server that runs, or is about to again.
func activeStatus(task string) string {
	switch task {
	case "rebooting":
		return "REBOOT"
	case "rebooting_hard":
		return "HARD_REBOOT"
	default:
		return "ACTIVE"
	}
}

// become brings a server to a state, with no task left. Its power, by Nova's
// number, stays what it was in ERROR and when it is kept after a deletion.
func (s *Nova) become(srv *server, state vmState) {
	if state != vmError && state != vmSoftDeleted {
		srv.power = map[vmState]int{vmActive: 1, vmPaused: 3, vmStopped: 4, vmSuspended: 4, vmShelved: 4}[state]
	}
	srv.vm, srv.task = state, ""
	s.touch(srv)
}

// touch notes a change.
func (s *Nova) touch(srv *server) { srv.updated = s.cloud.Now() }

// findServer gives a server of the caller's project that a GET may see.
func (s *Nova) findServer(c *cloud.Call) (*server, error) {
	id := c.Arg("id")
	srv := s.servers[id]
	if srv == nil || srv.gone() || srv.project != c.Auth.Project.ID || s.cloud.Now().Before(srv.created.Add(srv.fate.MissingFor)) {
		return nil, cloud.NotFound("Instance %s could not be found.", id)
	}
	return srv, nil
}

// server is findServer for calls that need the server's cell.
func (s *Nova) server(c *cloud.Call) (*server, error) {
	srv, err := s.findServer(c)
	if err == nil && s.cloud.Condition.CellDown {
		err = unexpected()
	}
	return srv, err
}

// tagged is server for the calls about tags, which came with 2.26.
func (s *Nova) tagged(c *cloud.Call) (*server, error) {
	if !c.AtLeast(26) {
		return nil, cloud.NotFound("The resource could not be found.")
	}
	return s.server(c)
}

// unexpected is Nova's answer to an error of its own.
func unexpected() error {
	return cloud.Refuse(500, "Unexpected API Error. Please report this at http://bugs.launchpad.net/nova/ and attach the Nova API log if possible.\n<class 'nova.exception.NovaException'>")
}

// act notes an action for os-instance-actions.
func (s *Nova) act(srv *server, name, requestID string) {
	srv.actions = append(srv.actions, instanceAction{name: name, requestID: requestID, at: s.cloud.Now()})
}

// sortedTags gives the tags as Nova lists them: as asked for until it is
// scheduled, then in order.
func (srv *server) sortedTags() []string {
	tags := slices.Clone(srv.tags)
	if srv.task != taskScheduling {
		slices.Sort(tags)
	}
	if tags == nil {
		tags = []string{}
	}
	return tags
}

// Servers lists those that are not deleted, oldest first. The lock is held.
func (s *Nova) Servers() []fault.ServerInfo {
	var infos []fault.ServerInfo
	for _, srv := range s.order {
		if !srv.gone() {
			infos = append(infos, s.info(srv))
		}
	}
	return infos
}

// Entered counts all servers that there ever were. The lock is held.
func (s *Nova) Entered() int { return s.entered }

func (s *Nova) info(srv *server) fault.ServerInfo {
	info := fault.ServerInfo{
		ID: srv.id, Name: srv.name, Status: srv.status(), TaskState: srv.task, Flavor: srv.flavor.Name, Image: srv.image,
		KeyName: srv.keyName, UserData: srv.userData, Zone: srv.zone, Host: srv.host, ConfigDrive: srv.configDrive,
		Locked: srv.locked, Tags: slices.Clone(srv.tags), Metadata: maps.Clone(srv.metadata),
		Volumes: slices.Clone(srv.volumes), Created: srv.created,
	}
	slices.SortFunc(info.Tags, strings.Compare)
	if p := s.cloud.Project(srv.project); p != nil {
		info.Project = p.Name
	}
	if srv.group != nil {
		info.Group = srv.group.ID
	}
	if srv.fault != nil {
		info.Fault = srv.fault.message
	}
	for name, addresses := range s.addressesOf(srv) {
		if info.Addresses == nil {
			info.Addresses = map[string][]string{}
		}
		for _, a := range addresses {
			info.Addresses[name] = append(info.Addresses[name], a.Addr)
		}
	}
	return info
}
