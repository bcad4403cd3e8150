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
)

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

// TestARenamedNetwork: Nova lists a server's addresses by the name that the network
// has by now, or had once.
func TestARenamedNetwork(t *testing.T) {
	t.Parallel()
	for _, several := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, sim.Options{})
			id := w.idOf(t, w.token(t), "network/v2.0/networks", "networks", "private")
			change := map[string]any{"server.networks": []string{id}}
			if several {
				change = map[string]any{"server.networks": []string{id, "second"}, "address_network": id}
			}
			restore := w.Inject(sim.Rule{
				Operation: sim.OpNetworks, When: func(r *http.Request) bool { return r.URL.Query().Get("id") == id },
				Fault: sim.Fault{Status: http.StatusOK, ContentType: "application/json", Body: `{"networks": [{"id": "` + id + `", "name": "of old"}]}`},
			})
			group := w.start(t, change)
			restore()
			for _, name := range w.up(t, group, 2) {
				info, err := group.ConnectInfo(t.Context(), name)
				server, _ := w.Snapshot().Server(name)
				if err != nil || !slices.Contains(server.Addresses["private"], info.InternalAddr) {
					t.Errorf("several networks %v: %s, %v; want that on private of %v", several, info.InternalAddr, err, server.Addresses)
				}
			}
		})
	}
}
