package openstacksim

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
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

func (s *Simulator) createServers(c *call) (*answer, error) {
	request, hint, err := s.parseCreate(c)
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
	draft.reservation = "r-" + s.newHex()[:8]
	var first *server
	for i := range count {
		srv := *draft
		srv.id = s.newID()
		srv.metadata = map[string]string{}
		maps.Copy(srv.metadata, draft.metadata)
		if count > 1 {
			srv.name = fmt.Sprintf("%s-%d", draft.name, i+1)
		}
		s.enter(&srv, c.requestID)
		if first == nil {
			first = &srv
		}
	}
	if string(request.ReturnReservation) == "true" || string(request.ReturnReservation) == `"True"` {
		return accepted(map[string]any{"reservation_id": draft.reservation})
	}
	return s.createAnswer(c, request, first)
}

// enter adds a server to the cloud and starts its build.
func (s *Simulator) enter(srv *server, requestID string) {
	s.entered++
	s.servers[srv.id] = srv
	s.serverOrder = append(s.serverOrder, srv)
	if srv.group != nil {
		srv.group.members = append(srv.group.members, srv.id)
	}
	s.begin(srv)
	s.act(srv, "create", requestID)
}

func (s *Simulator) createAnswer(c *call, request serverRequest, srv *server) (*answer, error) {
	groups := []nameRef{}
	for _, name := range srv.wantGroups {
		groups = append(groups, nameRef{name})
	}
	password := request.AdminPass
	if password == "" {
		password = s.newHex()[:12]
	}
	links := novaLinks(c, "servers", srv.id)
	return &answer{
		status: http.StatusAccepted,
		header: http.Header{"Location": {links[0].Href}},
		body: map[string]any{"server": map[string]any{
			"id": srv.id, "links": links, "OS-DCF:diskConfig": "MANUAL", "security_groups": groups, "adminPass": password,
		}},
	}, nil
}

