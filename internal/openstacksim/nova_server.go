package openstacksim

import (
	"slices"
	"time"
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
	wantNetworks            []wantedNetwork
	wantVolume              *wantedVolume
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
	fate        Fate
	planted     bool // past the API, with a fate of its own
	build       int  // counts the steps planned for it, so that a stale one does nothing
}

type serverFault struct {
	code    int
	message string
	at      time.Time
}

type wantedNetwork struct {
	network *network
	port    string
	fixedIP string
}

type wantedVolume struct {
	image, kind string
	size        int
	keep        bool
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
	case vmPaused:
		return "PAUSED"
	case vmSuspended:
		return "SUSPENDED"
	case vmShelved:
		return "SHELVED_OFFLOADED"
	case vmError:
		return "ERROR"
	case vmSoftDeleted:
		return "SOFT_DELETED"
	case vmDeleted:
		return "DELETED"
	default:
		return "UNKNOWN"
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

// powerOf is Nova's number for the power of a server that came to a state;
// in ERROR, and kept after a deletion, it keeps the power it had.
func powerOf(state vmState, before int) int {
	switch state {
	case vmActive:
		return 1
	case vmPaused:
		return 3
	case vmStopped, vmSuspended, vmShelved:
		return 4
	case vmError, vmSoftDeleted:
		return before
	case vmBuilding, vmDeleted:
		return 0
	default:
		return 0
	}
}

// become brings a server to a state, with no task left.
func (s *Simulator) become(srv *server, state vmState) {
	srv.vm, srv.task, srv.power = state, "", powerOf(state, srv.power)
	s.touch(srv)
}

// touch notes a change.
func (s *Simulator) touch(srv *server) { srv.updated = s.present }

// findServer gives a server of the caller's project that a GET may see.
func (s *Simulator) findServer(c *call) (*server, error) {
	id := c.arg("id")
	srv := s.servers[id]
	if srv == nil || srv.gone() || srv.project != c.auth.project.ID || s.present.Before(srv.created.Add(srv.fate.MissingFor)) {
		return nil, notFound("Instance %s could not be found.", id)
	}
	return srv, nil
}

// reachServer is findServer for calls that need the server's cell.
func (s *Simulator) reachServer(c *call) (*server, error) {
	srv, err := s.findServer(c)
	if err == nil && s.weather.CellDown {
		return nil, unexpected()
	}
	return srv, err
}

// unexpected is Nova's answer to an error of its own.
func unexpected() error {
	return refuse(500, "Unexpected API Error. Please report this at http://bugs.launchpad.net/nova/ and attach the Nova API log if possible.\n<class 'nova.exception.NovaException'>")
}

// act notes an action for os-instance-actions.
func (s *Simulator) act(srv *server, name, requestID string) {
	srv.actions = append(srv.actions, instanceAction{name: name, requestID: requestID, at: s.present})
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
