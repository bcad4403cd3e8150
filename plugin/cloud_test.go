package plugin_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// initError is what Init says of a configuration.
func (w *world) initError(t *testing.T, change map[string]any) error {
	t.Helper()
	group := w.newGroup(t, change)
	_, err := group.Init(t.Context(), w.log.logger(), settings())
	if err == nil {
		w.shutdown(t, group)
	}
	return err
}

// TestMicroversions is report 29 of OPENSTACK.md: clouds of all ages.
func TestMicroversions(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		most, asks, says string
		none             bool
		volumeType       bool
	}{
		{most: "2.1", says: "2.52"},
		{most: "2.38", says: "2.52"},
		{most: "2.52", asks: "2.52"},
		{most: "2.53", asks: "2.53"},
		{most: "2.104", asks: "2.96"},
		{most: "2.93", none: true, asks: "2.52"},
		{most: "2.66", volumeType: true, says: "2.67"},
		{most: "2.67", volumeType: true, asks: "2.67"},
	} {
		t.Run(row.most, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sim.Options{MaxMicroversion: row.most, NoVersions: row.none})
			change := map[string]any{}
			if row.volumeType {
				change = map[string]any{"server.volume_type": "lab", "server.volume_size": 5}
			}
			err := w.initError(t, change)
			if row.says != "" {
				if err == nil || !strings.Contains(err.Error(), row.says) {
					t.Errorf("got %v, want an error that says %s", err, row.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range w.Calls() {
				if call.Operation == sim.OpFlavorList && call.Microversion != row.asks {
					t.Errorf("asked for %s, want %s", call.Microversion, row.asks)
				}
			}
		})
	}
}

// TestNewestImageAtEachScaleUp is report 19: of several images of one name,
// the newest active one is used, and a new one from the next scale-up on.
func TestNewestImageAtEachScaleUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		w.RemoveImages("Ubuntu 24.04")
		first := w.AddImage(sim.Image{Name: "Ubuntu 24.04", Age: time.Hour})
		w.AddImage(sim.Image{Name: "Ubuntu 24.04", Age: 2 * time.Hour})
		for _, status := range []string{"queued", "saving", "deactivated", "killed"} {
			w.AddImage(sim.Image{Name: "Ubuntu 24.04", Status: status})
		}
		w.AddImage(sim.Image{Name: "Ubuntu 24.04", Hidden: true})
		w.AddImage(sim.Image{Name: "Ubuntu 24.04", Visibility: "community", Owner: sim.TinyProject})
		w.AddImage(sim.Image{Name: "Ubuntu 24.04", Visibility: "shared", Owner: sim.TinyProject})
		group := w.start(t, nil)
		assertImage := func(want string) {
			t.Helper()
			name := w.up(t, group, 1)[0]
			if server, _ := w.Snapshot().Server(name); server.Image != want {
				t.Errorf("image: got %s, want %s", server.Image, want)
			}
			if _, err := group.Decrease(t.Context(), []string{name}); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
			states(t, group)
		}
		assertImage(first)
		second := w.AddImage(sim.Image{Name: "Ubuntu 24.04"})
		assertImage(second)
		w.RemoveImages("Ubuntu 24.04")
		increase(t, group, 1, 1)
		<-time.After(10 * time.Second)
		if w.log.lines("scale-up paused", "no active image") == 0 {
			t.Errorf("the log does not say that the image is gone:\n%s", w.log)
		}
	})
}

// TestTheProjectsOwnImageFirst: a public image of the same name, however new, does
// not take the place of the project's own, and the log says that it is there.
func TestTheProjectsOwnImageFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		w.RemoveImages("Ubuntu 24.04")
		public := w.AddImage(sim.Image{Name: "Ubuntu 24.04", Visibility: "public", Owner: sim.TinyProject, Age: time.Hour})
		group := w.start(t, nil)
		image := func() string {
			t.Helper()
			name := w.up(t, group, 1)[0]
			server, _ := w.Snapshot().Server(name)
			if _, err := group.Decrease(t.Context(), []string{name}); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
			states(t, group)
			return server.Image
		}
		if got := image(); got != public {
			t.Errorf("image: got %s, want the public one", got)
		}
		own := w.AddImage(sim.Image{Name: "Ubuntu 24.04", Age: 2 * time.Hour, Owner: sim.DefaultProject})
		if got := image(); got != own || w.log.lines("another image from now on", own, public) != 1 || w.log.lines("several images have the name", public) != 1 {
			t.Errorf("image: got %s, want the project's own\n%s", got, w.log)
		}
		rollout := w.AddImage(sim.Image{Name: "Ubuntu 24.04", Owner: sim.DefaultProject})
		if got := image(); got != rollout || w.log.lines("another image from now on", rollout, own) != 1 {
			t.Errorf("image: got %s, want the newest of the project's own\n%s", got, w.log)
		}
	})
}

