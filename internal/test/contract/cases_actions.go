package contract

import "slices"

func actionCases() []Case {
	return slices.Concat(pairedActionCases(), singleActionCases())
}

// pairedActionCases are about actions with one that takes them back.
func pairedActionCases() []Case {
	return []Case{
		{"action-suspend", func(s *Session) {
			path := ready(s, "contract-suspend", nil)
			act(s, path, "resume although it runs", "resume")
			act(s, path, "suspend", "suspend")
			s.State(path, "SUSPENDED")
			s.Call("show", get, "compute", path, nil)
			act(s, path, "suspend again", "suspend")
			act(s, path, "resume", "resume")
			s.State(path, "ACTIVE")
		}},
		{"action-suspend-fails", func(s *Session) {
			path := ready(s, "contract-suspend-fails", object{"lab_suspend_fail": "1"})
			act(s, path, "suspend", "suspend")
			s.State(path, "ERROR")
			s.Call("show", get, "compute", path, nil)
		}},
		{"action-stop", func(s *Session) {
			path := ready(s, "contract-stop", nil)
			act(s, path, "start although it runs", "os-start")
			act(s, path, "stop", "os-stop")
			s.State(path, "SHUTOFF")
			s.Call("show", get, "compute", path, nil)
			act(s, path, "start", "os-start")
			s.State(path, "ACTIVE")
		}},
		{"action-pause", func(s *Session) {
			path := ready(s, "contract-pause", nil)
			act(s, path, "unpause although it runs", "unpause")
			act(s, path, "pause", "pause")
			s.State(path, "PAUSED")
			s.Call("show", get, "compute", path, nil)
			act(s, path, "unpause", "unpause")
			s.State(path, "ACTIVE")
		}},
		{"action-shelve", func(s *Session) {
			path := ready(s, "contract-shelve", nil)
			act(s, path, "unshelve although it runs", "unshelve")
			act(s, path, "shelve", "shelve")
			s.State(path, "SHELVED_OFFLOADED")
			s.Call("show", get, "compute", path, nil)
			act(s, path, "unshelve", "unshelve")
			s.State(path, "ACTIVE")
		}},
	}
}

// singleActionCases are about actions that stand alone.
func singleActionCases() []Case {
	return []Case{
		{"action-reboot", func(s *Session) {
			path := ready(s, "contract-reboot", nil)
			s.Call("reboot", post, "compute", path+"/action", object{"reboot": object{"type": "HARD"}})
			s.State(path, "ACTIVE")
			s.Call("actions so far", get, "compute", path+"/os-instance-actions", nil)
		}},
		{"action-lock", func(s *Session) {
			path := ready(s, "contract-lock", nil)
			act(s, path, "lock", "lock")
			s.Call("lock with a reason", post, "compute", path+"/action", object{"lock": object{"locked_reason": "held"}})
			s.Call("show", get, "compute", path, nil)
			s.Call("delete", del, "compute", path, nil)
			act(s, path, "force-delete", "forceDelete")
			act(s, path, "stop", "os-stop")
			s.Call("metadata", post, "compute", path+"/metadata", object{"metadata": object{"a": "1"}})
			act(s, path, "unlock", "unlock")
			act(s, path, "force-delete when unlocked", "forceDelete")
			s.Gone(path)
		}},
		{"action-unknown", func(s *Session) {
			path := ready(s, "contract-unknown", nil)
			act(s, path, "unknown", "nonsense")
			s.Call("two at once", post, "compute", path+"/action", object{"lock": nil, "unlock": nil})
			s.Call("administrator's", post, "compute", path+"/action", object{"os-resetState": object{"state": "active"}})
		}},
	}
}

// ready makes a server that runs, without writing its creation down.
func ready(s *Session, name string, metadata object) string {
	extra := object{}
	if metadata != nil {
		extra["metadata"] = metadata
	}
	path := s.Adopt(s.Quiet(post, "compute", "/servers", s.Spec(name, extra)))
	s.State(path, "ACTIVE")
	return path
}

func act(s *Session, path, label, action string) {
	s.Call(label, post, "compute", path+"/action", object{action: nil})
}
