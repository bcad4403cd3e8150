package openstacksim

import (
	"maps"
	"net/http"
	"slices"
)

func (s *Simulator) updateServer(c *call) (*answer, error) {
	srv, err := s.reachServer(c)
	if err != nil {
		return nil, err
	}
	var request struct {
		Server struct {
			Name        *string `json:"name"`
			Description *string `json:"description"`
		} `json:"server"`
	}
	if err := c.decode(&request); err != nil {
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
	return ok(map[string]any{"server": s.view(c, srv, true)})
}

func (s *Simulator) showAddresses(c *call) (*answer, error) {
	srv, err := s.reachServer(c)
	if err != nil {
		return nil, err
	}
	addresses := s.addressesOf(srv)
	for _, list := range addresses {
		for i := range list {
			list[i].Type, list[i].MAC = "", ""
		}
	}
	return ok(map[string]any{"addresses": addresses})
}

func (s *Simulator) showInterfaces(c *call) (*answer, error) {
	srv, err := s.reachServer(c)
	if err != nil {
		return nil, err
	}
	views := []any{}
	for _, id := range srv.ports {
		if p := s.ports[id]; p != nil {
			view := map[string]any{
				"net_id": p.network.ID, "port_id": p.id, "mac_addr": p.mac, "port_state": p.status(), "fixed_ips": p.fixedIPs(),
			}
			if c.micro.least(70) {
				view["tag"] = nil
			}
			views = append(views, view)
		}
	}
	return ok(map[string]any{"interfaceAttachments": views})
}

func (s *Simulator) showServerSecurityGroups(c *call) (*answer, error) {
	srv, err := s.reachServer(c)
	if err != nil {
		return nil, err
	}
	views := []any{}
	for _, name := range srv.wantGroups {
		for _, g := range s.findSecurityGroup(srv.project, name) {
			views = append(views, map[string]any{
				"id": g.id, "name": g.Name, "description": g.Description, "tenant_id": g.Project, "rules": novaRules(g),
			})
		}
	}
	return ok(map[string]any{"security_groups": views})
}

// novaRules are the rules of a group that let something in, in Nova's words.
func novaRules(g securityGroup) []any {
	views := []any{}
	for i, r := range rulesOf(g) {
		if !r.Ingress {
			continue
		}
		view := map[string]any{
			"id": ruleID(g, i), "parent_group_id": g.id, "ip_protocol": orNil(r.Protocol), "from_port": nil, "to_port": nil,
			"group": map[string]any{}, "ip_range": map[string]any{},
		}
		if r.own {
			view["group"] = map[string]any{"name": g.Name, "tenant_id": g.Project}
		} else {
			view["from_port"], view["to_port"], view["ip_range"] = r.Port, r.Port, map[string]any{"cidr": r.Remote}
		}
		views = append(views, view)
	}
	return views
}

func (s *Simulator) showAttachments(c *call) (*answer, error) {
	srv, err := s.reachServer(c)
	if err != nil {
		return nil, err
	}
	views := []any{}
	for _, id := range srv.volumes {
		v := s.volumes[id]
		if v == nil {
			continue
		}
		view := map[string]any{"volumeId": id, "serverId": srv.id, "device": "/dev/sda"}
		if c.micro.least(70) {
			view["tag"] = nil
		}
		if c.micro.least(79) {
			view["delete_on_termination"] = !v.keep
		}
		if c.micro.least(89) {
			view["attachment_id"], view["bdm_uuid"] = v.attachment, v.attachment
		} else {
			view["id"] = id
		}
		views = append(views, view)
	}
	return ok(map[string]any{"volumeAttachments": views})
}

func (s *Simulator) listInstanceActions(c *call) (*answer, error) {
	srv, err := s.reachServer(c)
	if err != nil {
		return nil, err
	}
	views := []any{}
	for _, a := range slices.Backward(srv.actions) {
		view := map[string]any{
			"action": a.name, "instance_uuid": srv.id, "request_id": a.requestID, "user_id": srv.user,
			"project_id": srv.project, "start_time": s.stamp(a.at, noZone), "message": nil,
		}
		if c.micro.least(58) {
			view["updated_at"] = s.stamp(a.at, noZone)
		}
		views = append(views, view)
	}
	return ok(map[string]any{"instanceActions": views})
}

func (s *Simulator) listTags(c *call) (*answer, error) {
	srv, err := s.tagged(c)
	if err != nil {
		return nil, err
	}
	return ok(map[string]any{"tags": srv.sortedTags()})
}

// tagged is reachServer for the calls about tags, which came with 2.26.
func (s *Simulator) tagged(c *call) (*server, error) {
	if !c.micro.least(26) {
		return nil, notFound("The resource could not be found.")
	}
	return s.reachServer(c)
}

func (s *Simulator) replaceTags(c *call) (*answer, error) {
	srv, err := s.tagged(c)
	if err != nil {
		return nil, err
	}
	var request struct {
		Tags []string `json:"tags"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if err := checkTags(request.Tags); err != nil {
		return nil, err
	}
	srv.tags = dedupe(request.Tags)
	s.touch(srv)
	return ok(map[string]any{"tags": srv.sortedTags()})
}

func (s *Simulator) clearTags(c *call) (*answer, error) {
	srv, err := s.tagged(c)
	if err != nil {
		return nil, err
	}
	srv.tags = nil
	return noContent()
}

func (s *Simulator) hasTag(c *call) (*answer, error) {
	srv, err := s.tagged(c)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(srv.tags, c.arg("tag")) {
		return nil, notFound("Server %s has no tag '%s'", srv.id, c.arg("tag"))
	}
	return noContent()
}

func (s *Simulator) addTag(c *call) (*answer, error) {
	srv, err := s.tagged(c)
	if err != nil {
		return nil, err
	}
	tag := c.arg("tag")
	if slices.Contains(srv.tags, tag) {
		return noContent()
	}
	if len(srv.tags) >= maxTags {
		return nil, badRequest("The number of tags exceeded the per-server limit %d", maxTags)
	}
	if err := checkLength("tag", tag, 1, maxTag); err != nil {
		return nil, err
	}
	srv.tags = append(srv.tags, tag)
	result, err := created(nil)
	result.header = http.Header{"Location": {novaLinks(c, "servers", srv.id)[0].Href + "/tags/" + tag}}
	return result, err
}

func (s *Simulator) removeTag(c *call) (*answer, error) {
	srv, err := s.tagged(c)
	if err != nil {
		return nil, err
	}
	at := slices.Index(srv.tags, c.arg("tag"))
	if at < 0 {
		return nil, notFound("Instance %s has no tag '%s'", srv.id, c.arg("tag"))
	}
	srv.tags = slices.Delete(srv.tags, at, at+1)
	return noContent()
}

func (s *Simulator) listMetadata(c *call) (*answer, error) {
	srv, err := s.reachServer(c)
	if err != nil {
		return nil, err
	}
	return ok(map[string]any{"metadata": srv.metadata})
}

func (s *Simulator) replaceMetadata(c *call) (*answer, error) { return s.changeMetadata(c, true) }

func (s *Simulator) mergeMetadata(c *call) (*answer, error) { return s.changeMetadata(c, false) }

func (s *Simulator) changeMetadata(c *call, replace bool) (*answer, error) {
	srv, err := s.reachServer(c)
	if err != nil {
		return nil, err
	}
	var request struct {
		Metadata map[string]string `json:"metadata"`
	}
	if err := c.decode(&request); err != nil {
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
	if limit := s.quotaOf(c.auth.project).MetadataItems; limit != Unlimited && len(merged) > limit {
		return nil, forbidden("Maximum number of metadata items exceeds %d", limit)
	}
	srv.metadata = merged
	s.touch(srv)
	return ok(map[string]any{"metadata": srv.metadata})
}

func (s *Simulator) removeMetadata(c *call) (*answer, error) {
	srv, err := s.reachServer(c)
	if err != nil {
		return nil, err
	}
	if _, found := srv.metadata[c.arg("key")]; !found {
		return nil, notFound("Metadata item was not found")
	}
	if err := unlocked(srv); err != nil {
		return nil, err
	}
	delete(srv.metadata, c.arg("key"))
	return noContent()
}
