package plugin_test

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// missing is what can be gone, or out of reach, while Nova's servers go on.
func missing() map[string]struct {
	op    sim.Operation
	fault sim.Fault
	says  string
} {
	empty := func(list string) sim.Fault {
		return sim.Fault{Status: http.StatusOK, Body: `{"` + list + `": []}`, ContentType: "application/json"}
	}
	return map[string]struct {
		op    sim.Operation
		fault sim.Fault
		says  string
	}{
		"Glance is down":          {"image:*", sim.Refuse(http.StatusServiceUnavailable, "down for a while"), "down for a while"},
		"Neutron is down":         {"network:*", sim.Refuse(http.StatusServiceUnavailable, "down for a while"), "down for a while"},
		"Neutron does not answer": {"network:*", sim.Hang(), "list networks: no answer within 20s"},
		"Cinder is down":          {"volume:*", sim.Refuse(http.StatusServiceUnavailable, "down for a while"), ""},
		"a proxy for Glance":      {"image:*", sim.Fault{Status: http.StatusNotFound, Body: "<html>nothing here</html>"}, "nothing here"},
		"the image is gone":       {sim.OpImageList, empty("images"), "server.image"},
		"the flavor is gone":      {sim.OpFlavorList, empty("flavors"), "server.flavor"},
		"the key pair is gone":    {sim.OpKeyPairs, empty("keypairs"), "server.key_name"},
		"the network is gone":     {sim.OpNetworks, empty("networks"), "server.networks"},
		"the rules are gone":      {sim.OpSecurityGroup, empty("security_groups"), "server.security_groups"},
		"the group is gone":       {sim.OpServerGroups, empty("server_groups"), "server.server_group"},
		"keys may not be listed":  {sim.OpKeyPairs, sim.Refuse(http.StatusForbidden, "Policy doesn't allow it"), "Policy doesn't allow it"},
	}
}

func everyName() map[string]any {
	return map[string]any{
		"server.key_name": "fleeting", "server.security_groups": []string{"ssh"}, "server.server_group": "runners",
		"server.volume_size": 20, "server.volume_type": "lab",
	}
}

// TestNovaIsEnough: whatever else is gone or down when the plugin starts again, it
// adopts, reports, connects to and deletes its servers. It says what it cannot
// create and why, and creates again by itself once it can.
func TestNovaIsEnough(t *testing.T) {
	t.Parallel()
	for name, row := range missing() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				first := w.start(t, everyName())
				servers := w.up(t, first, 3)
				w.shutdown(t, first)
				restore := w.Inject(sim.Rule{
					Operation: row.op, Fault: row.fault,
					// What asks for a microversion that cannot exist is about Nova.
					When: func(r *http.Request) bool { return r.URL.Query().Get("limit") == "" },
				})
				group := w.start(t, everyName())
				if got := count(states(t, group), provider.StateRunning); got != 3 {
					t.Errorf("adopted: %d running, want 3", got)
				}
				if info, err := group.ConnectInfo(t.Context(), servers[0]); err != nil || info.InternalAddr == "" || info.OS != "linux" {
					t.Errorf("connect info: %+v, %v", info, err)
				}
				if _, err := group.Decrease(t.Context(), servers[:1]); err != nil {
					t.Error(err)
				}
				if row.says != "" {
					w.refuses(t, group, row.says)
				}
				<-time.After(10 * time.Second)
				if got := len(w.Snapshot().Servers); got != 2 {
					t.Errorf("servers: %d, want 2", got)
				}
				restore()
				w.createsWithin(t, group, 90*time.Second)
			})
		})
	}
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