// draft turns a valid request into a server that does not exist yet, or says
// what the request names that does not exist.
func (s *Simulator) draft(c *call, request serverRequest, hint hints) (*server, error) {
	srv := &server{
		name: request.Name, project: c.auth.project.ID, user: c.auth.user.ID, image: request.ImageRef,
		keyName: request.KeyName, userData: request.UserData, metadata: request.Metadata, tags: dedupe(request.Tags),
		description: request.Description, wantZone: request.Zone,
	}
	steps := []func() error{
		func() error { return s.draftPlacement(c, srv, request, hint) },
		func() error { return s.draftNetworks(c, srv, request) },
		func() error { return s.draftDisk(c, srv, request) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	drive, err := parseBool(request.ConfigDrive)
	srv.configDrive = drive
	return srv, err
}

func (s *Simulator) draftPlacement(c *call, srv *server, request serverRequest, hint hints) error {
	flavorID := strings.Trim(string(request.FlavorRef), `"`)
	flavor, found := s.findFlavor(flavorID)
	if !found {
		return badRequest("Flavor %s could not be found.", flavorID)
	}
	srv.flavor = flavor
	if srv.keyName != "" {
		if _, found := s.findKeyPair(srv.user, srv.keyName); !found {
			return badRequest("Invalid key_name provided.")
		}
	}
	if zone := srv.wantZone; zone != "" {
		if strings.Contains(zone, ":") {
			return forbidden("Policy doesn't allow os_compute_api:servers:create:forced_host to be performed.")
		}
		known := false
		for _, z := range s.zones() {
			known = known || z == zone
		}
		if !known {
			return badRequest("The requested availability zone is not available")
		}
	}
	if hint.Group != "" {
		if srv.group = s.findGroup(c.auth.project.ID, hint.Group); srv.group == nil {
			return badRequest("Instance group %s could not be found.", hint.Group)
		}
	}
	return nil
}

func (s *Simulator) draftDisk(c *call, srv *server, request serverRequest) error {
	imageID := request.ImageRef
	for _, device := range request.Devices {
		if device.BootIndex.String() != "0" || device.Destination != "volume" {
			continue
		}
		if device.Source != "image" {
			return badRequest("The simulator boots volumes made from images only, not from a %s.", device.Source)
		}
		size, err := device.Size.Int64()
		if err != nil || size < 1 {
			return badRequest("Images with destination_type 'volume' need to have a non-zero size specified")
		}
		if device.VolumeType != "" && !s.knowsVolumeType(device.VolumeType) {
			return badRequest("Volume type %s could not be found.", device.VolumeType)
		}
		imageID = device.UUID
		srv.image = ""
		srv.wantVolume = &wantedVolume{image: device.UUID, kind: device.VolumeType, size: int(size), keep: !device.Delete}
	}
	if imageID == "" {
		return badRequest("Missing imageRef attribute")
	}
	image := s.visibleImage(c.auth.project.ID, imageID)
	if image == nil {
		if srv.wantVolume != nil {
			return badRequest("Block Device Mapping is Invalid: failed to get image %s.", imageID)
		}
		return badRequest("Can not find requested image")
	}
	return fits(srv, image)
}

// fits tells whether an image suits the size of a server.
func fits(srv *server, image *Image) error {
	switch {
	case image.Status != "active":
		return badRequest("Image %s is not active.", image.ID)
	case srv.flavor.RAM < image.MinRAM:
		return badRequest("Flavor's memory is too small for requested image.")
	case srv.wantVolume != nil && srv.wantVolume.size < image.MinDisk:
		return badRequest("Volume is smaller than the minimum size specified in image metadata. Volume size is %d bytes, minimum size is %d bytes.",
			srv.wantVolume.size<<30, image.MinDisk<<30)
	case srv.wantVolume == nil && srv.flavor.Disk == 0:
		return forbidden("Only volume-backed servers are allowed for flavors with zero disk.")
	case srv.wantVolume == nil && srv.flavor.Disk < image.MinDisk:
		return badRequest("Flavor's disk is smaller than the minimum size specified in image metadata. Flavor disk is %d bytes, minimum size is %d bytes.",
			srv.flavor.Disk<<30, image.MinDisk<<30)
	default:
		return nil
	}
}

// admit checks the quotas and says how many servers to make.
func (s *Simulator) admit(c *call, request serverRequest, draft *server) (int, error) {
	least, most, err := counts(request)
	if err != nil {
		return 0, err
	}
	project, quota := c.auth.project, s.quotaOf(c.auth.project)
	if limit := quota.MetadataItems; limit != Unlimited && len(draft.metadata) > limit {
		return 0, forbidden("Maximum number of metadata items exceeds %d", limit)
	}
	count, err := s.fitting(project, draft.flavor, least, most)
	if err != nil {
		return 0, err
	}
	if limit := quota.Ports; limit != Unlimited && len(draft.wantNetworks) > 0 {
		free := (limit - s.portsOf(project.ID)) / len(draft.wantNetworks)
		if count = min(count, free); count < least {
			return 0, forbidden("Maximum number of ports exceeded")
		}
	}
	if limit := quota.ServerGroupMembers; draft.group != nil && limit != Unlimited && s.liveMembers(draft.group)+count > limit {
		return 0, forbidden("Quota exceeded, too many servers in group")
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
		return 0, 0, badRequest("min_count must be <= max_count")
	}
	return least, most, nil
}

// liveMembers counts the servers of a group that are not deleted.
func (s *Simulator) liveMembers(g *ServerGroup) int {
	live := 0
	for _, id := range g.members {
		if member := s.servers[id]; member != nil && !member.gone() {
			live++
		}
	}
	return live
}

func dedupe(tags []string) []string {
	var unique []string
	seen := map[string]bool{}
	for _, tag := range tags {
		if !seen[tag] {
			seen[tag] = true
			unique = append(unique, tag)
		}
	}
	return unique
}

// parseBool reads a boolean as Nova takes it: bare or in words.
func parseBool(raw json.RawMessage) (bool, error) {
	switch strings.ToLower(strings.Trim(string(raw), `"`)) {
	case "", "null", "false", "f", "no", "off", "0":
		return false, nil
	case "true", "t", "yes", "on", "1":
		return true, nil
	default:
		return false, badRequest("Invalid input for field/attribute config_drive. Value: %s.", raw)
	}
}
