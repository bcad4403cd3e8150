package contract

func computeCases() []Case {
	return []Case{
		{"compute-versions", func(s *Session) {
			s.Micro("")
			s.Bare("versions", get, "compute", "root", nil)
			s.Bare("version 2.1", get, "compute", "/", nil)
			for _, version := range []string{"2.999", "3.1", "nonsense", "latest"} {
				s.Micro(version)
				s.Call("zones", get, "compute", "/os-availability-zone", nil)
			}
		}},
		{"compute-flavors", func(s *Session) {
			for _, version := range []string{"", "2.52", "2.93"} {
				s.Micro(version)
				s.Call("brief", get, "compute", "/flavors", nil)
				s.Call("in full", get, "compute", "/flavors/detail", nil)
				s.Call("one", get, "compute", "/flavors/"+s.Flavor("m1.small"), nil)
				s.Call("unknown", get, "compute", "/flavors/nope", nil)
				s.Call("extra specs", get, "compute", "/flavors/"+s.Flavor("m1.small")+"/os-extra_specs", nil)
				s.Call("extra specs of an unknown one", get, "compute", "/flavors/nope/os-extra_specs", nil)
			}
		}},
		{"compute-keypairs", keyPairs},
		{"compute-server-groups", serverGroups},
		{"compute-zones", func(s *Session) {
			s.Call("zones", get, "compute", "/os-availability-zone", nil)
			s.Call("zones with their hosts", get, "compute", "/os-availability-zone/detail", nil)
		}},
		{"compute-limits", func(s *Session) {
			s.Tiny()
			for _, version := range []string{"2.52", "2.93"} {
				s.Micro(version)
				s.Call("limits", get, "compute", "/limits", nil)
			}
		}},
		{"compute-unknown", func(s *Session) {
			s.Call("unknown path", get, "compute", "/nope", nil)
			s.Call("unknown server", get, "compute", "/servers/"+nowhere, nil)
			s.Call("no UUID", get, "compute", "/servers/not-a-uuid", nil)
			s.Call("delete of an unknown server", del, "compute", "/servers/"+nowhere, nil)
			s.Call("action on an unknown server", post, "compute", "/servers/"+nowhere+"/action", object{"suspend": nil})
		}},
	}
}

func keyPairs(s *Session) {
	const public = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBv1aw7rvUtsXykMkM0wYY1ZKaCBrVsfkUUb1f5bqJ4P contract"
	remove := func() { s.Quiet(del, "compute", "/os-keypairs/contract", nil) }
	remove()
	s.Undo(remove)
	for _, version := range []string{"2.52", "2.93"} {
		s.Micro(version)
		s.Call("one", get, "compute", "/os-keypairs/fleeting", nil)
		s.Call("unknown", get, "compute", "/os-keypairs/nope", nil)
	}
	s.Call("list", get, "compute", "/os-keypairs", nil)
	s.Call("without a public key", post, "compute", "/os-keypairs", object{"keypair": object{"name": "contract", "type": "ssh"}})
	s.Call("bad public key", post, "compute", "/os-keypairs", object{"keypair": object{"name": "contract", "type": "ssh", "public_key": "nonsense"}})
	s.Call("create", post, "compute", "/os-keypairs", object{"keypair": object{"name": "contract", "type": "ssh", "public_key": public}})
	s.Call("create again", post, "compute", "/os-keypairs", object{"keypair": object{"name": "contract", "type": "ssh", "public_key": public}})
	s.Call("delete", del, "compute", "/os-keypairs/contract", nil)
	s.Call("delete again", del, "compute", "/os-keypairs/contract", nil)
}

func serverGroups(s *Session) {
	for _, version := range []string{"2.52", "2.93"} {
		s.Micro(version)
		id := s.ID("compute", "/os-server-groups", "server_groups", "runners")
		s.Call("list", get, "compute", "/os-server-groups", nil)
		s.Call("one", get, "compute", "/os-server-groups/"+id, nil)
		s.Call("unknown", get, "compute", "/os-server-groups/"+nowhere, nil)
	}
	made := s.Call("create", post, "compute", "/os-server-groups", object{"server_group": object{"name": "contract", "policy": "anti-affinity"}})
	path := "/os-server-groups/" + made.Text("server_group", "id")
	s.Call("delete", del, "compute", path, nil)
	s.Call("delete again", del, "compute", path, nil)
}
