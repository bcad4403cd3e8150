package plugin_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// TestStartNamesWhatIsMissing is report 33: every name that does not resolve is
// reported at once, with the names that come nearest. The plugin starts all the
// same, since there may be servers to keep, and creates none.
func TestStartNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		w.createsNothing(t, map[string]any{
			"server.flavor": "m1.smal", "server.image": "Ubuntu 24.4", "server.networks": []string{"privat"},
			"server.security_groups": []string{"shh"}, "server.server_group": "runner", "server.key_name": "fleetin",
			"address_network": "privat",
		},
			`server.flavor: no flavor is named "m1.smal"`, `did you mean "m1.small"`,
			`server.image: no active image is named "Ubuntu 24.4"`, `"Ubuntu 24.04"`,
			`server.networks: no network is named "privat"`, `did you mean "private"`,
			`server.security_groups`, `did you mean "ssh"`, `server.server_group`, `did you mean "runners"`,
			`server.key_name`, `did you mean "fleeting"`)
	})
}

// createsNothing starts a plugin that finds not all that servers are made of. It
// says so once, as check does, and creates nothing.
func (w *world) createsNothing(t *testing.T, change map[string]any, says ...string) {
	t.Helper()
	group := w.start(t, change)
	for range 10 {
		increase(t, group, 1, 0)
		<-time.After(2 * time.Second)
	}
	if got := w.log.lines("[ERROR]", "no servers can be created"); got != 1 {
		t.Errorf("lines of the error: %d, want 1:\n%s", got, w.log)
	}
	checked := ""
	for _, f := range w.check(t, change) {
		checked += f.Subject + ": " + f.Detail + "\n"
	}
	logged := strings.ReplaceAll(w.log.String(), `\"`, `"`)
	for _, part := range says {
		if !strings.Contains(logged, part) || !strings.Contains(checked, part) {
			t.Errorf("log and check do not both say %s:\n%s\n%s", part, w.log, checked)
		}
	}
	if got := w.Count(sim.OpServerCreate); got != 0 {
		t.Errorf("%d creations were sent", got)
	}
}

// check returns what the command of that name finds wrong.
func (w *world) check(t *testing.T, change map[string]any) []plugin.Finding {
	t.Helper()
	raw, err := json.Marshal(w.config(change))
	if err != nil {
		t.Fatal(err)
	}
	findings := plugin.Check(t.Context(), raw, plugin.WithTransport(w.Transport()))
	return slices.DeleteFunc(findings, func(f plugin.Finding) bool { return f.OK })
}

// TestAddressNetworkElsewhere: the servers are not on the network to connect on.
func TestAddressNetworkElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		newWorld(t, sim.Options{}).createsNothing(t, map[string]any{"address_network": "elsewhere"},
			`address_network: must be one of server.networks, not "elsewhere"`)
	})
}

func TestStartListsSeveralMatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seed := sim.DefaultSeed()
		twin := seed.Networks[1]
		twin.Name = "private"
		seed.Networks[1] = twin
		newWorld(t, sim.Options{Seed: &seed}).createsNothing(t, nil, `2 networks are named "private"; use one of their IDs: `)
	})
}

// refuses asks for a server for a while: nothing is created, and the reason is in
// the log.
func (w *world) refuses(t *testing.T, group provider.InstanceGroup, says string) {
	t.Helper()
	before := w.Count(sim.OpServerCreate)
	for range 30 {
		increase(t, group, 1, 0)
		<-time.After(2 * time.Second)
	}
	if got := w.Count(sim.OpServerCreate) - before; got != 0 {
		t.Errorf("%d creations were sent", got)
	}
	if got := w.log.lines("[ERROR]", "no servers can be created"); got != 1 || !strings.Contains(w.log.String(), says) {
		t.Errorf("the log does not say %q:\n%s", says, w.log)
	}
}

// createsWithin asks for a server until it is taken on, and waits for it.
func (w *world) createsWithin(t *testing.T, group provider.InstanceGroup, most time.Duration) {
	t.Helper()
	before := count(states(t, group), provider.StateRunning)
	started := time.Now()
	for {
		got, err := group.Increase(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if got == 1 {
			break
		}
		if time.Since(started) > most {
			t.Fatalf("creates nothing for %v:\n%s", most, w.log)
		}
		<-time.After(2 * time.Second)
	}
	<-time.After(10 * time.Second)
	if got := count(states(t, group), provider.StateRunning); got != before+1 {
		t.Errorf("running: %d, want %d", got, before+1)
	}
}

// TestLookingUpAgainIsRare: while names do not resolve and jobs wait, they are
// looked up about once a minute, and not at all while none does.
func TestLookingUpAgainIsRare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		w.RemoveImages("Ubuntu 24.04")
		group := w.start(t, nil)
		before := w.Count(sim.OpFlavorList)
		<-time.After(time.Hour)
		if got := w.Count(sim.OpFlavorList) - before; got != 0 {
			t.Errorf("look-ups with nothing to do: %d", got)
		}
		for started := time.Now(); time.Since(started) < 30*time.Minute; <-time.After(2 * time.Second) {
			increase(t, group, 3, 0)
		}
		if got := w.Count(sim.OpFlavorList) - before; got < 24 || got > 36 {
			t.Errorf("look-ups in half an hour: %d, want about one a minute", got)
		}
		if got := w.log.lines("no servers can be created"); got < 3 || got > 5 {
			t.Errorf("lines in an hour and a half: %d, want one every ten minutes while jobs wait", got)
		}
		w.AddImage(sim.Image{Name: "Ubuntu 24.04"})
		w.createsWithin(t, group, 80*time.Second)
		if w.log.lines("servers can be created again") != 1 {
			t.Error("the log does not say that it is over")
		}
	})
}

// TestAFlavorMadeAnew has the same name and another ID, as have networks and all
// else: what the cloud refuses a server for is looked up again.
func TestAFlavorMadeAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		old := sim.Fault{
			Status: http.StatusOK, ContentType: "application/json",
			Body: `{"flavors": [{"id": "gone", "name": "m1.small", "disk": 20, "ram": 2048, "vcpus": 1}]}`,
		}
		restore := w.Inject(sim.Rule{
			Operation: sim.OpFlavorList, Fault: old, When: func(r *http.Request) bool { return r.URL.RawQuery == "" },
		})
		group := w.start(t, nil)
		restore()
		increase(t, group, 1, 1)
		for started := time.Now(); time.Since(started) < 5*time.Minute; <-time.After(10 * time.Second) {
			states(t, group)
		}
		if got := count(states(t, group), provider.StateRunning); got != 1 {
			t.Errorf("running: %d, want the one that waited for the new flavor\n%s", got, w.log)
		}
	})
}
