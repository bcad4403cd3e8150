package plugin_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// TestCredentialsOfAnotherPlace: a clouds.yaml that leads to another project,
// or to another region, while servers run must not read as their deletion, nor
// get new ones there.
func TestCredentialsOfAnotherPlace(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string][2]string{
		"project": {"project_name: " + sim.DefaultProject, "project_name: " + sim.TinyProject},
		"region":  {"region_name: " + sim.DefaultRegion, "region_name: RegionTwo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { otherPlace(t, replace[0], replace[1]) })
		})
	}
}

func otherPlace(t *testing.T, from, to string) {
	seed := sim.DefaultSeed()
	seed.Regions = []string{sim.DefaultRegion, "RegionTwo"}
	w := newWorld(t, sim.Options{Seed: &seed})
	group := w.start(t, nil)
	name := w.up(t, group, 1)[0]
	old, err := os.ReadFile(w.clouds)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(old), from, to)
	if changed == string(old) {
		t.Fatalf("clouds.yaml has no %q:\n%s", from, old)
	}
	if err := os.WriteFile(w.clouds, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if got := states(t, group)[name]; got != provider.StateRunning {
			t.Errorf("state: got %q, want running", got)
		}
		<-time.After(time.Minute)
	}
	w.RevokeTokens()
	if _, err := update(t, group); err == nil || !strings.Contains(err.Error(), "restart the runner") {
		t.Errorf("without a token: got %v, want an error that says what to do", err)
	}
	w.writeClouds(t)
	if got := states(t, group)[name]; got != provider.StateRunning {
		t.Errorf("state after the file was put back: got %q, want running", got)
	}
}

// TestNamingTheRegionLater: an entry may come to say where the catalogue leads
// to anyway.
func TestNamingTheRegionLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		named := string(w.CloudsYAML("http://cloud.example"))
		w.write(t, strings.ReplaceAll(named, "region_name: "+sim.DefaultRegion, "verify: true"))
		group := w.start(t, nil)
		name := w.up(t, group, 1)[0]
		before := w.Count(sim.OpTokenCreate)
		w.write(t, named)
		if got := states(t, group)[name]; got != provider.StateRunning {
			t.Errorf("state: got %q, want running", got)
		}
		w.RevokeTokens()
		if got := states(t, group)[name]; got != provider.StateRunning {
			t.Errorf("state with a new token: got %q, want running", got)
		}
		if got := w.Count(sim.OpTokenCreate) - before; got != 2 || w.log.lines("not usable") != 0 {
			t.Errorf("tokens: got %d, want one for the file and one for the revocation\n%s", got, w.log)
		}
	})
}

// TestKeystoneIsDown: while the token is good, calls do not wait for the next
// one by turns.
func TestKeystoneIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{TokenLife: time.Hour})
		group := w.start(t, nil)
		name := w.up(t, group, 1)[0]
		<-time.After(55 * time.Minute)
		w.Inject(sim.Rule{Operation: sim.OpTokenCreate, Fault: sim.Refuse(http.StatusServiceUnavailable, "down")})
		started, before := time.Now(), w.Count(sim.OpTokenCreate)
		for range 10 {
			if got := states(t, group)[name]; got != provider.StateRunning {
				t.Errorf("state: got %q, want running", got)
			}
		}
		if took := time.Since(started); took > 10*time.Second {
			t.Errorf("10 updates took %v", took)
		}
		if got := w.Count(sim.OpTokenCreate) - before; got != 1 {
			t.Errorf("attempts to renew: got %d, want one", got)
		}
	})
}

// TestKeystoneIsDownDuringARotation: new credentials that Keystone could not
// look at are tried again soon, and not at each call; those that it refused are
// not, for that locks accounts.
func TestKeystoneIsDownDuringARotation(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fault  sim.Fault
		lines  int
		tokens int
	}{
		"down for ten minutes": {sim.Refuse(http.StatusServiceUnavailable, "down"), 20, 1},
		"refused":              {sim.Refuse(http.StatusUnauthorized, "wrong password"), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{TokenLife: 24 * time.Hour})
				group := w.start(t, nil)
				server := w.up(t, group, 1)[0]
				restore := w.Inject(sim.Rule{Operation: sim.OpTokenCreate, Fault: row.fault})
				w.writeClouds(t)
				minutes := func(n int) {
					for started := time.Now(); time.Since(started) < time.Duration(n)*time.Minute; <-time.After(5 * time.Second) {
						if got := states(t, group)[server]; got != provider.StateRunning {
							t.Errorf("state: got %q, want running", got)
						}
					}
				}
				minutes(10)
				if got := w.log.lines("not usable"); got > row.lines || got < (row.lines+1)/2 {
					t.Errorf("attempts: got %d, want at most %d\n%s", got, row.lines, w.log)
				}
				restore()
				before := w.Count(sim.OpTokenCreate)
				minutes(2)
				if got := w.Count(sim.OpTokenCreate) - before; got != row.tokens {
					t.Errorf("tokens after it came back: got %d, want %d", got, row.tokens)
				}
			})
		})
	}
}
