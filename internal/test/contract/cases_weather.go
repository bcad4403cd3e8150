package contract

// weatherCases are of clouds that are not what a client hopes for.
func weatherCases() []Case {
	return []Case{
		{"legacy-endpoint", func(s *Session) {
			spec := s.Spec("contract-legacy", object{"tags": []any{"contract-legacy"}})
			path := s.Adopt(s.Call("create with a tag", post, "legacy", "/servers", spec))
			s.State(path, "ACTIVE")
			s.Call("show", get, "legacy", path, nil)
			s.Call("list by another tag", get, "legacy", "/servers/detail?tags=contract-nope", nil)
			s.Call("tags, at the other endpoint", get, "compute", path+"/tags", nil)
		}},
		{"networks-of-one-name", func(s *Session) {
			var networks []any
			for _, cidr := range []string{"10.98.0.0/24", "10.99.0.0/24"} {
				made := s.Call("network", post, "network", "/v2.0/networks", object{"network": object{"name": "contract-twin"}})
				id := made.Text("network", "id")
				s.Undo(func() { s.Quiet(del, "network", "/v2.0/networks/"+id, nil) })
				s.Call("subnet", post, "network", "/v2.0/subnets", object{"subnet": object{"network_id": id, "name": "contract", "cidr": cidr, "ip_version": 4}})
				networks = append(networks, object{"uuid": id})
			}
			s.Call("list by the name", get, "network", "/v2.0/networks?name=contract-twin&fields=id&fields=name", nil)
			path := s.Server("create", "contract-twins", object{"networks": networks})
			s.State(path, "ACTIVE")
			s.Until("both addresses", "compute", path, func(r Reply) bool { return len(objects(r.At("server", "addresses", "contract-twin"))) == 2 })
			s.Call("show", get, "compute", path, nil)
			s.Call("delete a network in use", del, "network", "/v2.0/networks/"+text(networks[0].(object)["uuid"]), nil) //nolint:forcetypeassert,errcheck // made above
			s.Gone(path)
		}},
	}
}

// SoftDeleteCases are of a cloud whose Nova keeps deleted servers for an hour
// (reclaim_instance_interval).
func SoftDeleteCases() []Case {
	return []Case{
		{"soft-delete", func(s *Session) {
			path := s.Server("create", "contract-soft", object{"networks": "none", "tags": []any{"contract-soft"}})
			s.State(path, "ACTIVE")
			s.Call("delete", del, "compute", path, nil)
			s.State(path, "SOFT_DELETED")
			s.Call("show", get, "compute", path, nil)
			s.Call("list by tag", get, "compute", "/servers/detail?tags=contract-soft", nil)
			s.Call("limits", get, "compute", "/limits", nil)
			s.Call("delete again", del, "compute", path, nil)
			s.State(path, "SOFT_DELETED")
			s.Call("show after that", get, "compute", path, nil)
			s.Call("forceDelete", post, "compute", path+"/action", object{"forceDelete": nil})
			s.Until("the end", "compute", path, func(r Reply) bool { return r.Status == 404 })
		}},
		{"soft-delete-of-a-failed-build", func(s *Session) {
			path := s.Server("create", "contract-toobig", object{"networks": "none", "flavorRef": s.Flavor("m1.toobig")})
			s.State(path, "ERROR")
			s.Call("delete", del, "compute", path, nil)
			s.Until("the end", "compute", path, func(r Reply) bool { return r.Status == 404 })
		}},
		{"soft-delete-and-restore", func(s *Session) {
			path := s.Server("create", "contract-soft", object{"networks": "none"})
			s.State(path, "ACTIVE")
			s.Call("delete", del, "compute", path, nil)
			s.State(path, "SOFT_DELETED")
			s.Call("restore", post, "compute", path+"/action", object{"restore": nil})
			s.State(path, "ACTIVE")
			s.Call("show", get, "compute", path, nil)
			s.Call("forceDelete of one that runs", post, "compute", path+"/action", object{"forceDelete": nil})
			s.Until("the end", "compute", path, func(r Reply) bool { return r.Status == 404 })
		}},
	}
}
