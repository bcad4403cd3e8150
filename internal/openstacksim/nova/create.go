package nova

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cinder"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/glance"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/neutron"
)

// serverRequest is the body of POST /servers.
type serverRequest struct {
	Name              string            `json:"name"`
	FlavorRef         json.RawMessage   `json:"flavorRef"`
	ImageRef          string            `json:"imageRef"`
	Networks          json.RawMessage   `json:"networks"`
	KeyName           string            `json:"key_name"`
	SecurityGroups    []nameRef         `json:"security_groups"`
	ConfigDrive       json.RawMessage   `json:"config_drive"`
	UserData          string            `json:"user_data"`
	Metadata          map[string]string `json:"metadata"`
	Tags              []string          `json:"tags"`
	Devices           []blockDevice     `json:"block_device_mapping_v2"`
	Zone              string            `json:"availability_zone"`
	MinCount          json.Number       `json:"min_count"`
	MaxCount          json.Number       `json:"max_count"`
	ReturnReservation json.RawMessage   `json:"return_reservation_id"`
	Description       *string           `json:"description"`
	AdminPass         string            `json:"adminPass"`
}

type blockDevice struct {
	BootIndex   json.Number `json:"boot_index"`
	Source      string      `json:"source_type"`
	Destination string      `json:"destination_type"`
	UUID        string      `json:"uuid"`
	Size        json.Number `json:"volume_size"`
	VolumeType  string      `json:"volume_type"`
	Delete      bool        `json:"delete_on_termination"`
}

type hints struct {
	Group string `json:"group"`
}

func (s *Nova) createServers(c *cloud.Call) (*cloud.Answer, error) {
	request, hint, err := parseCreate(c)
	if err != nil {
		return nil, err
	}
	draft, err := s.draft(c, request, hint)
	if err != nil {
		return nil, err
	}
	count, err := s.admit(c, request, draft)
	if err != nil {
		return nil, err
	}
	draft.reservation = "r-" + s.cloud.NewHex()[:8]
	var first *server
	for i := range count {
		srv := *draft
		srv.id = s.cloud.NewID()
		srv.metadata = map[string]string{}
		maps.Copy(srv.metadata, draft.metadata)
		if count > 1 {
			srv.name = fmt.Sprintf("%s-%d", draft.name, i+1)
		}
		s.enter(&srv, c.RequestID)
		if first == nil {
			first = &srv
		}
	}
	if string(request.ReturnReservation) == "true" || string(request.ReturnReservation) == `"True"` {
		return cloud.Accepted(map[string]any{"reservation_id": draft.reservation})
	}
	return s.createAnswer(c, request, first)
}

// enter adds a server to the cloud and starts its build.
func (s *Nova) enter(srv *server, requestID string) {
	s.entered++
	s.servers[srv.id] = srv
	s.order = append(s.order, srv)
	if srv.group != nil {
		srv.group.members = append(srv.group.members, srv.id)
	}
	s.begin(srv)
	s.act(srv, "create", requestID)
}

func (s *Nova) createAnswer(c *cloud.Call, request serverRequest, srv *server) (*cloud.Answer, error) {
	groups := []nameRef{}
	for _, name := range srv.wantGroups {
		groups = append(groups, nameRef{name})
	}
	password := request.AdminPass
	if password == "" {
		password = s.cloud.NewHex()[:12]
	}
	links := links(c, "servers", srv.id)
	return &cloud.Answer{
		Status: http.StatusAccepted,
		Header: http.Header{"Location": {links[0].Href}},
		Body: map[string]any{"server": map[string]any{
			"id": srv.id, "links": links, "OS-DCF:diskConfig": "MANUAL", "security_groups": groups, "adminPass": password,
		}},
	}, nil
}

// draft turns a valid request into a server that does not exist yet, or says
// what the request names that does not exist.
func (s *Nova) draft(c *cloud.Call, request serverRequest, hint hints) (*server, error) {
	srv := &server{
		name: request.Name, project: c.Auth.Project.ID, user: c.Auth.UserID, image: request.ImageRef,
		keyName: request.KeyName, userData: request.UserData, metadata: request.Metadata, tags: dedupe(request.Tags),
		description: request.Description, wantZone: request.Zone,
	}
	if err := s.draftPlacement(c, srv, request, hint); err != nil {
		return nil, err
	}
	if err := s.draftNetworks(c, srv, request); err != nil {
		return nil, err
	}
	if err := s.draftDisk(c, srv, request); err != nil {
		return nil, err
	}
	drive, err := parseBool(request.ConfigDrive)
	srv.configDrive = drive
	return srv, err
}

