package plugin_test

import (
	"encoding/json"
	"net/http"
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

// TestNovaWithoutNeutron: Nova itself cannot show servers in full while Neutron is
// down, and answers 500. Its lists, metadata and addresses are enough.
func TestNovaWithoutNeutron(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		first := w.start(t, nil)
		servers := w.up(t, first, 3)
		want, err := first.ConnectInfo(t.Context(), servers[0])
		if err != nil {
			t.Fatal(err)
		}
		var restores []func()
		for _, op := range []sim.Operation{sim.OpServerDetail, sim.OpServerShow, "network:*"} {
			restores = append(restores, w.Inject(sim.Rule{Operation: op, Fault: sim.Refuse(http.StatusInternalServerError, "Unexpected API Error. keystoneauth1.exceptions.connection.ConnectFailure")}))
		}
		for range 10 {
			if got := count(states(t, first), provider.StateRunning); got != 3 {
				t.Errorf("the process that made them: %d running, want 3", got)
			}
			<-time.After(time.Minute)
		}
		w.shutdown(t, first)
		group := w.start(t, nil)
		if got := count(states(t, group), provider.StateRunning); got != 3 {
			t.Errorf("adopted: %d running, want 3\n%s", got, w.log)
		}
		if got, err := group.ConnectInfo(t.Context(), servers[0]); err != nil || got.InternalAddr != want.InternalAddr {
			t.Errorf("address %s, %v; want %s", got.InternalAddr, err, want.InternalAddr)
		}
		if _, err := group.Decrease(t.Context(), servers[:1]); err != nil {
			t.Error(err)
		}
		<-time.After(time.Minute)
		states(t, group)
		if got := len(w.Snapshot().Servers); got != 2 {
			t.Errorf("servers: %d, want 2", got)
		}
		for _, restore := range restores {
			restore()
		}
		w.createsWithin(t, group, 90*time.Second)
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
