package nova

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
)

func null() json.RawMessage { return json.RawMessage("null") }

type nameRef struct {
	Name string `json:"name"`
}

type addressView struct {
	Version int    `json:"version"`
	Addr    string `json:"addr"`
	Type    string `json:"OS-EXT-IPS:type,omitempty"`
	MAC     string `json:"OS-EXT-IPS-MAC:mac_addr,omitempty"`
}

type faultView struct {
	Code    int    `json:"code"`
	Created string `json:"created"`
	Message string `json:"message"`
}

type volumeRef struct {
	ID                  string `json:"id"`
	DeleteOnTermination *bool  `json:"delete_on_termination,omitempty"`
}

// serverView is a server in full. Raw fields are there, with null, from some
// microversion on.
type serverView struct {
	ID             string                   `json:"id"`
	Name           string                   `json:"name"`
	Status         string                   `json:"status"`
	Tenant         string                   `json:"tenant_id"`
	User           string                   `json:"user_id"`
	Metadata       map[string]string        `json:"metadata"`
	HostID         string                   `json:"hostId"`
	Image          any                      `json:"image"`
	Flavor         any                      `json:"flavor"`
	Created        string                   `json:"created"`
	Updated        string                   `json:"updated"`
	Addresses      map[string][]addressView `json:"addresses"`
	AccessIPv4     string                   `json:"accessIPv4"`
	AccessIPv6     string                   `json:"accessIPv6"`
	Links          []cloud.Link             `json:"links"`
	DiskConfig     string                   `json:"OS-DCF:diskConfig"`
	Fault          *faultView               `json:"fault,omitempty"`
	Progress       *int                     `json:"progress,omitempty"`
	Zone           string                   `json:"OS-EXT-AZ:availability_zone"`
	ConfigDrive    string                   `json:"config_drive"`
	KeyName        *string                  `json:"key_name"`
	LaunchedAt     *string                  `json:"OS-SRV-USG:launched_at"`
	TerminatedAt   *string                  `json:"OS-SRV-USG:terminated_at"`
	SecurityGroups []nameRef                `json:"security_groups,omitempty"`
	TaskState      *string                  `json:"OS-EXT-STS:task_state"`
	VMState        vmState                  `json:"OS-EXT-STS:vm_state"`
	PowerState     int                      `json:"OS-EXT-STS:power_state"`
	Volumes        []volumeRef              `json:"os-extended-volumes:volumes_attached"`
	Locked         *bool                    `json:"locked,omitempty"`
	LockedReason   json.RawMessage          `json:"locked_reason,omitempty"`
	Description    json.RawMessage          `json:"description,omitempty"`
	Tags           *[]string                `json:"tags,omitempty"`
	Certificates   json.RawMessage          `json:"trusted_image_certificates,omitempty"`
	Hostname       string                   `json:"OS-EXT-SRV-ATTR:hostname,omitempty"`
	ServerGroups   *[]string                `json:"server_groups,omitempty"`
}

// view shows a server at the call's microversion; single is for GET of one.
func (s *Nova) view(c *cloud.Call, srv *server, single bool) serverView {
	v := serverView{
		ID: srv.id, Name: srv.name, Status: srv.status(), Tenant: srv.project, User: srv.user,
		Metadata: srv.metadata, Flavor: embeddedFlavor(c, srv.flavor), Image: "",
		Created: s.cloud.Stamp(srv.created, cloud.Seconds), Updated: s.cloud.Stamp(srv.updated, cloud.Seconds),
		Addresses: s.addressesOf(srv), Links: links(c, "servers", srv.id), DiskConfig: "MANUAL",
		Zone: srv.zone, KeyName: cloud.OrNil(srv.keyName), LaunchedAt: s.timeOrNil(srv.launched),
		TerminatedAt: s.timeOrNil(srv.terminated), TaskState: cloud.OrNil(srv.task), VMState: srv.vm, PowerState: srv.power,
		Volumes: s.volumeRefs(c, srv),
	}
	if srv.host != "" {
		v.HostID = cloud.StableHex(srv.project + srv.host)[:24] + cloud.StableHex(srv.host+srv.project)
	}
	if srv.image != "" {
		v.Image = map[string]any{"id": srv.image, "links": bookmark(c, "images", srv.image)}
	}
	if srv.configDrive {
		v.ConfigDrive = "True"
	}
	if srv.vm == vmActive || srv.vm == vmBuilding {
		v.Progress = new(int)
	}
	if srv.fault != nil && (srv.vm == vmError || srv.vm == vmDeleted) {
		v.Fault = &faultView{Code: srv.fault.code, Created: s.cloud.Stamp(srv.fault.at, cloud.Seconds), Message: srv.fault.message}
	}
	if len(v.Addresses) > 0 {
		for range srv.ports { // each has them
			for _, name := range srv.wantGroups {
				v.SecurityGroups = append(v.SecurityGroups, nameRef{name})
			}
		}
	}
	s.viewEnd(srv, &v)
	s.viewByVersion(c, srv, single, &v)
	return v
}

