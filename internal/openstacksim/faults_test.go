package openstacksim_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

func TestLostAnswersTakeEffect(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]openstacksim.Fault{
		"5xx after commit":   openstacksim.CommitThenStatus(http.StatusBadGateway),
		"reset after commit": openstacksim.CommitThenReset(),
		"truncated body":     openstacksim.CommitThenTruncate(),
	} {
		for where, reach := range map[string]func(*testing.T, *openstacksim.Simulator, *client){
			"in memory": func(*testing.T, *openstacksim.Simulator, *client) {},
			"over HTTP": func(t *testing.T, sim *openstacksim.Simulator, c *client) {
				t.Helper()
				web := httptest.NewServer(sim)
				t.Cleanup(web.Close)
				c.http, c.url = web.Client(), web.URL
			},
		} {
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				sim := newSimulator(t, openstacksim.Options{})
				c := newClient(t, sim)
				reach(t, sim, c)
				spec := c.spec("doubtful", nil)
				sim.FailNth(openstacksim.OpServerCreate, 1, fault)
				status, _, body, err := c.try(http.MethodPost, "/compute/v2.1/servers", spec)
				if err == nil && status != http.StatusBadGateway {
					t.Errorf("status %d, body %q: the answer should be lost", status, body)
				}
				if _, found := sim.Snapshot().Server("doubtful"); !found {
					t.Error("no server came to be")
				}
				c.create("next", nil)
				if got := sim.Count(openstacksim.OpServerCreate); got != 2 {
					t.Errorf("%d creates, want 2", got)
				}
			})
		}
	}
}

func TestRefusalsHaveNoEffect(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]openstacksim.Fault{
		"refused":      openstacksim.Refuse(http.StatusForbidden, "Quota exceeded for instances: Requested 1, but already used 2 of 2 instances"),
		"rate limited": openstacksim.RateLimited("7"),
		"reset":        openstacksim.Reset(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim := newSimulator(t, openstacksim.Options{})
			c := newClient(t, sim)
			spec := c.spec("never", nil)
			sim.Inject(openstacksim.Rule{Operation: openstacksim.OpServerCreate, Fault: fault})
			status, header, body, err := c.try(http.MethodPost, "/compute/v2.1/servers", spec)
			if err == nil && status < 400 {
				t.Errorf("status %d, body %q", status, body)
			}
			if fault.RetryAfter != "" && header.Get("Retry-After") != "7" {
				t.Errorf("Retry-After %q", header.Get("Retry-After"))
			}
			if fault.Message != "" && !strings.Contains(string(body), fault.Message) {
				t.Errorf("body %q without %q", body, fault.Message)
			}
			if got := sim.Snapshot().Servers; len(got) != 0 {
				t.Errorf("servers: %+v", got)
			}
		})
	}
}

func TestRulesEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulator(t, openstacksim.Options{})
		c := newClient(t, sim)
		sim.Inject(openstacksim.Rule{Operation: "compute:*", Skip: 1, Every: 2, Times: 2, Fault: openstacksim.Refuse(http.StatusServiceUnavailable, "no")})
		var got []int
		for range 7 {
			status, _, _ := c.send(http.MethodGet, "/compute/v2.1/flavors", nil)
			got = append(got, status)
		}
		for i, want := range []int{200, 200, 503, 200, 503, 200, 200} {
			if got[i] != want {
				t.Fatalf("statuses %v: call %d", got, i+1)
			}
		}
		sim.Inject(openstacksim.Rule{For: 10 * time.Minute, Fault: openstacksim.Reset()})
		if _, _, _, err := c.try(http.MethodGet, "/compute/v2.1/flavors", nil); err == nil {
			t.Error("no outage")
		}
		pass(10 * time.Minute)
		remove := sim.Inject(openstacksim.Rule{Fault: openstacksim.Delay(5 * time.Second)})
		begin := time.Now()
		c.want(http.StatusOK, http.MethodGet, "/compute/v2.1/flavors", nil)
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("took %s, want 5s", took)
		}
		remove()
		c.want(http.StatusOK, http.MethodGet, "/compute/v2.1/flavors", nil)
	})
}

func TestListingLagAndDownCell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulator(t, openstacksim.Options{BuildTime: -1, DeleteTime: -1})
		c := newClient(t, sim)
		listed := func() int {
			return len(list(c.want(http.StatusOK, http.MethodGet, "/compute/v2.1/servers/detail?tags=g1", nil)["servers"]))
		}
		sim.SetListingLag(10 * time.Second)
		id := c.create("late", map[string]any{"tags": []string{"g1"}})
		if got := listed(); got != 0 || c.server(id)["status"] != "ACTIVE" {
			t.Errorf("%d listed at once", got)
		}
		pass(10 * time.Second)
		if got := listed(); got != 1 {
			t.Errorf("%d listed after the lag", got)
		}
		sim.SetCellDown(true)
		if got := listed(); got != 0 {
			t.Errorf("%d listed while the cell is down", got)
		}
		if got := c.server(id)["status"]; got != "UNKNOWN" {
			t.Errorf("status %v while the cell is down", got)
		}
		sim.SetCellDown(false)
		c.want(http.StatusNoContent, http.MethodDelete, "/compute/v2.1/servers/"+id, nil)
		pass(time.Second)
		c.want(http.StatusNotFound, http.MethodGet, "/compute/v2.1/servers/"+id, nil)
		if got := listed(); got != 1 {
			t.Errorf("%d listed right after the deletion", got)
		}
	})
}

func TestMarkerThatVanishes(t *testing.T) {
	t.Parallel()
	sim := newSimulator(t, openstacksim.Options{BuildTime: -1, MaxLimit: 2})
	c := newClient(t, sim)
	for _, name := range []string{"a", "b", "c"} {
		c.create(name, map[string]any{"tags": []string{"g1"}})
	}
	page := c.want(http.StatusOK, http.MethodGet, "/compute/v2.1/servers/detail?tags=g1", nil)
	links := list(page["servers_links"])
	if len(list(page["servers"])) != 2 || len(links) != 1 {
		t.Fatalf("first page: %v", page)
	}
	next := strings.TrimPrefix(text(links[0]["href"]), c.url)
	if rest := list(c.want(http.StatusOK, http.MethodGet, next, nil)["servers"]); len(rest) != 1 || rest[0]["name"] != "a" {
		t.Errorf("second page: %v", rest)
	}
	sim.Inject(openstacksim.Rule{Operation: openstacksim.OpServerDetail, Times: 1, Fault: openstacksim.Fault{DropMarker: true}})
	refusal := c.want(http.StatusBadRequest, http.MethodGet, next, nil)
	if message := text(object(refusal["badRequest"])["message"]); !strings.Contains(message, "marker") {
		t.Errorf("refusal: %v", refusal)
	}
}
