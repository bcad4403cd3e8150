package nova

import (
	"encoding/json"
	"slices"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
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
	running := []vmState{vmActive}
	kind := struct {
		Type string `json:"type"`
	}{}
	if action == "reboot" && json.Unmarshal(argument, &kind) == nil && kind.Type == "HARD" {
		from := []vmState{vmActive, vmStopped, vmPaused, vmSuspended, vmError}
		return transition{verb: action, from: from, task: "rebooting_hard", to: vmActive}, true
	}
	change, known := map[string]transition{
		"os-stop":  {"stop", []vmState{vmActive, vmError}, "powering-off", vmStopped, ""},
		"os-start": {"start", []vmState{vmStopped}, "powering-on", vmActive, ""},
		"suspend":  {action, running, "suspending", vmSuspended, "lab_suspend_fail"},
		"resume":   {action, []vmState{vmSuspended}, "resuming", vmActive, "lab_resume_fail"},
		"pause":    {action, running, "pausing", vmPaused, ""},
		"unpause":  {action, []vmState{vmPaused}, "unpausing", vmActive, ""},
		"shelve":   {action, []vmState{vmActive, vmStopped, vmPaused, vmSuspended}, "shelving", vmShelved, ""},
		"unshelve": {action, []vmState{vmShelved}, "unshelving", vmActive, ""},
		"restore":  {action, []vmState{vmSoftDeleted}, "restoring", vmActive, ""},
		"reboot":   {action, running, "rebooting", vmActive, ""},
	}[action]
	return change, known
}

func (s *Nova) actOnServer(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	var request map[string]json.RawMessage
	if err := c.Decode(&request); err != nil {
		return nil, err
	}
	if len(request) != 1 {
		return nil, cloud.BadRequest("Malformed request body")
	}
	for action, argument := range request {
		if change, known := transitionOf(action, argument); known {
			return s.change(c, srv, change)
		}
		return s.otherAction(c, srv, action, argument)
	}
	return nil, unexpected()
}

func (s *Nova) otherAction(c *cloud.Call, srv *server, action string, argument json.RawMessage) (*cloud.Answer, error) {
	switch action {
	case "forceDelete":
		if err := unlocked(srv); err != nil {
			return nil, err
		}
		s.act(srv, "delete", c.RequestID)
		s.remove(srv, true)
		return cloud.Accepted(nil)
	case "lock":
		return s.lock(c, srv, argument)
	case "unlock":
		if srv.adminLocked {
			return nil, cloud.Forbidden("Policy doesn't allow os_compute_api:os-lock-server:unlock:unlock_override to be performed.")
		}
		srv.locked, srv.lockReason = false, nil
		s.act(srv, "unlock", c.RequestID)
		return cloud.Accepted(nil)
	case "os-resetState":
		return nil, cloud.Forbidden("Policy doesn't allow os_compute_api:os-admin-actions:reset_state to be performed.")
	case "os-getConsoleOutput":
		if srv.host == "" {
			return nil, cloud.Conflict("Instance %s is not ready", srv.id)
		}
		text := srv.metadata["lab_console"]
		if text == "" {
			text = "FAKE CONSOLE OUTPUT\nANOTHER\nLAST LINE"
		}
		return cloud.OK(map[string]any{"output": text})
	default:
		return nil, cloud.BadRequest("There is no such action: %s", action)
	}
}

func (s *Nova) lock(c *cloud.Call, srv *server, argument json.RawMessage) (*cloud.Answer, error) {
	var request struct {
		Reason *string `json:"locked_reason"`
	}
	if len(argument) > 0 && string(argument) != "null" {
		if err := json.Unmarshal(argument, &request); err != nil || !c.AtLeast(73) {
			return nil, cloud.BadRequest("Invalid input for field/attribute lock.")
		}
	}
	if !srv.locked {
		srv.locked, srv.lockReason = true, request.Reason
	}
	s.act(srv, "lock", c.RequestID)
	return cloud.Accepted(nil)
}

func unlocked(srv *server) error {
	if srv.locked {
		return cloud.Conflict("Instance %s is locked", srv.id)
	}
	return nil
}

// change starts a transition, if the server is in a state for it.
func (s *Nova) change(c *cloud.Call, srv *server, t transition) (*cloud.Answer, error) {
	if err := unlocked(srv); err != nil {
		return nil, err
	}
	if !slices.Contains(t.from, srv.vm) {
		return nil, cloud.Conflict("Cannot '%s' instance %s while it is in vm_state %s", t.verb, srv.id, srv.vm)
	}
	if srv.task != "" {
		return nil, cloud.Conflict("Cannot '%s' instance %s while it is in task_state %s", t.verb, srv.id, srv.task)
	}
	srv.task = t.task
	s.act(srv, t.verb, c.RequestID)
	s.touch(srv)
	s.plan(srv, s.settings.ActionTime, func() {
		if t.lab != "" && srv.metadata[t.lab] != "" {
			s.become(srv, vmError)
			srv.fault = &serverFault{code: 500, message: t.lab, at: s.cloud.Now()}
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
	return cloud.Accepted(nil)
}

func (s *Nova) deleteServer(c *cloud.Call, srv *server) (*cloud.Answer, error) {
	if err := unlocked(srv); err != nil {
		return nil, err
	}
	s.act(srv, "delete", c.RequestID)
	s.remove(srv, false)
	return cloud.NoContent()
}
