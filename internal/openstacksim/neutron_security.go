package openstacksim

import (
	"fmt"
	"net/http"
	"time"
)

type securityGroup struct {
	SecurityGroup
	id      string
	created time.Time
}

// findSecurityGroup gives the groups of a project with a name or an ID.
func (s *Simulator) findSecurityGroup(project, nameOrID string) []securityGroup {
	var found []securityGroup
	for _, g := range s.securityGroups {
		if g.Project == project && (g.id == nameOrID || g.Name == nameOrID) {
			found = append(found, g)
		}
	}
	return found
}

func securityGroupView(g securityGroup) map[string]any {
	return map[string]any{
		"id": g.id, "name": g.Name, "description": g.Description, "stateful": true, "shared": false,
		"tenant_id": g.Project, "project_id": g.Project, "security_group_rules": ruleViews(g), "tags": []any{}, "revision_number": 1,
		"created_at": g.created.UTC().Format(withZone), "updated_at": g.created.UTC().Format(withZone),
	}
}

func (s *Simulator) listSecurityGroups(c *call) (*answer, error) {
	views := []map[string]any{}
	for _, g := range s.securityGroups {
		if g.Project == c.auth.project.ID {
			views = append(views, securityGroupView(g))
		}
	}
	return ok(map[string]any{"security_groups": chosen(views, c.query)})
}

func (s *Simulator) showSecurityGroup(c *call) (*answer, error) {
	for _, g := range s.securityGroups {
		if g.Project == c.auth.project.ID && g.id == c.arg("id") {
			return ok(map[string]any{"security_group": securityGroupView(g)})
		}
	}
	return nil, neutronRefusal(http.StatusNotFound, "SecurityGroupNotFound", "Security group %s does not exist", c.arg("id"))
}

// rulesOf are the rules of a group: what every group has, then its own.
func rulesOf(g securityGroup) []SecurityRule {
	rules := []SecurityRule{{Ethertype: "IPv4"}, {Ethertype: "IPv6"}}
	if g.Name == "default" {
		rules = append(rules, SecurityRule{Ingress: true, Ethertype: "IPv4", own: true}, SecurityRule{Ingress: true, Ethertype: "IPv6", own: true})
	}
	return append(rules, g.Rules...)
}

func ruleID(g securityGroup, number int) string {
	return stableUUID(fmt.Sprintf("%s rule %d", g.id, number))
}

func ruleViews(g securityGroup) []any {
	views := []any{}
	for i, r := range rulesOf(g) {
		view := map[string]any{
			"id": ruleID(g, i), "tenant_id": g.Project, "project_id": g.Project,
			"security_group_id": g.id, "ethertype": r.Ethertype, "direction": "egress", "protocol": nil,
			"port_range_min": nil, "port_range_max": nil, "remote_ip_prefix": nil, "normalized_cidr": nil,
			"remote_address_group_id": nil, "remote_group_id": nil, "standard_attr_id": i + 1,
			"description": nil, "tags": []any{}, "revision_number": 0,
			"created_at": g.created.UTC().Format(withZone), "updated_at": g.created.UTC().Format(withZone),
		}
		if r.Ingress {
			view["direction"] = "ingress"
		}
		if r.own {
			view["remote_group_id"] = g.id
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