func TestAnImageIDPins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		old := w.AddImage(sim.Image{Name: "Ubuntu 24.04", Age: time.Hour})
		group := w.start(t, map[string]any{"server.image": old})
		<-time.After(time.Minute)
		lookups := w.Count("image:*")
		name := w.up(t, group, 1)[0]
		if server, _ := w.Snapshot().Server(name); server.Image != old || w.Count("image:*") != lookups {
			t.Errorf("image: got %s after %d lookups, want %s and none", server.Image, w.Count("image:*")-lookups, old)
		}
	})
}

// TestTokensAreRenewedOnce is report 15: with tokens that live 3 s, 50
// goroutines make 1,000 calls and each expiry costs one authentication.
func TestTokensAreRenewedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{TokenLife: 3 * time.Second})
		group := w.start(t, nil)
		name := w.up(t, group, 1)[0]
		before, started := w.Count(sim.OpTokenCreate), time.Now()
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				for range 20 {
					if err := group.Heartbeat(t.Context(), name); err != nil {
						t.Error(err)
					}
					<-time.After(2100 * time.Millisecond)
				}
			})
		}
		callers.Wait()
		shows := w.Count(sim.OpServerShow)
		tokens, most := w.Count(sim.OpTokenCreate)-before, int(time.Since(started)/(2700*time.Millisecond))+1
		if tokens > most || tokens < 5 {
			t.Errorf("tokens in %v: got %d, want at most %d", time.Since(started), tokens, most)
		}
		if shows < 50 {
			t.Errorf("only %d calls were made", shows)
		}
		for _, call := range w.Calls() {
			if call.Status == http.StatusUnauthorized {
				t.Errorf("%s ran into a token that had ended", call.Operation)
			}
		}
	})
}

// TestRotatedCredentials is report 16: an application credential is deleted,
// clouds.yaml gets another, and the plugin goes on without a restart.
func TestRotatedCredentials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, map[string]any{"cloud": sim.CloudCredential})
		name := w.up(t, group, 1)[0]
		old, err := os.ReadFile(w.clouds)
		if err != nil {
			t.Fatal(err)
		}
		w.RevokeCredential(sim.DefaultCredential)
		if _, err := update(t, group); err == nil {
			t.Fatal("update with a credential that is gone: no error")
		}
		fresh := w.AddCredential(sim.ApplicationCredential{Name: "fresh", Secret: "fresh-secret", Project: sim.DefaultProject})
		text := string(old)
		start := strings.Index(text, "application_credential_id: ") + len("application_credential_id: ")
		id := text[start : start+strings.IndexByte(text[start:], '\n')]
		text = strings.NewReplacer(id, fresh, sim.DefaultSecret, "fresh-secret").Replace(text)
		if err := os.WriteFile(w.clouds, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := states(t, group)[name]; got != provider.StateRunning {
			t.Errorf("state after the rotation: got %q, want running", got)
		}
		if strings.Contains(w.log.String(), sim.DefaultSecret) || strings.Contains(w.log.String(), "fresh-secret") {
			t.Error("a secret was logged")
		}
	})
}

