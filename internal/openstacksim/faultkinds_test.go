package openstacksim_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// inject adds a fault that is written as text.
func inject(t *testing.T, sim *openstacksim.Simulator, text string) {
	t.Helper()
	rule, err := openstacksim.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	sim.Inject(rule)
}

// sight is how a client sees a server.
type sight struct {
	status, task, fault string
	listed              bool
	code                int
	addresses, metadata int
}

func (c *client) see(id string) sight {
	c.t.Helper()
	var s sight
	for _, item := range list(c.want(http.StatusOK, http.MethodGet, "/compute/v2.1/servers/detail?tags=g1", nil)["servers"]) {
		if item["id"] == id {
			s.listed = true
			s.status, s.metadata = text(item["status"]), len(object(item["metadata"]))
		}
	}
	status, _, body := c.send(http.MethodGet, "/compute/v2.1/servers/"+id, nil)
	s.code = status
	if srv := object(body["server"]); srv != nil {
		s.status, s.task = text(srv["status"]), text(srv["OS-EXT-STS:task_state"])
		s.fault = text(object(srv["fault"])["message"])
		s.addresses, s.metadata = len(object(srv["addresses"])), len(object(srv["metadata"]))
	}
	return s
}

// TestEachKindOfFaultOfServers: what every kind does to a server, seen by a
// client a while after it was created, and again after it deleted it.
func TestEachKindOfFaultOfServers(t *testing.T) {
	t.Parallel()
	alive, gone := sight{"ACTIVE", "", "", true, 200, 1, 1}, sight{code: 404}
	built := func(change func(*sight)) sight { s := alive; change(&s); return s }
	rows := map[string]struct{ alive, deleted sight }{
		"build-error,message=no disk": {built(func(s *sight) {
			s.status, s.fault, s.addresses = "ERROR", "Build of instance ID aborted: no disk", 0
		}), gone},
		"no-valid-host":         {built(func(s *sight) { s.status, s.fault, s.addresses = "ERROR", openstacksim.FaultNoValidHost, 0 }), gone},
		"stuck-building":        {built(func(s *sight) { s.status, s.task, s.addresses = "BUILD", "spawning", 0 }), gone},
		"slow-build,time=1h":    {built(func(s *sight) { s.status, s.task, s.addresses = "BUILD", "scheduling", 0 }), gone},
		"power-off,uptime=5s":   {built(func(s *sight) { s.status = "SHUTOFF" }), gone},
		"status,status=EXPIRED": {built(func(s *sight) { s.status = "EXPIRED" }), gone},
		"no-address":            {built(func(s *sight) { s.addresses = 0 }), gone},
		"unreadable":            {sight{code: 500}, gone},
		"unlisted,by=1m":        {built(func(s *sight) { s.listed = false }), gone},
		"not-found,by=1m":       {sight{"ACTIVE", "", "", true, 404, 0, 1}, sight{"ACTIVE", "", "", true, 404, 0, 1}},
		"admin-lock":            {alive, alive},
		"stuck-deleting":        {alive, built(func(s *sight) { s.task = "deleting" })},
		"delete-ignored":        {alive, alive},
		"delete-error":          {alive, built(func(s *sight) { s.status, s.fault, s.addresses = "ERROR", "lab_delete_fail", 0 })},
		"lingering,by=1m":       {alive, sight{"DELETED", "", "", true, 404, 0, 0}},
		"bare":                  {alive, gone},
		"ghost":                 {alive, sight{"ACTIVE", "", "", true, 404, 0, 1}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sim := newSimulator(t, openstacksim.Options{})
				c := newClient(t, sim)
				inject(t, sim, name+",match=name:bad*")
				id := c.create("bad-1", map[string]any{"tags": []string{"g1"}, "metadata": map[string]string{"a": "b"}})
				other := c.create("good", map[string]any{"tags": []string{"g1"}, "metadata": map[string]string{"a": "b"}})
				pass(10 * time.Second)
				row.alive.fault = strings.ReplaceAll(row.alive.fault, "ID", id)
				if got := c.see(id); got != row.alive {
					t.Errorf("alive: got %+v, want %+v", got, row.alive)
				}
				if got := c.see(other); got != alive {
					t.Errorf("another server: %+v", got)
				}
				c.send(http.MethodDelete, "/compute/v2.1/servers/"+id, nil)
				pass(500 * time.Millisecond)
				if got := c.see(id).metadata; name == "bare" && got != 0 {
					t.Errorf("metadata during the deletion: %d", got)
				}
				pass(10 * time.Second)
				if got := c.see(id); got != row.deleted {
					t.Errorf("deleted: got %+v, want %+v", got, row.deleted)
				}
			})
		})
	}
	for _, kind := range openstacksim.FaultKinds() {
		tried := false
		for name := range rows {
			tried = tried || name == kind.Name || strings.HasPrefix(name, kind.Name+",")
		}
		if kind.Of == openstacksim.ScopeServers && !tried {
			t.Errorf("%s is not tried", kind.Name)
		}
	}
}

