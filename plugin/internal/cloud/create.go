package cloud

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
)

// ServerSpec is a server to create. IDs, not names, except for KeyName.
type ServerSpec struct {
	Name             string
	Flavor, Image    string
	Networks         []string
	SecurityGroups   []string
	KeyName          string
	UserData         []byte // as the server shall see it
	ConfigDrive      bool
	Tags             []string
	Metadata         map[string]string
	AvailabilityZone string
	ServerGroup      string
	// VolumeSize, in GiB, boots from a new volume made of the image and
	// deleted with the server; 0 boots from the flavor's disk.
	VolumeSize int
	VolumeType string
}

type wireCreate struct {
	Server wireCreateServer `json:"server"`
	Hints  map[string]any   `json:"os:scheduler_hints,omitempty"`
}

type wireCreateServer struct {
	Name             string            `json:"name"`
	Flavor           string            `json:"flavorRef"`
	Image            string            `json:"imageRef"`
	Networks         []wireID          `json:"networks"`
	SecurityGroups   []wireName        `json:"security_groups,omitempty"`
	KeyName          string            `json:"key_name,omitempty"`
	UserData         string            `json:"user_data,omitempty"`
	ConfigDrive      bool              `json:"config_drive,omitempty"`
	Tags             []string          `json:"tags,omitempty"`
	Metadata         map[string]string `json:"metadata,omitempty"`
	AvailabilityZone string            `json:"availability_zone,omitempty"`
	Volumes          []wireVolume      `json:"block_device_mapping_v2,omitempty"`
}

type wireID struct {
	UUID string `json:"uuid"`
}

type wireName struct {
	Name string `json:"name"`
}

type wireVolume struct {
	BootIndex           int    `json:"boot_index"`
	UUID                string `json:"uuid"`
	SourceType          string `json:"source_type"`
	DestinationType     string `json:"destination_type"`
	VolumeSize          int    `json:"volume_size"`
	VolumeType          string `json:"volume_type,omitempty"`
	DeleteOnTermination bool   `json:"delete_on_termination"`
}

// wire makes the request body (compute API reference, "Create server").
func (s ServerSpec) wire() wireCreate {
	server := wireCreateServer{
		Name: s.Name, Flavor: s.Flavor, Image: s.Image, KeyName: s.KeyName, ConfigDrive: s.ConfigDrive,
		Tags: s.Tags, Metadata: s.Metadata, AvailabilityZone: s.AvailabilityZone,
		// Always encoded here: some libraries send what happens to be valid
		// base64 as it is.
		UserData: base64.StdEncoding.EncodeToString(s.UserData),
	}
	for _, id := range s.Networks {
		server.Networks = append(server.Networks, wireID{id})
	}
	for _, id := range s.SecurityGroups {
		server.SecurityGroups = append(server.SecurityGroups, wireName{id})
	}
	if s.VolumeSize > 0 {
		server.Image = ""
		server.Volumes = []wireVolume{{
			UUID: s.Image, SourceType: "image", DestinationType: "volume",
			VolumeSize: s.VolumeSize, VolumeType: s.VolumeType, DeleteOnTermination: true,
		}}
	}
	create := wireCreate{Server: server}
	if s.ServerGroup != "" {
		create.Hints = map[string]any{"group": s.ServerGroup}
	}
	return create
}

// Accepted is a server that Nova took on.
type Accepted struct{ ID, RequestID string }

// CreateServer asks for a server and returns its ID once Nova accepted it. It
// is sent once: an error for which [Doubtful] holds leaves open whether the server
// exists, after any other it does not.
func (c *Client) CreateServer(ctx context.Context, spec ServerSpec) (accepted Accepted, err error) {
	// Metadata of people is in Options.Hidden. The marks of the group are no secrets,
	// and stand in the address of each listing.
	c.session.secrets.addSent(string(spec.UserData))
	err = c.do(ctx, call{
		op: "create server " + spec.Name, method: http.MethodPost, service: compute, path: "servers",
		body: spec.wire(), changes: true, once: true, ok: []int{http.StatusAccepted, http.StatusOK, http.StatusCreated},
		decode: func(header http.Header, body io.Reader) error {
			accepted.RequestID = requestID(header)
			accepted.ID, err = createdID(header, body)
			return err
		},
	})
	return accepted, err
}

// createdID takes the ID from the body, or from the Location header when the
// body is cut off.
func createdID(header http.Header, body io.Reader) (string, error) {
	var answer struct {
		Server struct {
			ID string `json:"id"`
		} `json:"server"`
	}
	err := json.NewDecoder(body).Decode(&answer)
	if err == nil && answer.Server.ID != "" {
		return answer.Server.ID, nil
	}
	// Not any Location: a proxy's page may have one, too.
	if id := path.Base(header.Get("Location")); isUUID(id) {
		return id, nil
	}
	if err == nil {
		err = fmt.Errorf("it names no server")
	}
	return "", err
}

// Request is the body that creates the server, for people to read.
func (s ServerSpec) Request() any { return s.wire() }
