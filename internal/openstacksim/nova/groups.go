package nova

import (
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
)

// ServerGroup places servers. Policy is affinity, anti-affinity or one of these after soft-.
type ServerGroup struct {
	// ID is chosen when empty.
	ID, Name, Policy string
	// Project is the name of its owner.
	Project string
	members []string
	user    string
}

func (s *Nova) groupView(c *cloud.Call, g *ServerGroup) map[string]any {
	view := map[string]any{
		"id": g.ID, "name": g.Name, "members": s.liveMembers(g), "project_id": g.Project, "user_id": g.user,
	}
	if c.AtLeast(64) {
		view["policy"], view["rules"] = g.Policy, map[string]any{}
	} else {
		view["policies"], view["metadata"] = []string{g.Policy}, map[string]any{}
	}
	return view
}

func (s *Nova) findGroup(project, id string) *ServerGroup {
	g, _ := first(s.groups, func(g *ServerGroup) bool { return g.Project == project && g.ID == id })
	return g
}

func (s *Nova) listServerGroups(c *cloud.Call) (*cloud.Answer, error) {
	views := []any{}
	for _, g := range s.groups {
		if g.Project == c.Auth.Project.ID {
			views = append(views, s.groupView(c, g))
		}
	}
	return cloud.OK(map[string]any{"server_groups": views})
}

// serverGroup is the one that the path of a call names.
func (s *Nova) serverGroup(c *cloud.Call) (*ServerGroup, error) {
	if g := s.findGroup(c.Auth.Project.ID, c.Arg("id")); g != nil {
		return g, nil
	}
	return nil, cloud.NotFound("Instance group %s could not be found.", c.Arg("id"))
}

func (s *Nova) showServerGroup(c *cloud.Call, g *ServerGroup) (*cloud.Answer, error) {
	return cloud.One("server_group", s.groupView(c, g))
}

func (s *Nova) createServerGroup(c *cloud.Call) (*cloud.Answer, error) {
	var request struct {
		Group struct {
			Name     string   `json:"name"`
			Policy   string   `json:"policy"`
			Policies []string `json:"policies"`
		} `json:"server_group"`
	}
	if err := c.Decode(&request); err != nil {
		return nil, err
	}
	policy := request.Group.Policy
	if policy == "" && len(request.Group.Policies) == 1 {
		policy = request.Group.Policies[0]
	}
	if !slices.Contains([]string{"affinity", "anti-affinity"}, strings.TrimPrefix(policy, "soft-")) {
		return nil, cloud.BadRequest("Invalid input for field/attribute policy. Value: %s.", policy)
	}
	if quota := s.cloud.Quota(c.Auth.Project).ServerGroups; quota != fault.Unlimited && s.groupsOf(c.Auth.Project.ID) >= quota {
		return nil, cloud.Forbidden("Quota exceeded, too many server groups.")
	}
	g := &ServerGroup{
		ID: s.cloud.NewID(), Name: request.Group.Name, Policy: policy, Project: c.Auth.Project.ID, user: c.Auth.UserID,
	}
	s.groups = append(s.groups, g)
	return cloud.OK(map[string]any{"server_group": s.groupView(c, g)})
}

func (s *Nova) deleteServerGroup(_ *cloud.Call, g *ServerGroup) (*cloud.Answer, error) {
	s.groups = slices.DeleteFunc(s.groups, func(other *ServerGroup) bool { return other == g })
	return cloud.NoContent()
}

// groupsOf counts the groups of a project.
func (s *Nova) groupsOf(project string) (n int) {
	for _, g := range s.groups {
		if g.Project == project {
			n++
		}
	}
	return n
}

// liveMembers lists the servers of a group that are not deleted.
func (s *Nova) liveMembers(g *ServerGroup) []string {
	live := []string{}
	for _, id := range g.members {
		if member := s.servers[id]; member != nil && !member.gone() {
			live = append(live, id)
		}
	}
	return live
}