// TestListAndCleanUpNeedNovaOnly: so do the commands.
func TestListAndCleanUpNeedNovaOnly(t *testing.T) {
	t.Parallel()
	for name, row := range missing() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				w.up(t, w.start(t, everyName()), 2)
				w.Inject(sim.Rule{Operation: row.op, Fault: row.fault})
				raw, err := json.Marshal(w.config(everyName()))
				if err != nil {
					t.Fatal(err)
				}
				config, err := plugin.ParseConfig(raw)
				if err != nil {
					t.Fatal(err)
				}
				transport := plugin.WithTransport(w.Transport())
				listed, err := plugin.List(t.Context(), config, transport)
				if err != nil || len(listed) != 2 || listed[0].Address == "" {
					t.Errorf("list: %+v, %v", listed, err)
				}
				gone, err := plugin.Cleanup(t.Context(), config, transport)
				<-time.After(time.Minute)
				if left := w.Snapshot().Servers; err != nil || len(gone) != 2 || len(left) != 0 {
					t.Errorf("cleanup: %d deleted, %d left, %v", len(gone), len(left), err)
				}
			})
		})
	}
}

// TestWhatServersSayThemselves: a platform that is not the usual one, and the
// network that only its ID names, are known at a restart with nothing but Nova.
func TestWhatServersSayThemselves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		token := w.token(t)
		change := map[string]any{
			"server.image": "Windows Server 2022", "server.volume_size": 50,
			"server.networks": []string{"private", "second"}, "address_network": w.idOf(t, token, "network/v2.0/networks", "networks", "second"),
		}
		first := w.start(t, change)
		name := w.up(t, first, 1)[0]
		want, err := first.ConnectInfo(t.Context(), name)
		if err != nil || want.OS != "windows" || want.Protocol != provider.ProtocolWinRM {
			t.Fatalf("%+v, %v", want, err)
		}
		w.shutdown(t, first)
		for _, op := range []sim.Operation{"image:*", "network:*"} {
			w.Inject(sim.Rule{Operation: op, Fault: sim.Refuse(http.StatusServiceUnavailable, "down")})
		}
		group := w.start(t, change)
		states(t, group)
		got, err := group.ConnectInfo(t.Context(), name)
		if err != nil || got.InternalAddr != want.InternalAddr || got.OS != "windows" || got.Protocol != provider.ProtocolWinRM {
			t.Errorf("with Nova only: %+v, %v; want %+v", got, err, want)
		}
	})
}

// twins is a cloud with two networks of one name.
func twins(t *testing.T) (w *world, first, second string) {
	t.Helper()
	seed := sim.DefaultSeed()
	seed.Networks = append(seed.Networks,
		sim.Network{ID: "11111111-1111-4111-8111-111111111111", Name: "jobs", Project: sim.DefaultProject, IPv4: netip.MustParsePrefix("10.90.1.0/24")},
		sim.Network{ID: "22222222-2222-4222-8222-222222222222", Name: "jobs", Project: sim.DefaultProject, IPv4: netip.MustParsePrefix("10.90.2.0/24")})
	return newWorld(t, sim.Options{Seed: &seed}), "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
}

// TestTwoNetworksOfOneName: the address is that on the network whose ID is given,
// in either order, and the ports are asked for once a server.
func TestTwoNetworksOfOneName(t *testing.T) {
	t.Parallel()
	for _, swapped := range []bool{false, true} {
		for prefix, pick := range map[string]int{"10.90.1.": 0, "10.90.2.": 1} {
			synctest.Test(t, func(t *testing.T) {
				w, first, second := twins(t)
				ids := []string{first, second}
				networks := slices.Clone(ids)
				if swapped {
					slices.Reverse(networks)
				}
				group := w.start(t, map[string]any{"server.networks": networks, "address_network": ids[pick]})
				for _, name := range w.up(t, group, 3) {
					info, err := group.ConnectInfo(t.Context(), name)
					if err != nil || !strings.HasPrefix(info.InternalAddr, prefix) {
						t.Errorf("network %d of %v: %s, %v", pick, networks, info.InternalAddr, err)
					}
				}
				before := w.Count(sim.OpPorts)
				if before == 0 || before > 3 {
					t.Errorf("ports were asked for %d times", before)
				}
				for range 5 {
					states(t, group)
				}
				if got := w.Count(sim.OpPorts) - before; got != 0 {
					t.Errorf("ports of servers that are known were asked for %d times", got)
				}
			})
		}
	}
}

