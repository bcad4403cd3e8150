// Package cinder is the volume service of the simulator: volumes that Nova
// makes of images for servers to boot from, their types and their quota.
//
// It asks Glance, which it imports, for what a volume remembers of its image.
// Volumes have no data, and calls that make or attach one are not there yet.
package cinder

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/glance"
)

// Volume is one of Cinder's.
type Volume struct {
	ID, Type, Status string
	// Server is empty when it is not attached.
	Server string
	// Size is in GiB.
	Size int
	// Keep leaves it when its server goes.
	Keep bool
	// Attachment is the ID of its attachment to the server.
	Attachment string

	image, project, user string
	created              time.Time
}

// DefaultType is the volume type that Cinder makes for itself.
const DefaultType = "__DEFAULT__"

// Cinder is the service of one cloud.
type Cinder struct {
	cloud   *cloud.Cloud
	glance  *glance.Glance
	types   []string
	volumes map[string]*Volume
}

// New adds Cinder to a cloud, with volume types by name.
func New(c *cloud.Cloud, images *glance.Glance, types []string) *Cinder {
	s := &Cinder{cloud: c, glance: images, types: types, volumes: map[string]*Volume{}}
	api := c.Serve(cloud.Service{Name: "volume", Wrap: cloud.NovaError, Before: ownProject, Headers: headers})
	api.Open("GET ", fault.OpVolumeInfo, s.versions)
	api.Open("GET /v3", fault.OpVolumeInfo, s.versions)
	const root = "GET /v3/{project}"
	api.Handle(root+"/volumes", fault.OpVolumes, s.listVolumes)
	api.Handle(root+"/volumes/detail", fault.OpVolumes, s.listVolumes)
	api.Handle(root+"/volumes/{id}", fault.OpVolumes, cloud.With(s.ownVolume, s.showVolume))
	api.Handle("DELETE /v3/{project}/volumes/{id}", fault.OpVolumes, cloud.With(s.ownVolume, s.deleteVolume))
	api.Handle(root+"/types", fault.OpVolumeInfo, s.listTypes)
	api.Handle(root+"/limits", fault.OpVolumeInfo, s.showLimits)
	api.Handle(root+"/os-quota-sets/{owner}", fault.OpVolumeInfo, s.showQuota)
	api.Handle(root+"/os-availability-zone", fault.OpVolumeInfo, s.listZones)
	return s
}

func ownProject(c *cloud.Call) error {
	if project := c.Arg("project"); project != "" && project != c.Auth.Project.ID {
		return cloud.BadRequest("Malformed request url")
	}
	return nil
}

func headers(c *cloud.Call, own bool, header http.Header) {
	if own {
		header.Set("X-Compute-Request-Id", c.RequestID)
		header.Set("Openstack-Api-Version", "volume 3.0")
		header.Set("Vary", "OpenStack-API-Version")
	}
}

