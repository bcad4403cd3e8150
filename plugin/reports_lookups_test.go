package plugin_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// Tags were refused without a microversion, and some clouds know none:
// https://github.com/kubernetes-sigs/cluster-api-provider-openstack/issues/936 and /issues/543,
// https://github.com/terraform-provider-openstack/terraform-provider-openstack/issues/1306
func TestReport29Microversions(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		options sim.Options
		asks    string
	}{
		"2.52, the least":     {sim.Options{MaxMicroversion: "2.52"}, "2.52"},
		"2.53":                {sim.Options{MaxMicroversion: "2.53"}, "2.53"},
		"2.93":                {sim.Options{MaxMicroversion: "2.93"}, "2.93"},
		"2.104, not seen yet": {sim.Options{MaxMicroversion: "2.104"}, "2.96"},
		"no version document": {sim.Options{NoVersions: true}, "2.52"},
	} {
		t.Run(name, func(t *testing.T) {
			report(t, row.options, func(t *testing.T, w *world) {
				group := w.start(t, nil)
				w.up(t, group, 1)
				for _, op := range []sim.Operation{sim.OpServerCreate, sim.OpServerDetail} {
					for _, call := range w.callsOf(op) {
						if call.Microversion != row.asks {
							t.Errorf("%s at microversion %q, want %q", op, call.Microversion, row.asks)
						}
					}
				}
				w.retired(t, group)
			})
		})
	}
}

func TestReport29TooOldACloudIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		most   string
		change map[string]any
		need   string
	}{
		"2.1":             {"2.1", nil, "2.52"},
		"2.38":            {"2.38", nil, "2.52"},
		"no volume types": {"2.66", map[string]any{"server.volume_type": "lab", "server.volume_size": 10}, "2.67"},
	} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{MaxMicroversion: row.most}, func(t *testing.T, w *world) {
				err := w.startFails(t, row.change)
				if !strings.Contains(err.Error(), row.most) || !strings.Contains(err.Error(), row.need) {
					t.Errorf("error: %v, want both %s and %s in it", err, row.most, row.need)
				}
			})
		})
	}
}

// Listing the whole project is slow:
// https://github.com/openshift/installer/pull/3818
func TestReport30ListsItsOwnServersOnly(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		for i := range 200 {
			if _, err := w.AddServer(sim.ServerSpec{Name: fmt.Sprintf("theirs-%d", i), Tags: []string{"theirs"}}); err != nil {
				t.Fatal(err)
			}
		}
		group := w.start(t, nil)
		w.up(t, group, 3)
		<-time.After(time.Minute)
		before := len(w.Calls())
		if got := states(t, group); len(got) != 3 {
			t.Errorf("reported: %v", got)
		}
		made := w.Calls()[before:]
		if len(made) != 1 || !strings.Contains(made[0].URL, "tags=fleeting%3Arunner") {
			t.Errorf("calls of one update: %+v, want one listing by tag", made)
		}
	})
}

// A listing in pages, and a marker that is gone: Nova's max_limit is 1000 by
// default and less on some clouds. The list under https://docs.openstack.org/api-guide/compute/paginated_collections.html
func TestReport30ListsAllPages(t *testing.T) {
	report(t, sim.Options{MaxLimit: 7}, func(t *testing.T, w *world) {
		group := w.start(t, nil)
		increase(t, group, 21, 21)
		<-time.After(time.Minute)
		if got := count(states(t, group), provider.StateRunning); got != 21 {
			t.Errorf("running: got %d, want 21", got)
		}
		w.Inject(sim.Rule{
			Operation: sim.OpServerDetail, Times: 1, Fault: sim.Fault{DropMarker: true},
			When: func(r *http.Request) bool { return r.URL.Query().Get("marker") != "" },
		})
		reported := states(t, group)
		if running, gone := count(reported, provider.StateRunning), count(reported, provider.StateDeleted); running != 20 || gone != 1 {
			t.Errorf("with a marker that vanished: %d running and %d deleted, want 20 and 1", running, gone)
		}
	})
}

func TestReport33NoCloudNoStart(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		for part, change := range map[string]map[string]any{
			filepath.FromSlash("/nonexistent/clouds.yaml"):   {"clouds_config": "/nonexistent/clouds.yaml"},
			`no cloud "simulater"; it has: simulator, simul`: {"cloud": "simulater"},
		} {
			if err := w.startFails(t, change); !strings.Contains(err.Error(), part) {
				t.Errorf("error without %q: %v", part, err)
			}
		}
	})
}

