package contract

import "strings"

func serverCases() []Case {
	return []Case{
		{"server-life-2.93", func(s *Session) { serverLife(s, "2.93") }},
		{"server-life-2.52", func(s *Session) { serverLife(s, "2.52") }},
		{"server-life-2.1", func(s *Session) {
			s.Micro("")
			path := s.Server("create", "contract-old", nil)
			s.State(path, "ACTIVE")
			s.Call("show", get, "compute", path, nil)
			s.Call("delete", del, "compute", path, nil)
		}},
		{"server-deleting", serverDeleting},
		{"server-delete-fails", func(s *Session) {
			path := s.Server("create", "contract-stays", object{"metadata": object{"lab_delete_fail": "1"}})
			s.State(path, "ACTIVE")
			s.Call("delete", del, "compute", path, nil)
			s.State(path, "ERROR")
			s.Call("show", get, "compute", path, nil)
			s.Call("delete again", del, "compute", path, nil)
			s.Gone(path)
		}},
		{"server-no-valid-host", func(s *Session) {
			for _, version := range []string{"2.52", "2.93"} {
				s.Micro(version)
				path := s.Server("create", "contract-toobig", object{"flavorRef": s.Flavor("m1.toobig")})
				s.State(path, "ERROR")
				s.Call("show", get, "compute", path, nil)
				s.Call("delete", del, "compute", path, nil)
				s.Gone(path)
			}
		}},
		{"server-build-fails", func(s *Session) {
			path := s.Server("create", "contract-aborted", object{"metadata": object{"lab_spawn_fail": "the hypervisor said no"}})
			s.Failed(path)
			s.Call("show", get, "compute", path, nil)
		}},
		{"server-no-host-takes-it", func(s *Session) {
			path := s.Server("create", "contract-refused", object{"metadata": object{"lab_spawn_reschedule": "99"}})
			s.Failed(path)
			s.Call("show", get, "compute", path, nil)
		}},
		{"server-external-network", func(s *Session) {
			s.Call("the network, in brief", get, "network", "/v2.0/networks?name=public&fields=id&fields=name&fields=router:external&fields=shared", nil)
			path := s.Server("create", "contract-external", object{"networks": []any{object{"uuid": s.Network("public")}}})
			s.Failed(path)
			s.Call("show", get, "compute", path, nil)
		}},
		{"server-powers-off", func(s *Session) {
			path := s.Server("create", "contract-off", object{"metadata": object{"lab_poweroff_after": "1"}})
			s.State(path, "SHUTOFF")
			s.Call("show", get, "compute", path, nil)
		}},
		{"server-update", serverUpdate},
	}
}

func serverLife(s *Session, version string) {
	s.Micro(version)
	group := s.ID("compute", "/os-server-groups", "server_groups", "runners")
	spec := s.Spec("contract-life", object{
		"key_name": "fleeting", "security_groups": named("ssh"), "config_drive": true, "user_data": "I2Nsb3VkLWNvbmZpZwo=",
		"metadata": object{"group": "g1", "lab_spawn_seconds": "3"}, "tags": []any{"contract-life", "contract-a"},
		"availability_zone": "az-a",
	})
	spec["os:scheduler_hints"] = object{"group": group}
	path := s.Adopt(s.Call("create", post, "compute", "/servers", spec))
	s.Task(path, "spawning")
	s.Call("show while it builds", get, "compute", path, nil)
	s.Call("suspend while it builds", post, "compute", path+"/action", object{"suspend": nil})
	s.State(path, "ACTIVE")
	s.Call("show", get, "compute", path, nil)
	s.Call("list in full by tags", get, "compute", "/servers/detail?tags=contract-life,contract-a", nil)
	s.Call("list in brief by tags", get, "compute", "/servers?tags=contract-life", nil)
	s.Call("list by another tag", get, "compute", "/servers/detail?tags=contract-life,contract-b", nil)
	for _, part := range []string{"ips", "os-interface", "metadata", "tags", "os-security-groups"} {
		s.Call(part, get, "compute", path+"/"+part, nil)
	}
	s.Call("ports", get, "network", "/v2.0/ports?device_id="+strings.TrimPrefix(path, "/servers/"), nil)
	s.Call("group", get, "compute", "/os-server-groups/"+group, nil)
	s.Call("console", post, "compute", path+"/action", object{"os-getConsoleOutput": object{}})
	s.Call("delete", del, "compute", path, nil)
	s.Gone(path)
	s.Call("show after the end", get, "compute", path, nil)
	s.Call("delete after the end", del, "compute", path, nil)
	s.Call("ports after the end", get, "network", "/v2.0/ports?device_id="+strings.TrimPrefix(path, "/servers/"), nil)
}

func serverDeleting(s *Session) {
	path := s.Server("create", "contract-deleting", object{
		"metadata": object{"lab_delete_seconds": "6"}, "tags": []any{"contract-deleting"},
	})
	s.State(path, "ACTIVE")
	s.Call("delete", del, "compute", path, nil)
	s.Task(path, "deleting")
	s.Call("show while it is deleted", get, "compute", path, nil)
	s.Call("delete again", del, "compute", path, nil)
	s.Call("suspend", post, "compute", path+"/action", object{"suspend": nil})
	s.Gone(path)
	s.Call("list by tag after the end", get, "compute", "/servers/detail?tags=contract-deleting", nil)
	changes := "/servers/detail?changes-since=1990-01-01T00:00:00Z&limit=1&name=contract-deleting"
	// A deleted server may have its task for a moment longer.
	s.Until("the end of the task", "compute", changes, func(r Reply) bool {
		servers := r.List("servers")
		return len(servers) == 1 && servers[0]["OS-EXT-STS:task_state"] == nil
	})
	s.Call("changes", get, "compute", changes, nil)
	s.Call("changes by tag", get, "compute", "/servers/detail?changes-since=1990-01-01T00:00:00Z&tags=contract-deleting", nil)
}

func serverUpdate(s *Session) {
	path := s.Server("create", "contract-update", object{"tags": []any{"contract-b", "contract-a"}})
	s.State(path, "ACTIVE")
	s.Call("rename", put, "compute", path, object{"server": object{"name": "contract-renamed"}})
	s.Call("add a tag", put, "compute", path+"/tags/contract-c", nil)
	s.Call("add it again", put, "compute", path+"/tags/contract-c", nil)
	s.Call("has the tag", get, "compute", path+"/tags/contract-c", nil)
	s.Call("has not the tag", get, "compute", path+"/tags/contract-d", nil)
	s.Call("tags", get, "compute", path+"/tags", nil)
	s.Call("remove a tag", del, "compute", path+"/tags/contract-c", nil)
	s.Call("remove it again", del, "compute", path+"/tags/contract-c", nil)
	s.Call("replace the tags", put, "compute", path+"/tags", object{"tags": []any{"contract-e"}})
	s.Call("remove all tags", del, "compute", path+"/tags", nil)
	s.Call("merge metadata", post, "compute", path+"/metadata", object{"metadata": object{"a": "1", "b": "2"}})
	s.Call("replace metadata", put, "compute", path+"/metadata", object{"metadata": object{"b": "3"}})
	s.Call("remove metadata", del, "compute", path+"/metadata/b", nil)
	s.Call("remove it again", del, "compute", path+"/metadata/b", nil)
}