func (s *Cinder) versions(c *cloud.Call) (*cloud.Answer, error) {
	return &cloud.Answer{Status: http.StatusMultipleChoices, Body: map[string]any{"versions": []any{map[string]any{
		"id": "v3.0", "status": "CURRENT", "version": "3.70", "min_version": "3.0", "updated": "2022-08-31T00:00:00Z",
		"links": []any{
			map[string]any{"rel": "describedby", "type": "text/html", "href": "https://docs.openstack.org/"},
			cloud.Link{Rel: "self", Href: c.Root("volume") + "/v3/"},
		},
		"media-types": []any{map[string]any{"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}},
	}}}}, nil
}

// KnowsType reports whether there is a volume type of a name or an ID.
func (s *Cinder) KnowsType(nameOrID string) bool {
	return slices.ContainsFunc(s.types, func(name string) bool { return name == nameOrID || typeID(name) == nameOrID })
}

func typeID(name string) string { return cloud.StableUUID("volume type " + name) }

// Volume returns one; nil if there is none. The lock is held.
func (s *Cinder) Volume(id string) *Volume { return s.volumes[id] }

// Volumes lists them all, by ID. The lock is held.
func (s *Cinder) Volumes() []*Volume { return cloud.Sorted(s.volumes, nil) }

// Wanted is a volume that a server shall boot from. Type is a name or an ID;
// empty means the first type.
type Wanted struct {
	Image, Type string
	Size        int
	Keep        bool
}

// Boot makes the volume that a server boots from, or says why not. The lock is held.
func (s *Cinder) Boot(want Wanted, server, project, user string) (id, problem string) {
	quota := s.cloud.Quota(s.cloud.Project(project))
	count, gigabytes := s.used(project)
	if quota.Volumes != fault.Unlimited && count >= quota.Volumes {
		return "", fmt.Sprintf("VolumeLimitExceeded: Maximum number of volumes allowed (%d) exceeded for quota 'volumes'.", quota.Volumes)
	}
	if quota.Gigabytes != fault.Unlimited && gigabytes+want.Size > quota.Gigabytes {
		return "", fmt.Sprintf("VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested %dG, quota is %dG and %dG has been consumed.",
			want.Size, quota.Gigabytes, gigabytes)
	}
	kind := want.Type
	if kind == "" && len(s.types) > 0 {
		kind = s.types[0]
	}
	for _, name := range s.types {
		if typeID(name) == kind {
			kind = name
		}
	}
	v := &Volume{
		ID: s.cloud.NewID(), Type: kind, Status: "in-use", Server: server, Size: want.Size, Keep: want.Keep,
		Attachment: s.cloud.NewID(), image: want.Image, project: project, user: user, created: s.cloud.Now(),
	}
	s.volumes[v.ID] = v
	return v.ID, ""
}

// used counts the volumes of a project, and their size in GiB.
func (s *Cinder) used(project string) (count, gigabytes int) {
	for _, v := range s.volumes {
		if v.project == project {
			count++
			gigabytes += v.Size
		}
	}
	return count, gigabytes
}

// Release is what becomes of a volume when its server goes. The lock is held.
func (s *Cinder) Release(id string) {
	switch v := s.volumes[id]; {
	case v == nil:
	case v.Keep:
		v.Status, v.Server = "available", ""
	default:
		delete(s.volumes, id)
	}
}

func (s *Cinder) view(c *cloud.Call, v *Volume) map[string]any {
	attachments := []any{}
	if v.Server != "" {
		attachments = append(attachments, map[string]any{
			"id": v.ID, "attachment_id": v.Attachment, "volume_id": v.ID, "server_id": v.Server, "host_name": nil,
			"device": "/dev/sda", "attached_at": v.created.UTC().Format(cloud.Micros),
		})
	}
	return map[string]any{
		"id": v.ID, "status": v.Status, "size": v.Size, "availability_zone": "nova", "name": "", "description": "",
		"created_at": v.created.UTC().Format(cloud.Micros), "updated_at": v.created.UTC().Format(cloud.Micros), "volume_type": v.Type,
		"snapshot_id": nil, "source_volid": nil, "metadata": map[string]any{}, "user_id": v.user, "bootable": "true",
		"encrypted": false, "replication_status": nil, "consistencygroup_id": nil, "multiattach": false,
		"attachments": attachments, "os-vol-tenant-attr:tenant_id": v.project,
		"volume_image_metadata": s.imageOf(v.image),
		"links": []cloud.Link{
			{Rel: "self", Href: c.Root("volume") + "/v3/" + v.project + "/volumes/" + v.ID},
			{Rel: "bookmark", Href: c.Root("volume") + "/" + v.project + "/volumes/" + v.ID},
		},
	}
}

// imageOf is what a volume remembers of the image it was made from.
func (s *Cinder) imageOf(id string) map[string]any {
	kept := map[string]any{"image_id": id}
	image := s.glance.Image(id)
	if image == nil {
		return kept
	}
	for key, value := range image.Properties {
		kept[key] = value
	}
	kept["image_name"], kept["checksum"], kept["size"] = image.Name, cloud.StableHex(image.ID), "4096"
	kept["container_format"], kept["disk_format"] = "bare", "raw"
	kept["min_disk"], kept["min_ram"] = strconv.Itoa(image.MinDisk), strconv.Itoa(image.MinRAM)
	return kept
}

func (s *Cinder) listVolumes(c *cloud.Call) (*cloud.Answer, error) {
	views := []any{}
	for _, v := range cloud.Sorted(s.volumes, func(v *Volume) bool { return v.project == c.Auth.Project.ID }) {
		views = append(views, s.view(c, v))
	}
	return cloud.One("volumes", views)
}

func (s *Cinder) ownVolume(c *cloud.Call) (*Volume, error) {
	v := s.volumes[c.Arg("id")]
	if v == nil || v.project != c.Auth.Project.ID {
		return nil, cloud.NotFound("Volume %s could not be found.", c.Arg("id"))
	}
	return v, nil
}

func (s *Cinder) showVolume(c *cloud.Call, v *Volume) (*cloud.Answer, error) {
	return cloud.OK(map[string]any{"volume": s.view(c, v)})
}

func (s *Cinder) deleteVolume(_ *cloud.Call, v *Volume) (*cloud.Answer, error) {
	if v.Server != "" {
		return nil, cloud.BadRequest("Invalid volume: Volume status must be available or error or error_restoring or error_extending or error_managing and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer.")
	}
	delete(s.volumes, v.ID)
	return cloud.Accepted(nil)
}

func (s *Cinder) listTypes(*cloud.Call) (*cloud.Answer, error) {
	views := []any{}
	for _, name := range s.types {
		var description any
		if name == DefaultType {
			description = "Default Volume Type"
		}
		views = append(views, map[string]any{
			"id": typeID(name), "name": name, "is_public": true, "description": description,
			"os-volume-type-access:is_public": true, "extra_specs": map[string]any{},
		})
	}
	return cloud.OK(map[string]any{"volume_types": views})
}

func (s *Cinder) showLimits(c *cloud.Call) (*cloud.Answer, error) {
	quota := s.cloud.Quota(c.Auth.Project)
	count, gigabytes := s.used(c.Auth.Project.ID)
	return cloud.One("limits", map[string]any{"rate": []any{}, "absolute": map[string]any{
		"maxTotalVolumes": quota.Volumes, "maxTotalVolumeGigabytes": quota.Gigabytes,
		"totalVolumesUsed": count, "totalGigabytesUsed": gigabytes,
	}})
}

// showQuota is what `openstack quota show` asks for. What the simulator does
// not bound has the service's defaults.
func (s *Cinder) showQuota(c *cloud.Call) (*cloud.Answer, error) {
	if c.Arg("owner") != c.Auth.Project.ID {
		return nil, cloud.Policy("volume_extension:quotas:show")
	}
	quota := s.cloud.Quota(c.Auth.Project)
	view := map[string]any{
		"id": c.Arg("owner"), "volumes": quota.Volumes, "gigabytes": quota.Gigabytes, "per_volume_gigabytes": fault.Unlimited,
		"snapshots": 10, "backups": 10, "backup_gigabytes": 1000, "groups": 10,
	}
	for _, kind := range slices.Concat(s.types, []string{DefaultType}) {
		for _, name := range []string{"volumes_", "gigabytes_", "snapshots_"} {
			view[name+kind] = fault.Unlimited
		}
	}
	return cloud.One("quota_set", view)
}

func (s *Cinder) listZones(*cloud.Call) (*cloud.Answer, error) {
	return cloud.One("availabilityZoneInfo", []any{
		map[string]any{"zoneName": "nova", "zoneState": map[string]any{"available": true}},
	})
}
