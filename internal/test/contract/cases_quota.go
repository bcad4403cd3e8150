package contract

func quotaCases() []Case {
	return []Case{
		{"quota-servers", func(s *Session) {
			s.Tiny()
			bare := object{"networks": "none"}
			s.Call("too much RAM", post, "compute", "/servers", s.Spec("contract-large", object{"networks": "none", "flavorRef": s.Flavor("m1.large")}))
			paths := []string{s.Server("first", "contract-1", bare), s.Server("second", "contract-2", bare)}
			// Nova counts no server that is not scheduled: a third one at once
			// may be accepted, and end in ERROR with a fault of code 413.
			for _, path := range paths {
				s.State(path, "ACTIVE")
			}
			s.Call("third", post, "compute", "/servers", s.Spec("contract-3", bare))
			s.Call("third, and large", post, "compute", "/servers", s.Spec("contract-3", object{"networks": "none", "flavorRef": s.Flavor("m1.large")}))
			s.Call("limits", get, "compute", "/limits", nil)
			s.Call("volumes at the address of another project", get, "volume", "/limits", nil)
			s.Gone(paths[0])
			// Nova counts a deleted server a moment longer.
			s.Until("room for a server", "compute", "/limits", func(r Reply) bool {
				return r.At("limits", "absolute", "totalInstancesUsed") == 1.0
			})
			fewer := s.Call("as many as fit", post, "compute", "/servers", s.Spec("contract-4", object{"networks": "none", "min_count": 1, "max_count": 5}))
			s.State(s.Adopt(fewer), "ACTIVE")
			s.Call("more at least than fit", post, "compute", "/servers", s.Spec("contract-5", object{"networks": "none", "min_count": 3, "max_count": 5}))
		}},
		{"quota-shows", func(s *Session) {
			for _, project := range []Access{s.cloud.main, s.cloud.tiny} {
				id := s.ID("identity", "/auth/projects", "projects", project.Auth.Project)
				for _, version := range []string{"", "2.52", "2.93"} {
					s.Micro(version)
					s.Call("servers of "+project.Auth.Project, get, "compute", "/os-quota-sets/"+id, nil)
				}
				s.Call("volumes of "+project.Auth.Project, get, "volume", "/os-quota-sets/"+id+"?usage=False", nil)
				s.Call("networks of "+project.Auth.Project, get, "network", "/v2.0/quotas/"+id, nil)
			}
		}},
		{"quota-floating-ips", func(s *Session) {
			s.Tiny()
			public := object{"floatingip": object{"floating_network_id": s.Network("public"), "description": "contract"}}
			first := s.Call("first", post, "network", "/v2.0/floatingips", public)
			s.Undo(func() { s.Quiet(del, "network", "/v2.0/floatingips/"+first.Text("floatingip", "id"), nil) })
			s.Call("second", post, "network", "/v2.0/floatingips", public)
		}},
	}
}
