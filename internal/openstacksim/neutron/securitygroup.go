package neutron

import (
	"fmt"
	"net/http"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
)

// SecurityGroup is one of a project, by the project's name. The rules that
// every new group has need no entry here.
type SecurityGroup struct {
	// ID is chosen by Neutron.
	ID, Name, Project, Description string
	Rules                          []SecurityRule

	created time.Time
}

// SecurityRule lets one port of a protocol through, from or to Remote (a range
// of addresses). Ethertype is IPv4 or IPv6.
type SecurityRule struct {
	Ingress                     bool
	Ethertype, Protocol, Remote string
	Port                        int
	// Own lets the members of the group itself through.
	Own bool
}

// SecurityGroups gives the groups of a project with a name or an ID. The lock is held.
func (s *Neutron) SecurityGroups(project, nameOrID string) []SecurityGroup {
	var found []SecurityGroup
	for _, g := range s.groups {
		if g.Project == project && (g.ID == nameOrID || g.Name == nameOrID) {
			found = append(found, g)
		}
	}
	return found
}

func groupView(g SecurityGroup) map[string]any {
	return map[string]any{
		"id": g.ID, "name": g.Name, "description": g.Description, "stateful": true, "shared": false,
		"tenant_id": g.Project, "project_id": g.Project, "security_group_rules": ruleViews(g), "tags": []any{}, "revision_number": 1,
		"created_at": g.created.UTC().Format(cloud.Seconds), "updated_at": g.created.UTC().Format(cloud.Seconds),
	}
}

func (s *Neutron) listSecurityGroups(c *cloud.Call) (*cloud.Answer, error) {
	views := []map[string]any{}
	for _, g := range s.groups {
		if g.Project == c.Auth.Project.ID {
			views = append(views, groupView(g))
		}
	}
	return cloud.OK(map[string]any{"security_groups": chosen(views, c.Query)})
}

func (s *Neutron) showSecurityGroup(c *cloud.Call) (*cloud.Answer, error) {
	for _, g := range s.groups {
		if g.Project == c.Auth.Project.ID && g.ID == c.Arg("id") {
			return cloud.OK(map[string]any{"security_group": groupView(g)})
		}
	}
	return nil, refusal(http.StatusNotFound, "SecurityGroupNotFound", "Security group %s does not exist", c.Arg("id"))
}

// AllRules are the rules of a group: what every group has, then its own.
func (g SecurityGroup) AllRules() []SecurityRule {
	rules := []SecurityRule{{Ethertype: "IPv4"}, {Ethertype: "IPv6"}}
	if g.Name == "default" {
		rules = append(rules, SecurityRule{Ingress: true, Ethertype: "IPv4", Own: true}, SecurityRule{Ingress: true, Ethertype: "IPv6", Own: true})
	}
	return append(rules, g.Rules...)
}

// RuleID is the UUID of one of AllRules, by its place.
func (g SecurityGroup) RuleID(number int) string {
	return cloud.StableUUID(fmt.Sprintf("%s rule %d", g.ID, number))
}

func ruleViews(g SecurityGroup) []any {
	views := []any{}
	for i, r := range g.AllRules() {
		view := map[string]any{
			"id": g.RuleID(i), "tenant_id": g.Project, "project_id": g.Project,
			"security_group_id": g.ID, "ethertype": r.Ethertype, "direction": "egress", "protocol": nil,
			"port_range_min": nil, "port_range_max": nil, "remote_ip_prefix": nil, "normalized_cidr": nil,
			"remote_address_group_id": nil, "remote_group_id": nil, "standard_attr_id": i + 1,
			"description": nil, "tags": []any{}, "revision_number": 0,
			"created_at": g.created.UTC().Format(cloud.Seconds), "updated_at": g.created.UTC().Format(cloud.Seconds),
		}
		if r.Ingress {
			view["direction"] = "ingress"
		}
		if r.Own {
			view["remote_group_id"] = g.ID
		}
		if r.Protocol != "" {
			view["protocol"], view["description"] = r.Protocol, ""
			view["port_range_min"], view["port_range_max"] = r.Port, r.Port
			view["remote_ip_prefix"], view["normalized_cidr"] = r.Remote, r.Remote
		}
		views = append(views, view)
	}
	return views
}