// TestEachKindOfFaultOfCalls: what a client sees of a create, and whether it
// took effect.
func TestEachKindOfFaultOfCalls(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status, servers int
		says            string
		header          string
		took            time.Duration
	}{
		"error":                                {503, 0, `"serviceUnavailable"`, "", 0},
		"error,status=429,retry-after=7":       {429, 0, `"overLimit"`, "7", 0},
		"error,\"message=a, b\"":               {503, 0, "a, b", "", 0},
		"gateway,status=502":                   {502, 0, "<h1>502 Bad Gateway</h1>", "", 0},
		"reset":                                {0, 0, "", "", 0},
		"lost":                                 {0, 1, "", "", 0},
		"lost,answer=504":                      {504, 1, "<h1>504", "", 0},
		"lost,answer=truncated":                {202, 1, "", "", 0},
		"lost,answer=hang":                     {0, 1, "", "", time.Minute},
		"hang":                                 {0, 0, "", "", time.Minute},
		"delay,by=5s":                          {202, 1, "", "", 5 * time.Second},
		"rate-limit,calls=0.001":               {202, 1, "", "", 0},
		"error,match=compute:server.create":    {503, 0, "", "", 0},
		"error,match=compute:server.*":         {503, 0, "", "", 0},
		"error,match=project:fleeting":         {503, 0, "", "", 0},
		"error,match=project:tiny":             {202, 1, "", "", 0},
		"error,match=image:*":                  {202, 1, "", "", 0},
		"error:100%":                           {503, 0, "", "", 0},
		"error,after=1h":                       {202, 1, "", "", 0},
		"error,skip=1":                         {202, 1, "", "", 0},
		"error,every=2":                        {202, 1, "", "", 0},
		"quota,instances=0":                    {403, 0, "Quota exceeded for instances", "", 0},
		"quota,instances=0,match=project:a":    {202, 1, "", "", 0},
		"quota,ports=0,match=project:fleeting": {403, 0, "Maximum number of ports exceeded", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sim := newSimulator(t, openstacksim.Options{})
				c := newClient(t, sim)
				c.http.Timeout = time.Minute
				spec := c.spec("one", nil)
				inject(t, sim, name)
				begin := time.Now()
				status, header, body, err := c.try(http.MethodPost, "/compute/v2.1/servers", spec)
				if status != row.status || row.status == 0 != (err != nil) && !strings.Contains(name, "truncated") {
					t.Errorf("status %d, %v; want %d", status, err, row.status)
				}
				if took := time.Since(begin); took != row.took {
					t.Errorf("took %s, want %s", took, row.took)
				}
				if !strings.Contains(string(body), row.says) || header.Get("Retry-After") != row.header {
					t.Errorf("body %q, Retry-After %q", body, header.Get("Retry-After"))
				}
				if strings.Contains(string(body), "<html>") && header.Get("X-Openstack-Request-Id") != "" {
					t.Error("a proxy answers with a request ID of Nova's")
				}
				if got := len(sim.Snapshot().Servers); got != row.servers {
					t.Errorf("servers: %d, want %d", got, row.servers)
				}
			})
		})
	}
}

// TestRateLimitIsPerProject: calls beyond the rate of one project are refused,
// and those of another pass.
func TestRateLimitIsPerProject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulator(t, openstacksim.Options{})
		c, other := newClient(t, sim), newClient(t, sim)
		other.login(openstacksim.TinyProject)
		inject(t, sim, "rate-limit,calls=2,burst=3,retry-after=1,match=compute:*")
		passed := func(c *client, calls int) (n int) {
			for range calls {
				status, header, _ := c.send(http.MethodGet, "/compute/v2.1/flavors", nil)
				switch {
				case status == http.StatusOK:
					n++
				case status != http.StatusTooManyRequests || header.Get("Retry-After") != "1":
					t.Errorf("status %d, Retry-After %q", status, header.Get("Retry-After"))
				}
			}
			return n
		}
		if got := passed(c, 10); got != 3 {
			t.Errorf("at once: %d passed, want 3", got)
		}
		if got := passed(other, 10); got != 3 {
			t.Errorf("of another project: %d passed, want 3", got)
		}
		pass(time.Second)
		if got := passed(c, 10); got != 2 {
			t.Errorf("a second later: %d passed, want 2", got)
		}
	})
}

