package plugin_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// Everything failed one hour after the start, when the token ended:
// https://github.com/gophercloud/gophercloud/issues/2611 and
// https://github.com/kubernetes-sigs/cluster-api-provider-openstack/issues/132
func TestReport15TokensEnd(t *testing.T) {
	const life, lasts = 3 * time.Second, time.Minute
	report(t, sim.Options{TokenLife: life}, func(t *testing.T, w *world) {
		group := w.start(t, nil)
		servers := w.up(t, group, 10)
		before := w.Count(sim.OpTokenCreate)
		var workers sync.WaitGroup
		for i := range 50 {
			workers.Go(func() {
				for end := time.Now().Add(lasts); time.Now().Before(end); {
					if err := group.Heartbeat(t.Context(), servers[i%len(servers)]); err != nil {
						t.Errorf("heartbeat: %v", err)
					}
					<-time.After(250 * time.Millisecond)
				}
			})
		}
		workers.Wait()
		// One for each life of a token, each renewed in its last tenth.
		if got, most := w.Count(sim.OpTokenCreate)-before, int(lasts/(life*8/10)); got > most {
			t.Errorf("tokens for %s with 50 callers: got %d, want at most %d", lasts, got, most)
		}
		if got := w.Count(sim.OpServerShow); got < 200 {
			t.Errorf("only %d calls were made", got)
		}
		if got := w.statuses(http.StatusUnauthorized); got != 0 {
			t.Errorf("%d calls were made with a token that had ended", got)
		}
	})
}

// The delete got the 401, and the server was left:
// https://github.com/hashicorp/packer/issues/2928
func TestReport15DeleteMeetsABadToken(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		group := w.start(t, nil)
		w.up(t, group, 10)
		w.RevokeTokens()
		before := w.Count(sim.OpTokenCreate)
		w.retired(t, group)
		if got := w.Count(sim.OpTokenCreate) - before; got != 1 {
			t.Errorf("tokens after all were revoked: got %d, want 1", got)
		}
	})
}

// Rotated credentials were taken for the end:
// https://github.com/kubernetes-sigs/cluster-api-provider-openstack/issues/2097 and /issues/1613
func TestReport16RotatedCredentials(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		group := w.start(t, map[string]any{"cloud": sim.CloudCredential})
		servers := w.up(t, group, 2)
		w.RevokeCredential(sim.DefaultCredential)
		_, err := update(t, group)
		if err == nil || !strings.Contains(err.Error(), "Could not find Application Credential") {
			t.Errorf("update with a credential that is gone: %v", err)
		}
		if err := group.Heartbeat(t.Context(), servers[0]); err != nil {
			t.Errorf("a heartbeat fails for the credential's sake: %v", err)
		}
		id := w.AddCredential(sim.ApplicationCredential{Name: "rotated", Secret: "new", Project: sim.DefaultProject})
		old := string(w.CloudsYAML("http://cloud.example"))
		w.write(t, rotated(old, id, "new"))
		<-time.After(2 * time.Second)
		if got := count(states(t, group), provider.StateRunning); got != 2 {
			t.Errorf("running after the rotation: got %d, want 2", got)
		}
	})
}

// A key pair belongs to a user; after a change of users it was "Invalid
// key_name provided": https://github.com/deckhouse/deckhouse/issues/16051
func TestReport17KeyPairOfAnotherUser(t *testing.T) {
	seed := sim.DefaultSeed()
	seed.Users = append(seed.Users, sim.User{Name: "other", Password: "p", Projects: []string{sim.DefaultProject}})
	report(t, sim.Options{Seed: &seed}, func(t *testing.T, w *world) {
		content := strings.ReplaceAll(string(w.CloudsYAML("http://cloud.example")), "username: "+sim.DefaultUser, "username: other")
		w.write(t, strings.ReplaceAll(content, "password: "+sim.DefaultPassword, "password: p"))
		w.createsNothing(t, map[string]any{"server.key_name": "fleeting"}, `server.key_name: no key pair of this user is named "fleeting"`)
	})
}

