package nova

import (
	"maps"
	"net/http"
	"slices"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/neutron"
)

func (s *Nova) updateServer(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	var request struct {
		Server struct {
			Name        *string `json:"name"`
			Description *string `json:"description"`
		} `json:"server"`
	}
	if err := c.Decode(&request); err != nil {
		return nil, err
	}
	if name := request.Server.Name; name != nil {
		if err := checkLength("name", *name, 1, maxName); err != nil {
			return nil, err
		}
		srv.name = *name
	}
	if request.Server.Description != nil {
		srv.description = request.Server.Description
	}
	s.touch(srv)
	return cloud.OK(map[string]any{"server": s.view(c, srv, true)})
}

func (s *Nova) showAddresses(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	addresses := s.addressesOf(srv)
	for _, list := range addresses {
		for i := range list {
			list[i].Type, list[i].MAC = "", ""
		}
	}
	return cloud.OK(map[string]any{"addresses": addresses})
}

func (s *Nova) showInterfaces(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	views := []any{}
	for _, id := range srv.ports {
		if p := s.neutron.Port(id); p != nil {
			view := map[string]any{
				"net_id": p.Network.ID, "port_id": p.ID, "mac_addr": p.MAC, "port_state": p.Status(), "fixed_ips": p.FixedIPs(),
			}
			if c.AtLeast(70) {
				view["tag"] = nil
			}
			views = append(views, view)
		}
	}
	return cloud.OK(map[string]any{"interfaceAttachments": views})
}

func (s *Nova) showServerSecurityGroups(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	views := []any{}
	for _, name := range srv.wantGroups {
		for _, g := range s.neutron.SecurityGroups(srv.project, name) {
			views = append(views, map[string]any{
				"id": g.ID, "name": g.Name, "description": g.Description, "tenant_id": g.Project, "rules": novaRules(g),
			})
		}
	}
	return cloud.OK(map[string]any{"security_groups": views})
}

// novaRules are the rules of a group that let something in, in Nova's words.
func novaRules(g neutron.SecurityGroup) []any {
	views := []any{}
	for i, r := range g.AllRules() {
		if !r.Ingress {
			continue
		}
		view := map[string]any{
			"id": g.RuleID(i), "parent_group_id": g.ID, "ip_protocol": cloud.OrNil(r.Protocol), "from_port": nil, "to_port": nil,
			"group": map[string]any{}, "ip_range": map[string]any{},
		}
		if r.Own {
			view["group"] = map[string]any{"name": g.Name, "tenant_id": g.Project}
		} else {
			view["from_port"], view["to_port"], view["ip_range"] = r.Port, r.Port, map[string]any{"cidr": r.Remote}
		}
		views = append(views, view)
	}
	return views
}

func (s *Nova) showAttachments(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	views := []any{}
	for _, id := range srv.volumes {
		v := s.cinder.Volume(id)
		if v == nil {
			continue
		}
		view := map[string]any{"volumeId": id, "serverId": srv.id, "device": "/dev/sda"}
		if c.AtLeast(70) {
			view["tag"] = nil
		}
		if c.AtLeast(79) {
			view["delete_on_termination"] = !v.Keep
		}
		if c.AtLeast(89) {
			view["attachment_id"], view["bdm_uuid"] = v.Attachment, v.Attachment
		} else {
			view["id"] = id
		}
		views = append(views, view)
	}
	return cloud.OK(map[string]any{"volumeAttachments": views})
}

func (s *Nova) listInstanceActions(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	views := []any{}
	for _, a := range slices.Backward(srv.actions) {
		view := map[string]any{
			"action": a.name, "instance_uuid": srv.id, "request_id": a.requestID, "user_id": srv.user,
			"project_id": srv.project, "start_time": s.cloud.Stamp(a.at, cloud.Micros), "message": nil,
		}
		if c.AtLeast(58) {
			view["updated_at"] = s.cloud.Stamp(a.at, cloud.Micros)
		}
		views = append(views, view)
	}
	return cloud.OK(map[string]any{"instanceActions": views})
}

func (s *Nova) listTags(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	return cloud.OK(map[string]any{"tags": srv.sortedTags()})
}

func (s *Nova) replaceTags(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	var request struct {
		Tags []string `json:"tags"`
	}
	if err := c.Decode(&request); err != nil {
		return nil, err
	}
	if err := checkTags(request.Tags); err != nil {
		return nil, err
	}
	srv.tags = dedupe(request.Tags)
	s.touch(srv)
	return cloud.OK(map[string]any{"tags": srv.sortedTags()})
}

func (s *Nova) clearTags(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	srv.tags = nil
	return cloud.NoContent()
}

func (s *Nova) hasTag(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	if !slices.Contains(srv.tags, c.Arg("tag")) {
		return nil, cloud.NotFound("Server %s has no tag '%s'", srv.id, c.Arg("tag"))
	}
	return cloud.NoContent()
}

func (s *Nova) addTag(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	tag := c.Arg("tag")
	if slices.Contains(srv.tags, tag) {
		return cloud.NoContent()
	}
	if len(srv.tags) >= maxTags {
		return nil, cloud.BadRequest("The number of tags exceeded the per-server limit %d", maxTags)
	}
	if err := checkLength("tag", tag, 1, maxTag); err != nil {
		return nil, err
	}
	srv.tags = append(srv.tags, tag)
	result, err := cloud.Created(nil)
	result.Header = http.Header{"Location": {links(c, "servers", srv.id)[0].Href + "/tags/" + tag}}
	return result, err
}

func (s *Nova) removeTag(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	at := slices.Index(srv.tags, c.Arg("tag"))
	if at < 0 {
		return nil, cloud.NotFound("Instance %s has no tag '%s'", srv.id, c.Arg("tag"))
	}
	srv.tags = slices.Delete(srv.tags, at, at+1)
	return cloud.NoContent()
}

func (s *Nova) listMetadata(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	return cloud.OK(map[string]any{"metadata": srv.metadata})
}

func (s *Nova) replaceMetadata(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	return s.changeMetadata(c, srv, true)
}

func (s *Nova) mergeMetadata(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	return s.changeMetadata(c, srv, false)
}

func (s *Nova) changeMetadata(c *cloud.Call, srv *server, replace bool) (*cloud.Answer, error) {
	var request struct {
		Metadata map[string]string `json:"metadata"`
	}
	if err := c.Decode(&request); err != nil {
		return nil, err
	}
	if err := checkMetadata(request.Metadata); err != nil {
		return nil, err
	}
	if err := unlocked(srv); err != nil {
		return nil, err
	}
	merged := map[string]string{}
	if !replace {
		maps.Copy(merged, srv.metadata)
	}
	maps.Copy(merged, request.Metadata)
	if limit := s.cloud.Quota(c.Auth.Project).MetadataItems; limit != fault.Unlimited && len(merged) > limit {
		return nil, cloud.Forbidden("Maximum number of metadata items exceeds %d", limit)
	}
	srv.metadata = merged
	s.touch(srv)
	return cloud.OK(map[string]any{"metadata": srv.metadata})
}

func (s *Nova) removeMetadata(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	if _, found := srv.metadata[c.Arg("key")]; !found {
		return nil, cloud.NotFound("Metadata item was not found")
	}
	if err := unlocked(srv); err != nil {
		return nil, err
	}
	delete(srv.metadata, c.Arg("key"))
	return cloud.NoContent()
}
