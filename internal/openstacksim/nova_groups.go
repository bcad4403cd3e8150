package openstacksim

import (
	"slices"
	"strings"
)

func (s *Simulator) groupView(c *call, g *ServerGroup) map[string]any {
	members := []string{}
	for _, id := range g.members {
		if member := s.servers[id]; member != nil && !member.gone() {
			members = append(members, id)
		}
	}
	view := map[string]any{
		"id": g.ID, "name": g.Name, "members": members, "project_id": g.Project, "user_id": g.user,
	}
	if c.micro.least(64) {
		view["policy"], view["rules"] = g.Policy, map[string]any{}
	} else {
		view["policies"], view["metadata"] = []string{g.Policy}, map[string]any{}
	}
	return view
}

func (s *Simulator) findGroup(project, id string) *ServerGroup {
	for _, g := range s.serverGroups {
		if g.Project == project && g.ID == id {
			return g
		}
	}
	return nil
}

func (s *Simulator) listServerGroups(c *call) (*answer, error) {
	views := []any{}
	for _, g := range s.serverGroups {
		if g.Project == c.auth.project.ID {
			views = append(views, s.groupView(c, g))
		}
	}
	return ok(map[string]any{"server_groups": views})
}

func (s *Simulator) showServerGroup(c *call) (*answer, error) {
	g := s.findGroup(c.auth.project.ID, c.arg("id"))
	if g == nil {
		return nil, notFound("Instance group %s could not be found.", c.arg("id"))
	}
	return ok(map[string]any{"server_group": s.groupView(c, g)})
}

func (s *Simulator) createServerGroup(c *call) (*answer, error) {
	var request struct {
		Group struct {
			Name     string   `json:"name"`
			Policy   string   `json:"policy"`
			Policies []string `json:"policies"`
		} `json:"server_group"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	policy := request.Group.Policy
	if policy == "" && len(request.Group.Policies) == 1 {
		policy = request.Group.Policies[0]
	}
	if !slices.Contains([]string{"affinity", "anti-affinity"}, strings.TrimPrefix(policy, "soft-")) {
		return nil, badRequest("Invalid input for field/attribute policy. Value: %s.", policy)
	}
	owned := 0
	for _, g := range s.serverGroups {
		if g.Project == c.auth.project.ID {
			owned++
		}
	}
	if quota := s.quotaOf(c.auth.project).ServerGroups; quota != Unlimited && owned >= quota {
		return nil, forbidden("Quota exceeded, too many server groups.")
	}
	g := &ServerGroup{
		ID: s.newID(), Name: request.Group.Name, Policy: policy, Project: c.auth.project.ID, user: c.auth.user.ID,
	}
	s.serverGroups = append(s.serverGroups, g)
	return ok(map[string]any{"server_group": s.groupView(c, g)})
}

func (s *Simulator) deleteServerGroup(c *call) (*answer, error) {
	g := s.findGroup(c.auth.project.ID, c.arg("id"))
	if g == nil {
		return nil, notFound("Instance group %s could not be found.", c.arg("id"))
	}
	s.serverGroups = slices.DeleteFunc(s.serverGroups, func(other *ServerGroup) bool { return other == g })
	return noContent()
}