func (s *Nova) draftPlacement(c *cloud.Call, srv *server, request serverRequest, hint hints) error {
	flavorID := strings.Trim(string(request.FlavorRef), `"`)
	flavor, found := s.findFlavor(flavorID)
	if !found {
		return cloud.BadRequest("Flavor %s could not be found.", flavorID)
	}
	srv.flavor = flavor
	if srv.keyName != "" {
		if _, found := s.findKeyPair(srv.user, srv.keyName); !found {
			return cloud.BadRequest("Invalid key_name provided.")
		}
	}
	if zone := srv.wantZone; zone != "" {
		if strings.Contains(zone, ":") {
			return cloud.Forbidden("Policy doesn't allow os_compute_api:servers:create:forced_host to be performed.")
		}
		if !slices.Contains(s.zones(), zone) {
			return cloud.BadRequest("The requested availability zone is not available")
		}
	}
	if hint.Group != "" {
		if srv.group = s.findGroup(c.Auth.Project.ID, hint.Group); srv.group == nil {
			return cloud.BadRequest("Instance group %s could not be found.", hint.Group)
		}
	}
	return nil
}

func (s *Nova) draftDisk(c *cloud.Call, srv *server, request serverRequest) error {
	imageID := request.ImageRef
	for _, device := range request.Devices {
		if device.BootIndex.String() != "0" || device.Destination != "volume" {
			continue
		}
		if device.Source != "image" {
			return cloud.BadRequest("The simulator boots volumes made from images only, not from a %s.", device.Source)
		}
		size, err := device.Size.Int64()
		if err != nil || size < 1 {
			return cloud.BadRequest("Images with destination_type 'volume' need to have a non-zero size specified")
		}
		if device.VolumeType != "" && !s.cinder.KnowsType(device.VolumeType) {
			return cloud.BadRequest("Volume type %s could not be found.", device.VolumeType)
		}
		imageID = device.UUID
		srv.image = ""
		srv.wantVolume = &cinder.Wanted{Image: device.UUID, Type: device.VolumeType, Size: int(size), Keep: !device.Delete}
	}
	if imageID == "" {
		return cloud.BadRequest("Missing imageRef attribute")
	}
	image := s.glance.Visible(c.Auth.Project.ID, imageID)
	if image == nil {
		if srv.wantVolume != nil {
			return cloud.BadRequest("Block Device Mapping is Invalid: failed to get image %s.", imageID)
		}
		return cloud.BadRequest("Can not find requested image")
	}
	return fits(srv, image)
}

// fits tells whether an image suits the size of a server.
func fits(srv *server, image *glance.Image) error {
	switch {
	case image.Status != "active":
		return cloud.BadRequest("Image %s is not active.", image.ID)
	case srv.flavor.RAM < image.MinRAM:
		return cloud.BadRequest("Flavor's memory is too small for requested image.")
	case srv.wantVolume != nil && srv.wantVolume.Size < image.MinDisk:
		return cloud.BadRequest("Volume is smaller than the minimum size specified in image metadata. Volume size is %d bytes, minimum size is %d bytes.",
			srv.wantVolume.Size<<30, image.MinDisk<<30)
	case srv.wantVolume == nil && srv.flavor.Disk == 0:
		return cloud.Forbidden("Only volume-backed servers are allowed for flavors with zero disk.")
	case srv.wantVolume == nil && srv.flavor.Disk < image.MinDisk:
		return cloud.BadRequest("Flavor's disk is smaller than the minimum size specified in image metadata. Flavor disk is %d bytes, minimum size is %d bytes.",
			srv.flavor.Disk<<30, image.MinDisk<<30)
	default:
		return nil
	}
}