// TestSoftDelete: a deleted server is kept, counts for no limit, and goes when
// it is force-deleted or its time is over.
func TestSoftDelete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulator(t, openstacksim.Options{})
		c := newClient(t, sim)
		inject(t, sim, "soft-delete,reclaim=1h")
		first, second := c.create("first", nil), c.create("second", nil)
		pass(5 * time.Second)
		for _, id := range []string{first, second} {
			c.want(http.StatusNoContent, http.MethodDelete, "/compute/v2.1/servers/"+id, nil)
		}
		pass(5 * time.Second)
		c.want(http.StatusNoContent, http.MethodDelete, "/compute/v2.1/servers/"+first, nil)
		pass(5 * time.Second)
		if got := c.server(first); got["status"] != "SOFT_DELETED" || got["OS-EXT-STS:vm_state"] != "soft-delete" {
			t.Errorf("status %v, %v", got["status"], got["OS-EXT-STS:vm_state"])
		}
		absolute := object(object(c.want(http.StatusOK, http.MethodGet, "/compute/v2.1/limits", nil)["limits"])["absolute"])
		if absolute["totalInstancesUsed"] != 0.0 {
			t.Errorf("used: %v", absolute["totalInstancesUsed"])
		}
		c.want(http.StatusAccepted, http.MethodPost, "/compute/v2.1/servers/"+first+"/action", map[string]any{"forceDelete": nil})
		pass(5 * time.Second)
		c.want(http.StatusNotFound, http.MethodGet, "/compute/v2.1/servers/"+first, nil)
		pass(time.Hour)
		c.want(http.StatusNotFound, http.MethodGet, "/compute/v2.1/servers/"+second, nil)
	})
}

// TestTheCloudsClock: the header and the times of servers are off together.
func TestTheCloudsClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulator(t, openstacksim.Options{})
		c := newClient(t, sim)
		inject(t, sim, "clock,by=-20m")
		id := c.create("early", nil)
		want := time.Now().UTC().Add(-20 * time.Minute)
		_, header, _ := c.send(http.MethodGet, "/compute/v2.1/flavors", nil)
		if got := header.Get("Date"); got != want.Format(http.TimeFormat) {
			t.Errorf("Date %s, want %s", got, want)
		}
		if got := c.server(id)["created"]; got != want.Format(time.RFC3339) {
			t.Errorf("created %v, want %s", got, want)
		}
	})
}

// TestTheLegacyEndpoint: it answers as 2.1 does, whatever is asked for, and
// drops what it does not know.
func TestTheLegacyEndpoint(t *testing.T) {
	t.Parallel()
	sim := newSimulator(t, openstacksim.Options{})
	inject(t, sim, "legacy-endpoint")
	c := newClient(t, sim)
	project := text(list(c.want(http.StatusOK, http.MethodGet, "/identity/v3/auth/projects", nil)["projects"])[0]["id"])
	catalogue := c.want(http.StatusOK, http.MethodGet, "/identity/v3/auth/catalog", nil)
	root := ""
	for _, entry := range list(catalogue["catalog"]) {
		if entry["type"] == "compute" {
			root = text(list(entry["endpoints"])[0]["url"])
		}
	}
	if root != c.url+"/compute/v2/"+project {
		t.Fatalf("endpoint %s", root)
	}
	path := strings.TrimPrefix(root, c.url)
	spec := c.spec("old", map[string]any{"tags": []string{"g1"}})
	id := text(object(c.want(http.StatusAccepted, http.MethodPost, path+"/servers", spec)["server"])["id"])
	status, header, body := c.send(http.MethodGet, path+"/servers/"+id, nil)
	if _, tagged := object(body["server"])["tags"]; status != http.StatusOK || tagged || header.Get("Openstack-Api-Version") != "" {
		t.Errorf("status %d, %v, %v", status, header, body)
	}
	if got := len(list(c.want(http.StatusOK, http.MethodGet, path+"/servers/detail?tags=other", nil)["servers"])); got != 1 {
		t.Errorf("a filter by tags leaves %d servers, want all", got)
	}
	if got := len(sim.Snapshot().Tagged("g1")); got != 0 {
		t.Errorf("servers with the tag: %d", got)
	}
}

// TestAHostThatFails: the fault meets the servers of one host only.
func TestAHostThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulator(t, openstacksim.Options{})
		c := newClient(t, sim)
		inject(t, sim, "build-error,match=host:compute-b")
		for range 6 {
			c.create("some", nil)
		}
		pass(10 * time.Second)
		states := map[string]int{}
		for _, srv := range sim.Snapshot().Servers {
			states[srv.Status]++
			if srv.Status == "ACTIVE" && srv.Host != "compute-a" {
				t.Errorf("ACTIVE on %s", srv.Host)
			}
		}
		if states["ACTIVE"] == 0 || states["ERROR"] == 0 {
			t.Errorf("states: %v", states)
		}
	})
}

// TestInjectedRules: they are listed with how often they met something, and go
// when they are withdrawn or over.
func TestInjectedRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulator(t, openstacksim.Options{})
		c := newClient(t, sim)
		inject(t, sim, "error:50%,match=compute:*")
		inject(t, sim, "delay,by=1s,for=1m")
		inject(t, sim, "error,times=1,match=image:*")
		for range 100 {
			c.send(http.MethodGet, "/compute/v2.1/flavors", nil)
		}
		rules := sim.Injected()
		if len(rules) != 2 || rules[0].Text != "error:50%,match=compute:*" || rules[0].Met < 25 || rules[0].Met > 75 {
			t.Errorf("rules after 100 calls of 1s: %+v", rules)
		}
		if !sim.Withdraw(rules[0].ID) || sim.Withdraw(rules[0].ID) {
			t.Error("a rule is withdrawn once")
		}
		c.want(http.StatusOK, http.MethodGet, "/compute/v2.1/flavors", nil)
	})
}