// viewEnd changes what is shown of servers that are deleted or on the way.
func (s *Nova) viewEnd(srv *server, v *serverView) {
	switch {
	case srv.gone() && srv.fate.Ghost:
		v.VMState = vmActive
	case srv.gone(), srv.fate.Bare && (srv.task == taskDeleting || srv.task == taskSoftDeleting):
		v.Metadata = map[string]string{}
	}
}

// viewByVersion adds the fields that came with microversions.
func (s *Nova) viewByVersion(c *cloud.Call, srv *server, single bool, v *serverView) {
	if c.AtLeast(9) {
		v.Locked = &srv.locked
	}
	if c.AtLeast(19) {
		v.Description = rawOrNull(srv.description)
	}
	if c.AtLeast(26) {
		tags := srv.sortedTags()
		if srv.gone() && !srv.fate.Ghost {
			tags = []string{}
		}
		v.Tags = &tags
	}
	if c.AtLeast(63) {
		v.Certificates = null()
	}
	if c.AtLeast(71) && single {
		groups := []string{}
		if srv.group != nil {
			groups = append(groups, srv.group.ID)
		}
		v.ServerGroups = &groups
	}
	if c.AtLeast(73) {
		v.LockedReason = rawOrNull(srv.lockReason)
	}
	if c.AtLeast(90) {
		v.Hostname = srv.hostname
	}
}

// addressesOf gives the addresses that Nova knows: none before ACTIVE.
func (s *Nova) addressesOf(srv *server) map[string][]addressView {
	all := map[string][]addressView{}
	if srv.vm == vmBuilding || srv.gone() || srv.fate.Addressless {
		return all
	}
	for _, id := range srv.ports {
		p := s.neutron.Port(id)
		if p == nil {
			continue
		}
		name := p.Network.Name
		// IPv6 first, as the real Nova often has it.
		if p.IPv6.IsValid() {
			all[name] = append(all[name], addressView{Version: 6, Addr: p.IPv6.String(), Type: "fixed", MAC: p.MAC})
		}
		if p.IPv4.IsValid() {
			all[name] = append(all[name], addressView{Version: 4, Addr: p.IPv4.String(), Type: "fixed", MAC: p.MAC})
		}
		for _, floating := range s.neutron.FloatingOf(p) {
			all[name] = append(all[name], addressView{Version: 4, Addr: floating.String(), Type: "floating", MAC: p.MAC})
		}
	}
	return all
}

func (s *Nova) volumeRefs(c *cloud.Call, srv *server) []volumeRef {
	refs := []volumeRef{}
	for _, id := range srv.volumes {
		v := s.cinder.Volume(id)
		if v == nil {
			continue
		}
		ref := volumeRef{ID: id}
		if c.AtLeast(3) {
			remove := !v.Keep
			ref.DeleteOnTermination = &remove
		}
		refs = append(refs, ref)
	}
	return refs
}

func (s *Nova) timeOrNil(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := s.cloud.Stamp(t, cloud.Micros)
	return &text
}

func rawOrNull(text *string) json.RawMessage {
	if text == nil {
		return null()
	}
	raw, err := json.Marshal(*text)
	if err != nil {
		return null()
	}
	return raw
}

// hostnameOf is the host name that Nova makes of a server's name.
func hostnameOf(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(" _.", r):
			return '-'
		case r == '-', r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		default:
			return -1
		}
	}, strings.ToLower(name))
	return clean[:min(len(clean), 63)]
}
