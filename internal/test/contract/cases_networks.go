package contract

func networkCases() []Case {
	return []Case{
		{"network-lists", func(s *Session) {
			for _, path := range []string{
				"networks", "networks?name=private", "networks?name=nope", "networks?router:external=True", "networks?shared=true",
				"networks?name=private&name=second", "subnets", "subnets?ip_version=6", "security-groups?name=ssh", "security-groups?name=nope",
				"security-groups", "networks?fields=id&fields=name",
			} {
				s.Call(path, get, "network", "/v2.0/"+path, nil)
			}
		}},
		{"network-shows", func(s *Session) {
			s.Call("network", get, "network", "/v2.0/networks/"+s.Network("private"), nil)
			group := s.ID("network", "/v2.0/security-groups", "security_groups", "ssh")
			s.Call("security group", get, "network", "/v2.0/security-groups/"+group, nil)
			for _, kind := range []string{"networks", "security-groups", "ports", "floatingips", "subnets"} {
				s.Call("unknown of "+kind, get, "network", "/v2.0/"+kind+"/"+nowhere, nil)
			}
			s.Call("unknown path", get, "network", "/v2.0/nope", nil)
		}},
		{"network-floating-ips", floatingIPs},
		{"network-ports", ports},
	}
}

func floatingIPs(s *Session) {
	path := ready(s, "contract-floating", nil)
	port := s.Quiet(get, "compute", path+"/os-interface", nil).List("interfaceAttachments")[0]["port_id"]
	create := func(label string, fields object) string {
		reply := s.Call(label, post, "network", "/v2.0/floatingips", object{"floatingip": fields})
		id := reply.Text("floatingip", "id")
		if id != "" {
			s.Undo(func() { s.Quiet(del, "network", "/v2.0/floatingips/"+id, nil) })
		}
		return "/v2.0/floatingips/" + id
	}
	public := s.Network("public")
	create("unknown network", object{"floating_network_id": nowhere})
	create("a network that is not external", object{"floating_network_id": s.Network("private")})
	create("unknown port", object{"floating_network_id": public, "port_id": nowhere})
	floating := create("create", object{"floating_network_id": public, "port_id": port, "description": "contract"})
	create("a second one on the port", object{"floating_network_id": public, "port_id": port})
	s.Call("show", get, "network", floating, nil)
	s.Call("list by port", get, "network", "/v2.0/floatingips?port_id="+text(port), nil)
	s.Call("list by description", get, "network", "/v2.0/floatingips?description=contract", nil)
	s.Until("the address in Nova", "compute", path, func(r Reply) bool { return len(objects(r.At("server", "addresses", "private"))) == 3 })
	s.Call("the server", get, "compute", path, nil)
	s.Call("disassociate", put, "network", floating, object{"floatingip": object{"port_id": nil}})
	s.Call("associate", put, "network", floating, object{"floatingip": object{"port_id": port}})
	s.Gone(path)
	s.Call("left over", get, "network", floating, nil)
	s.Call("delete", del, "network", floating, nil)
	s.Call("delete again", del, "network", floating, nil)
}

func ports(s *Session) {
	made := s.Call("create", post, "network", "/v2.0/ports", object{"port": object{"network_id": s.Network("private"), "name": "contract", "description": "d"}})
	id := made.Text("port", "id")
	s.Undo(func() { s.Quiet(del, "network", "/v2.0/ports/"+id, nil) })
	s.Call("list by name", get, "network", "/v2.0/ports?name=contract", nil)
	spec := s.Spec("contract-port", object{"networks": []any{object{"port": id}}})
	path := s.Adopt(s.Call("a server on it", post, "compute", "/servers", spec))
	s.State(path, "ACTIVE")
	s.Call("another server on it", post, "compute", "/servers", spec)
	s.Call("the server", get, "compute", path, nil)
	s.Gone(path)
	s.Call("it stays", get, "network", "/v2.0/ports/"+id, nil)
	s.Call("delete", del, "network", "/v2.0/ports/"+id, nil)
	s.Call("delete again", del, "network", "/v2.0/ports/"+id, nil)
}
