package contract

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Case is one part of the contract.
type Case struct {
	// Name is also that of the transcript's file.
	Name string
	// Run makes the calls.
	Run func(*Session)
}

// Session is a run of a case on a cloud.
type Session struct {
	ctx        context.Context //nolint:containedctx // of the test whose one run this is
	fail       func(format string, args ...any)
	cloud      *Cloud
	scrub      *scrubber
	micro      string
	project    Access
	transcript []Exchange
	undo       []func()
}

// Record runs a case and gives its transcript. fail must not return; it gets
// what makes going on pointless.
func Record(ctx context.Context, cloud *Cloud, c Case, fail func(format string, args ...any)) []Exchange {
	s := &Session{ctx: ctx, fail: fail, cloud: cloud, scrub: newScrubber(cloud.endpoints), micro: "2.93", project: cloud.main}
	defer func() {
		s.ctx = context.WithoutCancel(ctx)
		for _, undo := range slices.Backward(s.undo) {
			undo()
		}
	}()
	c.Run(s)
	return s.transcript
}

// Micro asks for another microversion of Nova from now on; empty asks for none.
func (s *Session) Micro(version string) { s.micro = version }

// Tiny goes on in the project with little quota.
func (s *Session) Tiny() { s.project = s.cloud.tiny }

// Undo does something when the case is over.
func (s *Session) Undo(do func()) { s.undo = append(s.undo, do) }

// Call makes a call and writes its answer down.
func (s *Session) Call(label, method, service, path string, body any) Reply {
	return s.as(label, s.token(), method, service, path, body)
}

// Bare makes a call without a token and writes its answer down.
func (s *Session) Bare(label, method, service, path string, body any) Reply {
	return s.as(label, "", method, service, path, body)
}

func (s *Session) as(label, token, method, service, path string, body any) Reply {
	reply, err := s.cloud.do(s.ctx, request{method, service, path, body, s.micro, token})
	if err != nil {
		s.fail("%s: %v", label, err)
	}
	if s.micro != "" && service == "compute" {
		label += ", at " + s.micro
	}
	s.transcript = append(s.transcript, s.scrub.exchange(label, reply))
	return reply
}

// Note writes a part of an answer down, where the rest is chance.
func (s *Session) Note(label string, value any) {
	s.transcript = append(s.transcript, Exchange{Call: label, Body: s.scrub.body("", value)})
}

// Quiet makes a call that does not matter to the transcript.
func (s *Session) Quiet(method, service, path string, body any) Reply {
	reply, err := s.cloud.do(s.ctx, request{method, service, path, body, s.micro, s.token()})
	if err != nil {
		s.fail("%v", err)
	}
	return reply
}

func (s *Session) token() string { return s.cloud.tokens[s.project.Auth.Project] }

// patience bounds every wait; on the real services a build takes seconds.
const patience = 3 * time.Minute

// Until waits until a call's answer is as wanted.
func (s *Session) Until(what, service, path string, wanted func(Reply) bool) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		reply := s.Quiet(http.MethodGet, service, path, nil)
		if wanted(reply) {
			return
		}
		select {
		case <-again.C:
		case <-deadline.C:
			s.fail("waiting for %s: still %d %s", what, reply.Status, reply.raw)
			return
		case <-s.ctx.Done():
			s.fail("waiting for %s: %v", what, s.ctx.Err())
			return
		}
	}
}

// ID finds the ID of a thing by its name.
func (s *Session) ID(service, path, plural, name string) string {
	for _, item := range s.Quiet(http.MethodGet, service, path, nil).List(plural) {
		if item["name"] == name {
			return text(item["id"])
		}
	}
	s.fail("no %s among the %s", name, plural)
	return ""
}

// Flavor gives the ID of a flavor.
func (s *Session) Flavor(name string) string {
	return s.ID("compute", "/flavors", "flavors", name)
}

// Image gives the ID of the newest image of a name.
func (s *Session) Image(name string) string {
	return s.ID("image", "/v2/images?sort=created_at:desc", "images", name)
}

// Network gives the ID of a network.
func (s *Session) Network(name string) string {
	return s.ID("network", "/v2.0/networks", "networks", name)
}

// Spec is the body that makes a small server on the network private, changed by extra.
func (s *Session) Spec(name string, extra map[string]any) map[string]any {
	server := map[string]any{
		"name": name, "flavorRef": s.Flavor("m1.small"), "imageRef": s.Image("Ubuntu 24.04"),
		"networks": []any{map[string]any{"uuid": s.Network("private")}},
	}
	for key, value := range extra {
		if value == nil {
			delete(server, key)
			continue
		}
		server[key] = value
	}
	return map[string]any{"server": server}
}

// Server makes a server, writes the answer down, and deletes the server when
// the case is over. It gives the server's path.
func (s *Session) Server(label, name string, extra map[string]any) string {
	reply := s.Call(label, http.MethodPost, "compute", "/servers", s.Spec(name, extra))
	return s.Adopt(reply)
}

// Adopt deletes the server of a create when the case is over, and gives its path.
func (s *Session) Adopt(reply Reply) string {
	id := reply.Text("server", "id")
	if id == "" {
		s.fail("no server: %d %s", reply.Status, reply.raw)
		return ""
	}
	path := "/servers/" + id
	s.Undo(func() { s.Gone(path) })
	return path
}

// Gone deletes a server, if it is there, and waits until it is not.
func (s *Session) Gone(path string) {
	if s.Quiet(http.MethodGet, "compute", path, nil).Status == http.StatusNotFound {
		return
	}
	s.Quiet(http.MethodPost, "compute", path+"/action", map[string]any{"unlock": nil})
	s.Until("the end of "+path, "compute", path, func(r Reply) bool {
		if r.Status == http.StatusNotFound {
			return true
		}
		switch {
		case r.Text("server", "status") == "SOFT_DELETED":
			s.Quiet(http.MethodPost, "compute", path+"/action", map[string]any{"forceDelete": nil})
		case r.Text("server", "OS-EXT-STS:task_state") != "deleting":
			s.Quiet(http.MethodDelete, "compute", path, nil)
		}
		return false
	})
}

// State waits for a status without a task.
func (s *Session) State(path, status string) {
	s.Until(fmt.Sprintf("%s of %s", status, path), "compute", path, func(r Reply) bool {
		return r.Text("server", "status") == status && r.At("server", "OS-EXT-STS:task_state") == nil
	})
}

// Failed waits for a server whose build has failed, and from which Nova has taken
// its addresses: it does that after it has told the failure.
func (s *Session) Failed(path string) {
	s.State(path, "ERROR")
	s.Until("no address of "+path, "compute", path, func(r Reply) bool {
		addresses, ok := r.At("server", "addresses").(map[string]any)
		return ok && len(addresses) == 0
	})
}

// Task waits for a task state.
func (s *Session) Task(path, task string) {
	s.Until(fmt.Sprintf("%s of %s", task, path), "compute", path, func(r Reply) bool {
		return r.Text("server", "OS-EXT-STS:task_state") == task
	})
}