// A missing clouds.yaml or image gave no clue:
// https://github.com/kubernetes-sigs/cluster-api-provider-openstack/issues/2264 and /issues/2265
func TestReport33MistakesNameTheThing(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change map[string]any
		want   []string
	}{
		"unknown image":     {map[string]any{"server.image": "Ubuntu 24.4"}, []string{"server.image", "Ubuntu 24.4", "Ubuntu 24.04"}},
		"unknown flavor":    {map[string]any{"server.flavor": "m1.smal"}, []string{"server.flavor", "m1.smal", "m1.small"}},
		"unknown network":   {map[string]any{"server.networks": []string{"privat"}}, []string{"server.networks", "privat", "private"}},
		"unknown group":     {map[string]any{"server.server_group": "runner"}, []string{"server.server_group", "runner", "runners"}},
		"unknown key pair":  {map[string]any{"server.key_name": "fleting"}, []string{"server.key_name", "fleting", "fleeting"}},
		"unknown rules":     {map[string]any{"server.security_groups": []string{"shh"}}, []string{"server.security_groups", "shh", "ssh"}},
		"unknown zone":      {map[string]any{"server.availability_zone": "az-x"}, []string{"server.availability_zone", "az-x", "az-a"}},
		"unknown type":      {map[string]any{"server.volume_type": "laab", "server.volume_size": 5}, []string{"server.volume_type", "laab", "lab"}},
		"several at a time": {map[string]any{"server.flavor": "nope", "server.image": "nope"}, []string{"server.flavor", "server.image"}},
	} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{}, func(t *testing.T, w *world) { w.createsNothing(t, row.change, row.want...) })
		})
	}
}

func TestReport33IncompleteCloudsFileIsNoPanic(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"empty":        "",
		"no clouds":    "clouds: {}\n",
		"no auth":      "clouds:\n  simulator:\n    region_name: RegionOne\n",
		"null auth":    "clouds:\n  simulator:\n    auth: null\n",
		"null cloud":   "clouds:\n  simulator: null\n",
		"no password":  "clouds:\n  simulator:\n    auth: {auth_url: 'http://cloud.example/identity/v3', username: fleeting, project_name: fleeting}\n",
		"no YAML":      "clouds: [\n",
		"other region": "region",
	} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{}, func(t *testing.T, w *world) {
				if content == "region" {
					old, err := os.ReadFile(w.clouds)
					if err != nil {
						t.Fatal(err)
					}
					content = strings.ReplaceAll(string(old), "RegionOne", "RegionNine")
				}
				w.write(t, content)
				err := w.startFails(t, nil)
				if strings.Contains(err.Error(), "internal error") || strings.Contains(err.Error(), sim.DefaultPassword) {
					t.Errorf("error: %v", err)
				}
			})
		})
	}
}

// What credentials may not list, or a cloud does not have, is left to Nova: a
// zone, and a type of volume, are only sent to it.
func TestZonesThatCannotBeListedStopNothing(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]sim.Fault{
		"forbidden":    {Status: http.StatusForbidden, Message: "Policy doesn't allow it"},
		"access rules": {Status: http.StatusUnauthorized},
		"no such path": {Status: http.StatusNotFound, Message: "The resource could not be found."},
		"no JSON":      {Status: http.StatusOK, Body: "<html>"},
	} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{}, func(t *testing.T, w *world) {
				for _, op := range []sim.Operation{sim.OpZones, sim.OpVolumeInfo} {
					w.Inject(sim.Rule{Operation: op, Fault: fault})
				}
				group := w.start(t, map[string]any{
					"server.availability_zone": "az-b", "server.volume_type": "lab", "server.volume_size": 5,
				})
				w.up(t, group, 1)
				for _, setting := range []string{"server.availability_zone", "server.volume_type"} {
					if got := w.log.lines("perhaps not meant", setting, "not looked at"); got != 1 {
						t.Errorf("lines about %s: %d, want 1:\n%s", setting, got, w.log.String())
					}
				}
			})
		})
	}
}

// Where it is neither needed nor asked for, nothing is listed.
func TestZonesAreListedOnlyForASetting(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		w.start(t, nil)
		if calls := w.Count(sim.OpZones) + w.Count(sim.OpVolumeInfo); calls != 0 {
			t.Errorf("calls: %d, want none", calls)
		}
	})
}