// TestTwinNetworksWithoutNeutron: a server whose address cannot be told is neither
// given jobs nor given up.
func TestTwinNetworksWithoutNeutron(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, first, second := twins(t)
		change := map[string]any{"server.networks": []string{first, second}, "address_network": second}
		group := w.start(t, change)
		name := w.up(t, group, 1)[0]
		restore := w.Inject(sim.Rule{Operation: "network:*", Fault: sim.Refuse(http.StatusServiceUnavailable, "down")})
		if got := states(t, group)[name]; got != provider.StateRunning {
			t.Errorf("a server that is known: %q, want running", got)
		}
		w.shutdown(t, group)
		again := w.start(t, change)
		if got := states(t, again)[name]; got != provider.StateCreating {
			t.Errorf("after a restart: %q, want creating", got)
		}
		if _, err := again.ConnectInfo(t.Context(), name); err == nil {
			t.Error("an address is given that cannot be known")
		}
		restore()
		increase(t, again, 1, 0) // has the names looked up
		<-time.After(10 * time.Second)
		if got := states(t, again)[name]; got != provider.StateRunning {
			t.Errorf("with Neutron: %q, want running", got)
		}
		if info, err := again.ConnectInfo(t.Context(), name); err != nil || !strings.HasPrefix(info.InternalAddr, "10.90.2.") {
			t.Errorf("address: %+v, %v", info, err)
		}
	})
}

// TestFloatingAddressShownLate: with wait_for_floating_ip, a server is running once
// Nova shows the address; without, the answer expires once the runner had time to
// use it.
func TestFloatingAddressShownLate(t *testing.T) {
	t.Parallel()
	for _, wait := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, sim.Options{})
			group := w.start(t, map[string]any{"wait_for_floating_ip": wait})
			increase(t, group, 1, 1)
			<-time.After(10 * time.Second)
			reported := states(t, group)
			name := names(reported)[0]
			if got, want := reported[name], map[bool]provider.State{true: provider.StateCreating, false: provider.StateRunning}[wait]; got != want {
				t.Errorf("without the address: %q, want %q", got, want)
			}
			if info, err := group.ConnectInfo(t.Context(), name); !wait && (err != nil || info.Expires == nil || time.Until(*info.Expires) < settings().Timeout) {
				t.Errorf("connect info without the address: %+v, %v", info, err)
			}
			address := w.attachFloatingIP(t, name)
			if got := states(t, group)[name]; got != provider.StateRunning {
				t.Errorf("with the address: %q, want running", got)
			}
			if info, err := group.ConnectInfo(t.Context(), name); err != nil || info.ExternalAddr != address || info.Expires != nil {
				t.Errorf("connect info: %+v, %v; want %s, for good", info, err, address)
			}
		})
	}
}

// attachFloatingIP gives a server a floating address, as a cloud does by itself.
func (w *world) attachFloatingIP(t *testing.T, name string) string {
	t.Helper()
	token := w.token(t)
	server, _ := w.Snapshot().Server(name)
	_, raw := w.call(t, http.MethodGet, "network/v2.0/ports?device_id="+server.ID, token, "", http.StatusOK)
	var listed struct {
		Ports []struct{ ID string }
	}
	if err := json.Unmarshal(raw, &listed); err != nil || len(listed.Ports) == 0 {
		t.Fatal(string(raw), err)
	}
	public := w.idOf(t, token, "network/v2.0/networks", "networks", "public")
	_, raw = w.call(t, http.MethodPost, "network/v2.0/floatingips", token,
		`{"floatingip": {"floating_network_id": "`+public+`", "port_id": "`+listed.Ports[0].ID+`"}}`, http.StatusCreated)
	var made struct {
		FloatingIP struct {
			Address string `json:"floating_ip_address"`
		} `json:"floatingip"`
	}
	if err := json.Unmarshal(raw, &made); err != nil {
		t.Fatal(err)
	}
	return made.FloatingIP.Address
}
