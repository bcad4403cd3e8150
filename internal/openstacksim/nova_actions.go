package openstacksim

import (
	"encoding/json"
	"slices"
)

// transition is an action that takes a server from some states to another one.
type transition struct {
	verb string // in refusals
	from []vmState
	task string
	to   vmState
	lab  string // metadata that makes it fail in ERROR
}

func transitionOf(action string, argument json.RawMessage) (transition, bool) {
	switch action {
	case "os-stop":
		return transition{verb: "stop", from: []vmState{vmActive, vmError}, task: "powering-off", to: vmStopped}, true
	case "os-start":
		return transition{verb: "start", from: []vmState{vmStopped}, task: "powering-on", to: vmActive}, true
	case "suspend":
		return transition{verb: action, from: []vmState{vmActive}, task: "suspending", to: vmSuspended, lab: "lab_suspend_fail"}, true
	case "resume":
		return transition{verb: action, from: []vmState{vmSuspended}, task: "resuming", to: vmActive, lab: "lab_resume_fail"}, true
	case "pause":
		return transition{verb: action, from: []vmState{vmActive}, task: "pausing", to: vmPaused}, true
	case "unpause":
		return transition{verb: action, from: []vmState{vmPaused}, task: "unpausing", to: vmActive}, true
	case "shelve":
		return transition{verb: action, from: []vmState{vmActive, vmStopped, vmPaused, vmSuspended}, task: "shelving", to: vmShelved}, true
	case "unshelve":
		return transition{verb: action, from: []vmState{vmShelved}, task: "unshelving", to: vmActive}, true
	case "restore":
		return transition{verb: action, from: []vmState{vmSoftDeleted}, task: "restoring", to: vmActive}, true
	case "reboot":
		var kind struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(argument, &kind); err == nil && kind.Type == "HARD" {
			from := []vmState{vmActive, vmStopped, vmPaused, vmSuspended, vmError}
			return transition{verb: action, from: from, task: "rebooting_hard", to: vmActive}, true
		}
		return transition{verb: action, from: []vmState{vmActive}, task: "rebooting", to: vmActive}, true
	default:
		return transition{}, false
	}
}

func (s *Simulator) actOnServer(c *call) (*answer, error) {
	var request map[string]json.RawMessage
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if len(request) != 1 {
		return nil, badRequest("Malformed request body")
	}
	srv, err := s.reachServer(c)
	if err != nil {
		return nil, err
	}
	for action, argument := range request {
		if change, known := transitionOf(action, argument); known {
			return s.change(c, srv, change)
		}
		return s.otherAction(c, srv, action, argument)
	}
	return nil, unexpected()
}

func (s *Simulator) otherAction(c *call, srv *server, action string, argument json.RawMessage) (*answer, error) {
	switch action {
	case "forceDelete":
		if err := unlocked(srv); err != nil {
			return nil, err
		}
		s.act(srv, "delete", c.requestID)
		s.remove(srv, true)
		return accepted(nil)
	case "lock":
		return s.lock(c, srv, argument)
	case "unlock":
		if srv.adminLocked {
			return nil, forbidden("Policy doesn't allow os_compute_api:os-lock-server:unlock:unlock_override to be performed.")
		}
		srv.locked, srv.lockReason = false, nil
		s.act(srv, "unlock", c.requestID)
		return accepted(nil)
	case "os-resetState":
		return nil, forbidden("Policy doesn't allow os_compute_api:os-admin-actions:reset_state to be performed.")
	case "os-getConsoleOutput":
		if srv.host == "" {
			return nil, conflict("Instance %s is not ready", srv.id)
		}
		text := srv.metadata["lab_console"]
		if text == "" {
			text = "FAKE CONSOLE OUTPUT\nANOTHER\nLAST LINE"
		}
		return ok(map[string]any{"output": text})
	default:
		return nil, badRequest("There is no such action: %s", action)
	}
}

func (s *Simulator) lock(c *call, srv *server, argument json.RawMessage) (*answer, error) {
	var request struct {
		Reason *string `json:"locked_reason"`
	}
	if len(argument) > 0 && string(argument) != "null" {
		if err := json.Unmarshal(argument, &request); err != nil || !c.micro.least(73) {
			return nil, badRequest("Invalid input for field/attribute lock.")
		}
	}
	if !srv.locked {
		srv.locked, srv.lockReason = true, request.Reason
	}
	s.act(srv, "lock", c.requestID)
	return accepted(nil)
}

func unlocked(srv *server) error {
	if srv.locked {
		return conflict("Instance %s is locked", srv.id)
	}
	return nil
}

// change starts a transition, if the server is in a state for it.
func (s *Simulator) change(c *call, srv *server, t transition) (*answer, error) {
	if err := unlocked(srv); err != nil {
		return nil, err
	}
	if !slices.Contains(t.from, srv.vm) {
		return nil, conflict("Cannot '%s' instance %s while it is in vm_state %s", t.verb, srv.id, srv.vm)
	}
	if srv.task != "" {
		return nil, conflict("Cannot '%s' instance %s while it is in task_state %s", t.verb, srv.id, srv.task)
	}
	srv.task = t.task
	s.act(srv, t.verb, c.requestID)
	s.touch(srv)
	s.plan(srv, s.options.ActionTime, func() {
		if t.lab != "" && srv.metadata[t.lab] != "" {
			s.become(srv, vmError)
			srv.fault = &serverFault{code: 500, message: t.lab, at: s.present}
			return
		}
		s.become(srv, t.to)
		srv.fault = nil
		switch t.to {
		case vmShelved:
			srv.host, srv.zone = "", ""
		case vmActive:
			if host, found := s.place(srv); found && srv.host == "" {
				srv.host, srv.zone = host.Name, host.Zone
			}
		case vmBuilding, vmStopped, vmPaused, vmSuspended, vmError, vmDeleted, vmSoftDeleted:
		}
	})
	return accepted(nil)
}

func (s *Simulator) deleteServer(c *call) (*answer, error) {
	srv, err := s.reachServer(c)
	if err != nil {
		return nil, err
	}
	if err := unlocked(srv); err != nil {
		return nil, err
	}
	s.act(srv, "delete", c.requestID)
	s.remove(srv, false)
	return noContent()
}