// TestBrokenCloudsFileCostsNothing: while somebody edits clouds.yaml, the token
// goes on to be used.
func TestBrokenCloudsFileCostsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, nil)
		name := w.up(t, group, 1)[0]
		if err := os.WriteFile(w.clouds, []byte("clouds: ["), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if got := states(t, group)[name]; got != provider.StateRunning {
				t.Errorf("state: got %q, want running", got)
			}
			<-time.After(time.Minute)
		}
		if got := w.log.lines("changed credentials are not usable"); got != 1 {
			t.Errorf("lines about the broken file: got %d, want 1", got)
		}
		if err := os.Remove(w.clouds); err != nil {
			t.Fatal(err)
		}
		states(t, group)
		states(t, group)
		if got := w.log.lines("changed credentials are not usable"); got != 2 {
			t.Errorf("lines once the file is missing: got %d, want 1 more", got)
		}
		w.writeClouds(t)
		w.RevokeTokens()
		if got := states(t, group)[name]; got != provider.StateRunning {
			t.Errorf("state after the file was mended: got %q, want running", got)
		}
	})
}

// TestAccessRulesSuffice is report 18: the published access rules are enough
// for everything, commands included.
func TestAccessRulesSuffice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seed := sim.DefaultSeed()
		var rules []sim.AccessRule
		for _, r := range plugin.AccessRules() {
			rules = append(rules, sim.AccessRule(r))
		}
		seed.Users[0].ApplicationCredentials[0].AccessRules = rules
		w := newWorld(t, sim.Options{Seed: &seed})
		group := w.start(t, map[string]any{
			"cloud": sim.CloudCredential, "server.key_name": "fleeting", "server.server_group": "runners",
			"server.security_groups": []string{"ssh"}, "server.availability_zone": "az-a",
			"server.volume_size": 5, "server.volume_type": "lab",
		})
		name := w.up(t, group, 1)[0]
		if err := w.Lock(name, false); err != nil {
			t.Fatal(err)
		}
		if _, err := group.Decrease(t.Context(), []string{name}); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Minute)
		states(t, group)
		if len(w.Snapshot().Servers) != 0 {
			t.Error("the server is left")
		}
		for _, call := range w.Calls() {
			if call.Status == http.StatusUnauthorized || call.Status == http.StatusForbidden {
				t.Errorf("%s %s is not among the rules: %d", call.Method, call.URL, call.Status)
			}
			if call.Operation == sim.OpFloatingIPs || call.Operation == sim.OpPorts {
				t.Errorf("%s was called, which some clouds refuse (report 8)", call.Operation)
			}
		}
	})
}

// TestPagedListings covers paging, a last page that is exactly full, and a
// marker that is deleted between two pages.
func TestPagedListings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{MaxLimit: 2})
		group := w.start(t, nil)
		w.up(t, group, 6)
		before := w.Count(sim.OpServerDetail)
		if got := count(states(t, group), provider.StateRunning); got != 6 {
			t.Errorf("running: got %d, want 6", got)
		}
		if pages := w.Count(sim.OpServerDetail) - before; pages < 3 || pages > 4 {
			t.Errorf("pages: got %d, want 3 or, with an empty one, 4", pages)
		}
		w.Inject(sim.Rule{
			Operation: sim.OpServerDetail, Times: 1, Fault: sim.Fault{DropMarker: true},
			When: func(r *http.Request) bool { return r.URL.Query().Get("marker") != "" },
		})
		reported := states(t, group)
		if got := count(reported, provider.StateRunning); got != 5 {
			t.Errorf("after a marker was deleted: %d running, want 5: %v", got, reported)
		}
		if got := count(reported, provider.StateDeleted); got != 1 {
			t.Errorf("the deleted marker: %d reported as deleted, want 1", got)
		}
	})
}

// TestUnknownCloudHasAClearMessage: what a newcomer gets wrong first.
func TestUnknownCloudHasAClearMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sim.Options{})
	for name, row := range map[string]struct {
		change map[string]any
		says   string
	}{
		"no such entry": {map[string]any{"cloud": "mycloud"}, `no cloud "mycloud"; it has: simulator`},
		"no such file":  {map[string]any{"clouds_config": "/nowhere/clouds.yaml"}, filepath.FromSlash("/nowhere/clouds.yaml")},
	} {
		if err := w.initError(t, row.change); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %v, want %q", name, err, row.says)
		}
	}
	if err := w.SetPassword(sim.DefaultUser, "other"); err != nil {
		t.Fatal(err)
	}
	err := w.initError(t, nil)
	if err == nil || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), sim.DefaultPassword) {
		t.Errorf("wrong password: got %v, want the status and no password", err)
	}
}