// admit checks the quotas and says how many servers to make.
func (s *Nova) admit(c *cloud.Call, request serverRequest, draft *server) (int, error) {
	least, most, err := counts(request)
	if err != nil {
		return 0, err
	}
	project, quota := c.Auth.Project, s.cloud.Quota(c.Auth.Project)
	if limit := quota.MetadataItems; limit != fault.Unlimited && len(draft.metadata) > limit {
		return 0, cloud.Forbidden("Maximum number of metadata items exceeds %d", limit)
	}
	count, err := s.fitting(project, draft.flavor, least, most)
	if err != nil {
		return 0, err
	}
	if limit := quota.Ports; limit != fault.Unlimited && len(draft.wantNetworks) > 0 {
		free := (limit - s.neutron.PortsOf(project.ID)) / len(draft.wantNetworks)
		if count = min(count, free); count < least {
			return 0, cloud.Forbidden("Maximum number of ports exceeded")
		}
	}
	if limit := quota.ServerGroupMembers; draft.group != nil && limit != fault.Unlimited && len(s.liveMembers(draft.group))+count > limit {
		return 0, cloud.Forbidden("Quota exceeded, too many servers in group")
	}
	return count, nil
}

// counts reads min_count and max_count.
func counts(request serverRequest) (least, most int, err error) {
	least, most = 1, 1
	if n, err := request.MinCount.Int64(); err == nil && n > 0 {
		least, most = int(n), int(n)
	}
	if n, err := request.MaxCount.Int64(); err == nil && n > 0 {
		most = int(n)
	}
	if least > most {
		return 0, 0, cloud.BadRequest("min_count must be <= max_count")
	}
	return least, most, nil
}

type requestedNetwork struct {
	UUID    string `json:"uuid"`
	Port    string `json:"port"`
	FixedIP string `json:"fixed_ip"`
}

// draftNetworks resolves the networks and security groups of a create.
func (s *Nova) draftNetworks(c *cloud.Call, srv *server, request serverRequest) error {
	wanted, err := s.wantedNetworks(c, request.Networks)
	if err != nil {
		return err
	}
	srv.wantNetworks = wanted
	for _, group := range request.SecurityGroups {
		found := s.neutron.SecurityGroups(c.Auth.Project.ID, group.Name)
		if len(found) == 0 {
			return cloud.BadRequest("Unable to find security_group with name or id '%s'", group.Name)
		}
		if len(found) > 1 {
			return cloud.Conflict("Multiple security_groups found matching '%s'. Use an ID to be more specific.", group.Name)
		}
		srv.wantGroups = append(srv.wantGroups, found[0].Name)
	}
	if len(srv.wantGroups) == 0 {
		srv.wantGroups = []string{"default"}
	}
	return nil
}

func (s *Nova) wantedNetworks(c *cloud.Call, raw json.RawMessage) ([]neutron.Wanted, error) {
	if text := string(raw); text == "" || text == `"auto"` {
		return s.automaticNetwork(c)
	} else if text == `"none"` {
		return nil, nil
	}
	var requested []requestedNetwork
	if err := json.Unmarshal(raw, &requested); err != nil {
		return nil, invalid("networks", strings.Trim(pyRepr(raw), "'"), pyRepr(raw)+" is not valid under any of the given schemas")
	}
	if len(requested) == 0 {
		return s.automaticNetwork(c)
	}
	var wanted []neutron.Wanted
	for _, r := range requested {
		if r.Port != "" {
			p, server := s.neutron.Unused(c.Auth.Project.ID, r.Port)
			if p == nil {
				return nil, cloud.BadRequest("Port id %s could not be found.", r.Port)
			}
			if server != "" {
				return nil, cloud.Conflict("Port %s is still in use.", r.Port)
			}
			wanted = append(wanted, neutron.Wanted{Network: p.Network, Port: p.ID})
			continue
		}
		n := s.neutron.Visible(c.Auth.Project.ID, r.UUID)
		if n == nil {
			return nil, cloud.BadRequest("Network %s could not be found.", r.UUID)
		}
		if !n.IPv4.IsValid() && !n.IPv6.IsValid() {
			return nil, cloud.BadRequest("Network %s requires a subnet in order to boot instances on.", r.UUID)
		}
		wanted = append(wanted, neutron.Wanted{Network: n, FixedIP: r.FixedIP})
	}
	return wanted, nil
}

// automaticNetwork is the only network of a project, if it is the only one.
func (s *Nova) automaticNetwork(c *cloud.Call) ([]neutron.Wanted, error) {
	var wanted []neutron.Wanted
	for _, n := range s.neutron.Usable(c.Auth.Project.ID) {
		wanted = append(wanted, neutron.Wanted{Network: n})
	}
	if len(wanted) > 1 {
		return nil, cloud.Refuse(http.StatusConflict, "Multiple possible networks found, use a Network ID to be more specific.")
	}
	return wanted, nil
}