// accessRules are what an application credential for the plugin must allow,
// and all that it must allow.
func accessRules() []sim.AccessRule {
	return []sim.AccessRule{
		{Service: "compute", Method: http.MethodGet, Path: "/v2.1/"},
		{Service: "compute", Method: http.MethodGet, Path: "/v2.1/flavors/detail"},
		{Service: "compute", Method: http.MethodGet, Path: "/v2.1/flavors/{id}"},
		{Service: "compute", Method: http.MethodGet, Path: "/v2.1/os-keypairs"},
		{Service: "compute", Method: http.MethodGet, Path: "/v2.1/os-server-groups"},
		{Service: "compute", Method: http.MethodGet, Path: "/v2.1/os-server-groups/{id}"},
		{Service: "compute", Method: http.MethodGet, Path: "/v2.1/servers/detail"},
		{Service: "compute", Method: http.MethodGet, Path: "/v2.1/servers/{id}"},
		{Service: "compute", Method: http.MethodPost, Path: "/v2.1/servers"},
		{Service: "compute", Method: http.MethodDelete, Path: "/v2.1/servers/{id}"},
		{Service: "compute", Method: http.MethodPost, Path: "/v2.1/servers/{id}/action"},
		{Service: "image", Method: http.MethodGet, Path: "/v2/images"},
		{Service: "image", Method: http.MethodGet, Path: "/v2/images/{id}"},
		{Service: "network", Method: http.MethodGet, Path: "/v2.0/networks"},
		{Service: "network", Method: http.MethodGet, Path: "/v2.0/networks/{id}"},
		{Service: "network", Method: http.MethodGet, Path: "/v2.0/security-groups"},
		{Service: "network", Method: http.MethodGet, Path: "/v2.0/security-groups/{id}"},
	}
}

// Restricted credentials broke on a call that nobody had told of:
// https://github.com/vexxhost/magnum-cluster-api/issues/749 and
// https://github.com/k-orc/openstack-resource-controller/issues/596
func TestReport18RestrictedCredential(t *testing.T) {
	seed := sim.DefaultSeed()
	seed.Users[0].ApplicationCredentials[0].AccessRules = accessRules()
	report(t, sim.Options{Seed: &seed}, func(t *testing.T, w *world) {
		w.SetFates(func(n int, _ sim.ServerInfo) sim.Fate { return sim.Fate{StuckDeleting: n == 1} })
		group := w.start(t, map[string]any{
			"cloud": sim.CloudCredential, "delete_timeout": "1m", "server.key_name": "fleeting",
			"server.security_groups": []string{"ssh"}, "server.server_group": "runners",
		})
		servers := w.up(t, group, 3)
		<-time.After(5 * time.Second)
		if err := group.Heartbeat(t.Context(), servers[0]); err != nil {
			t.Error(err)
		}
		if err := w.Lock(servers[1], false); err != nil {
			t.Fatal(err)
		}
		if err := w.Destroy(servers[2]); err != nil {
			t.Fatal(err)
		}
		states(t, group)
		if _, err := group.Decrease(t.Context(), servers); err != nil {
			t.Error(err)
		}
		<-time.After(5 * time.Minute)
		if left := w.Snapshot().Servers; len(left) != 0 {
			t.Errorf("left: %+v", left)
		}
		for _, call := range w.Calls() {
			if call.Status == http.StatusUnauthorized {
				t.Errorf("not on the list: %s %s", call.Method, call.URL)
			}
		}
	})
}

// startFails starts a plugin that must not start, and gives its error.
func (w *world) startFails(t *testing.T, change map[string]any) error {
	t.Helper()
	group := w.newGroup(t, change)
	_, err := group.Init(t.Context(), w.log.logger(), settings())
	if err == nil {
		w.shutdown(t, group)
		return errors.New("it started")
	}
	return err
}
