package plugin_test

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// imageOf gives the image of the next server.
func (w *world) imageOf(t *testing.T, change map[string]any) string {
	t.Helper()
	group := w.start(t, change)
	name := w.up(t, group, 1)[0]
	server, found := w.Snapshot().Server(name)
	if !found {
		t.Fatal("no server")
	}
	return server.Image
}

// Two images of one name: https://github.com/openshift/installer/issues/1921
func TestReport19NewestActiveImageWins(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		const name = "twins"
		w.AddImage(sim.Image{Name: name, Age: time.Hour})
		want := w.AddImage(sim.Image{Name: name, Age: 30 * time.Minute})
		for i, newer := range []sim.Image{
			{Status: "queued"},
			{Status: "saving"},
			{Status: "deactivated"},
			{Hidden: true},
			{Visibility: "community"},
			{Visibility: "shared"},
			{Visibility: "private"},
		} {
			newer.Name, newer.Age = name, time.Duration(i+1)*time.Minute
			w.AddImage(newer)
		}
		if got := w.imageOf(t, map[string]any{"server.image": name}); got != want {
			t.Errorf("image: got %s, want the newest active one, %s", got, want)
		}
	})
}

func TestReport19SharedImageCountsOnceAccepted(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		w.AddImage(sim.Image{Name: "twins", Age: time.Hour})
		want := w.AddImage(sim.Image{Name: "twins", Age: time.Minute, Visibility: "shared", AcceptedBy: []string{sim.DefaultProject}})
		if got := w.imageOf(t, map[string]any{"server.image": "twins"}); got != want {
			t.Errorf("image: got %s, want %s", got, want)
		}
	})
}

func TestReport19PublishingAnImageRollsItOut(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		pinned := w.AddImage(sim.Image{Name: "rolling", Age: time.Hour})
		group := w.start(t, map[string]any{"server.image": "rolling"})
		w.up(t, group, 1)
		want := w.AddImage(sim.Image{Name: "rolling"})
		<-time.After(time.Minute)
		increase(t, group, 1, 1)
		<-time.After(10 * time.Second)
		states(t, group)
		servers := w.Snapshot().Servers
		if len(servers) != 2 || servers[0].Image != pinned || servers[1].Image != want {
			t.Errorf("images of the servers: %+v, want %s, then %s", servers, pinned, want)
		}
	})
}

func TestReport19AnIDPins(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		pinned := w.AddImage(sim.Image{Name: "twins", Age: time.Hour})
		w.AddImage(sim.Image{Name: "twins"})
		if got := w.imageOf(t, map[string]any{"server.image": pinned}); got != pinned {
			t.Errorf("image: got %s, want %s", got, pinned)
		}
	})
}

// User data above Nova's limit, and what was compressed twice:
// https://github.com/rancher/cluster-api-provider-rke2/issues/639 and
// https://github.com/canonical/cloud-init/issues/3712
func TestReport24UserDataAtTheLimit(t *testing.T) {
	t.Parallel()
	// 65,535 characters of base64 hold 49,149 bytes.
	const limit = 49149
	for name, row := range map[string]struct {
		start  string
		length int
		packed bool
	}{
		"at the limit":    {"#cloud-config\n", limit, false},
		"above the limit": {"#cloud-config\n", limit + 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{}, func(t *testing.T, w *world) {
				data := row.start + strings.Repeat("#", row.length-len(row.start))
				group := w.start(t, map[string]any{"server.user_data": data})
				instance := w.up(t, group, 1)[0]
				server, found := w.Snapshot().Server(instance)
				decoded, err := base64.StdEncoding.DecodeString(server.UserData)
				if !found || err != nil {
					t.Fatalf("user data: %v", err)
				}
				if packed := bytes.HasPrefix(decoded, []byte{0x1f, 0x8b}); packed != row.packed || !packed && string(decoded) != data {
					t.Errorf("compressed: %v, want %v; %d bytes", packed, row.packed, len(decoded))
				}
			})
		})
	}
}

func TestReport24TooMuchUserDataIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"Ignition":           `{"ignition":{"version":"3.4.0"},"storage":"` + strings.Repeat("#", 50000) + `"}`,
		"compressed already": "\x1f\x8b" + strings.Repeat("#", 50000),
	} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{}, func(t *testing.T, w *world) {
				file := filepath.Join(t.TempDir(), "user-data")
				if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := w.startFails(t, map[string]any{"server.user_data_file": file}); !strings.Contains(err.Error(), "server.user_data_file") {
					t.Errorf("error: %v", err)
				}
			})
		})
	}
}
