package openstacksim

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

type volume struct {
	id, project, user, kind   string
	status                    string
	image, server, attachment string
	size                      int
	keep                      bool // stays when its server goes
	created                   time.Time
}

// cinderDefault is the type that Cinder makes for itself.
const cinderDefault = "__DEFAULT__"

func (s *Simulator) cinderRoutes() []route {
	const root = "/volume/v3/{project}"
	return []route{
		{http.MethodGet, "/volume", OpVolumeInfo, true, s.cinderVersions},
		{http.MethodGet, "/volume/v3", OpVolumeInfo, true, s.cinderVersions},
		{http.MethodGet, root + "/volumes", OpVolumes, false, s.listVolumes},
		{http.MethodGet, root + "/volumes/detail", OpVolumes, false, s.listVolumes},
		{http.MethodGet, root + "/volumes/{id}", OpVolumes, false, s.showVolume},
		{http.MethodDelete, root + "/volumes/{id}", OpVolumes, false, s.deleteVolume},
		{http.MethodGet, root + "/types", OpVolumeInfo, false, s.listVolumeTypes},
		{http.MethodGet, root + "/limits", OpVolumeInfo, false, s.volumeLimits},
	}
}

func (s *Simulator) cinderVersions(c *call) (*answer, error) {
	return &answer{status: http.StatusMultipleChoices, body: map[string]any{"versions": []any{map[string]any{
		"id": "v3.0", "status": "CURRENT", "version": "3.70", "min_version": "3.0", "updated": "2022-08-31T00:00:00Z",
		"links": []any{
			map[string]any{"rel": "describedby", "type": "text/html", "href": "https://docs.openstack.org/"},
			link{Rel: "self", Href: c.root(serviceVolume) + "/v3/"},
		},
		"media-types": []any{map[string]any{"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}},
	}}}}, nil
}

func (s *Simulator) knowsVolumeType(nameOrID string) bool {
	return slices.ContainsFunc(s.volumeTypes, func(name string) bool { return name == nameOrID || volumeTypeID(name) == nameOrID })
}

// volumeTypeID is the UUID of a volume type.
func volumeTypeID(name string) string {
	return stableUUID("volume type " + name)
}

// bootVolume makes the volume that a server boots from, or says why not.
func (s *Simulator) bootVolume(srv *server, want wantedVolume) (*volume, string) {
	quota := s.quotaOf(s.project(srv.project))
	count, gigabytes := 0, 0
	for _, v := range s.volumes {
		if v.project == srv.project {
			count++
			gigabytes += v.size
		}
	}
	if quota.Volumes != Unlimited && count >= quota.Volumes {
		return nil, fmt.Sprintf("VolumeLimitExceeded: Maximum number of volumes allowed (%d) exceeded for quota 'volumes'.", quota.Volumes)
	}
	if quota.Gigabytes != Unlimited && gigabytes+want.size > quota.Gigabytes {
		return nil, fmt.Sprintf("VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested %dG, quota is %dG and %dG has been consumed.",
			want.size, quota.Gigabytes, gigabytes)
	}
	kind := want.kind
	if kind == "" && len(s.volumeTypes) > 0 {
		kind = s.volumeTypes[0]
	}
	for _, name := range s.volumeTypes {
		if volumeTypeID(name) == kind {
			kind = name
		}
	}
	v := &volume{
		id: s.newID(), project: srv.project, user: srv.user, kind: kind, status: "in-use", image: want.image,
		server: srv.id, attachment: s.newID(), size: want.size, keep: want.keep, created: s.present,
	}
	s.volumes[v.id] = v
	return v, ""
}

// detachVolume is what becomes of a volume when its server goes.
func (s *Simulator) detachVolume(id string) {
	v := s.volumes[id]
	if v == nil {
		return
	}
	if v.keep {
		v.status, v.server = "available", ""
		return
	}
	delete(s.volumes, id)
}

func (s *Simulator) volumeView(c *call, v *volume) map[string]any {
	attachments := []any{}
	if v.server != "" {
		attachments = append(attachments, map[string]any{
			"id": v.id, "attachment_id": v.attachment, "volume_id": v.id, "server_id": v.server, "host_name": nil,
			"device": "/dev/sda", "attached_at": v.created.UTC().Format(noZone),
		})
	}
	return map[string]any{
		"id": v.id, "status": v.status, "size": v.size, "availability_zone": "nova", "name": "", "description": "",
		"created_at": v.created.UTC().Format(noZone), "updated_at": v.created.UTC().Format(noZone), "volume_type": v.kind,
		"snapshot_id": nil, "source_volid": nil, "metadata": map[string]any{}, "user_id": v.user, "bootable": "true",
		"encrypted": false, "replication_status": nil, "consistencygroup_id": nil, "multiattach": false,
		"attachments": attachments, "os-vol-tenant-attr:tenant_id": v.project,
		"volume_image_metadata": s.volumeImage(v.image),
		"links": []link{
			{Rel: "self", Href: c.root(serviceVolume) + "/v3/" + v.project + "/volumes/" + v.id},
			{Rel: "bookmark", Href: c.root(serviceVolume) + "/" + v.project + "/volumes/" + v.id},
		},
	}
}

// volumeImage is what a volume remembers of the image it was made from.
func (s *Simulator) volumeImage(id string) map[string]any {
	kept := map[string]any{"image_id": id}
	for _, image := range s.images {
		if image.ID != id {
			continue
		}
		for key, value := range image.Properties {
			kept[key] = value
		}
		kept["image_name"], kept["checksum"], kept["size"] = image.Name, stableHex(image.ID), "4096"
		kept["container_format"], kept["disk_format"] = "bare", "raw"
		kept["min_disk"], kept["min_ram"] = strconv.Itoa(image.MinDisk), strconv.Itoa(image.MinRAM)
	}
	return kept
}

// cinderError wraps a refusal as Cinder does, which is nearly as Nova does.
func cinderError(e *apiError) *answer {
	result := novaError(e)
	result.header = nil
	return result
}

func (s *Simulator) listVolumes(c *call) (*answer, error) {
	var own []*volume
	for _, v := range s.volumes {
		if v.project == c.auth.project.ID {
			own = append(own, v)
		}
	}
	slices.SortFunc(own, func(a, b *volume) int { return strings.Compare(a.id, b.id) })
	views := []any{}
	for _, v := range own {
		views = append(views, s.volumeView(c, v))
	}
	return ok(map[string]any{"volumes": views})
}

func (s *Simulator) ownVolume(c *call) (*volume, error) {
	v := s.volumes[c.arg("id")]
	if v == nil || v.project != c.auth.project.ID {
		return nil, notFound("Volume %s could not be found.", c.arg("id"))
	}
	return v, nil
}

func (s *Simulator) showVolume(c *call) (*answer, error) {
	v, err := s.ownVolume(c)
	if err != nil {
		return nil, err
	}
	return ok(map[string]any{"volume": s.volumeView(c, v)})
}

func (s *Simulator) deleteVolume(c *call) (*answer, error) {
	v, err := s.ownVolume(c)
	if err != nil {
		return nil, err
	}
	if v.server != "" {
		return nil, badRequest("Invalid volume: Volume status must be available or error or error_restoring or error_extending or error_managing and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer.")
	}
	delete(s.volumes, v.id)
	return accepted(nil)
}

func (s *Simulator) listVolumeTypes(*call) (*answer, error) {
	views := []any{}
	for _, name := range s.volumeTypes {
		var description any
		if name == cinderDefault {
			description = "Default Volume Type"
		}
		views = append(views, map[string]any{
			"id": volumeTypeID(name), "name": name, "is_public": true, "description": description,
			"os-volume-type-access:is_public": true, "extra_specs": map[string]any{},
		})
	}
	return ok(map[string]any{"volume_types": views})
}

func (s *Simulator) volumeLimits(c *call) (*answer, error) {
	quota := s.quotaOf(c.auth.project)
	count, gigabytes := 0, 0
	for _, v := range s.volumes {
		if v.project == c.auth.project.ID {
			count++
			gigabytes += v.size
		}
	}
	return ok(map[string]any{"limits": map[string]any{"rate": []any{}, "absolute": map[string]any{
		"maxTotalVolumes": quota.Volumes, "maxTotalVolumeGigabytes": quota.Gigabytes,
		"totalVolumesUsed": count, "totalGigabytesUsed": gigabytes,
	}}})
}
