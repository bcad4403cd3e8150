package plugin_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

func TestServersAreMadeAsConfigured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, map[string]any{
			"tag": "ci", "address_network": "private",
			"server.networks": []string{"private", "second"}, "server.security_groups": []string{"ssh"},
			"server.key_name": "fleeting", "server.user_data": "#cloud-config\n", "server.config_drive": true,
			"server.tags": []string{"extra"}, "server.metadata": map[string]string{"team": "a"},
			"server.availability_zone": "az-b", "server.server_group": "runners",
		})
		name := w.up(t, group, 1)[0]
		server, _ := w.Snapshot().Server(name)
		got := []any{
			server.Flavor, server.KeyName, server.Zone, server.ConfigDrive, server.Tags, server.Metadata,
			server.UserData, len(server.Addresses), server.Group != "",
		}
		want := []any{
			"m1.small", "fleeting", "az-b", true,
			[]string{"ci", "extra"},
			map[string]string{"team": "a", "fleeting:group": "ci", "fleeting:process": server.Metadata["fleeting:process"]},
			base64.StdEncoding.EncodeToString([]byte("#cloud-config\n")), 2, true,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("server (-want +got):\n%s", diff)
		}
	})
}

// TestBootFromVolume is report 10: the volume goes with its server.
func TestBootFromVolume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, map[string]any{
			"server.flavor": "m1.nodisk", "server.volume_size": 7, "server.volume_type": "lab",
			"server.image": "Windows Server 2022",
		})
		name := w.up(t, group, 1)[0]
		volumes := w.Snapshot().Volumes
		if len(volumes) != 1 || volumes[0].Size != 7 || volumes[0].Type != "lab" {
			t.Fatalf("volumes: %+v", volumes)
		}
		info, err := group.ConnectInfo(t.Context(), name)
		if err != nil || info.OS != "windows" || info.Protocol != provider.ProtocolWinRM || info.ProtocolPort != 5985 {
			t.Errorf("a server booted from a volume has the platform of server.image: got %s %s %d, %v", info.OS, info.Protocol, info.ProtocolPort, err)
		}
		if _, err := group.Decrease(t.Context(), []string{name}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		states(t, group)
		if left := w.Snapshot(); len(left.Volumes)+len(left.Servers)+len(left.Ports) != 0 {
			t.Errorf("left: %+v", left)
		}
	})
}

func TestConnectInfo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name      string
		change    map[string]any
		connector provider.ConnectorConfig
		want      provider.ConnectorConfig
		prefix    string
	}{
		{
			name: "linux", prefix: "127.10.",
			want: provider.ConnectorConfig{OS: "linux", Arch: "amd64", Protocol: provider.ProtocolSSH, ProtocolPort: 22},
		},
		{
			name: "arm64", prefix: "127.10.", change: map[string]any{"server.image": "Ubuntu 24.04 arm64"},
			want: provider.ConnectorConfig{OS: "linux", Arch: "arm64", Protocol: provider.ProtocolSSH, ProtocolPort: 22},
		},
		{
			name: "windows", prefix: "127.10.", change: map[string]any{"server.image": "Windows Server 2022"},
			want: provider.ConnectorConfig{OS: "windows", Arch: "amd64", Protocol: provider.ProtocolWinRM, ProtocolPort: 5985},
		},
		{
			name: "windows over https", prefix: "127.10.", change: map[string]any{"server.image": "Windows Server 2022"},
			connector: provider.ConnectorConfig{Protocol: provider.ProtocolWinRMHttps},
			want:      provider.ConnectorConfig{OS: "windows", Arch: "amd64", Protocol: provider.ProtocolWinRMHttps, ProtocolPort: 5986},
		},
		{
			name: "what connector_config says wins", prefix: "127.10.", change: map[string]any{"server.image": "Windows Server 2022"},
			connector: provider.ConnectorConfig{OS: "linux", Arch: "arm64", Protocol: provider.ProtocolSSH, ProtocolPort: 2222},
			want:      provider.ConnectorConfig{OS: "linux", Arch: "arm64", Protocol: provider.ProtocolSSH, ProtocolPort: 2222},
		},
		{
			name: "ipv6", prefix: "fd00:10:", change: map[string]any{"address_family": "ipv6"},
			want: provider.ConnectorConfig{OS: "linux", Arch: "amd64", Protocol: provider.ProtocolSSH, ProtocolPort: 22},
		},
		{
			name: "the other network", prefix: "127.20.",
			change: map[string]any{"server.networks": []string{"private", "second"}, "address_network": "second"},
			want:   provider.ConnectorConfig{OS: "linux", Arch: "amd64", Protocol: provider.ProtocolSSH, ProtocolPort: 22},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				group := w.newGroup(t, row.change)
				row.connector.Username, row.connector.UseStaticCredentials = "u", true
				if _, err := group.Init(t.Context(), w.log.logger(), provider.Settings{ConnectorConfig: row.connector}); err != nil {
					t.Fatal(err)
				}
				defer w.shutdown(t, group)
				name := w.up(t, group, 1)[0]
				info, err := group.ConnectInfo(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				row.want.Username, row.want.UseStaticCredentials = "u", true
				if diff := cmp.Diff(row.want, info.ConnectorConfig); diff != "" {
					t.Errorf("connector (-want +got):\n%s", diff)
				}
				if !strings.HasPrefix(info.InternalAddr, row.prefix) || info.ExternalAddr != info.InternalAddr {
					t.Errorf("addresses: %s and %s, want %s…", info.InternalAddr, info.ExternalAddr, row.prefix)
				}
			})
		})
	}
}

func TestConnectInfoNeedsARunningServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{BuildTime: time.Minute})
		group := w.start(t, nil)
		increase(t, group, 1, 1)
		<-time.After(time.Second)
		for _, id := range append(names(states(t, group)), "runner-unknown1") {
			if info, err := group.ConnectInfo(t.Context(), id); err == nil {
				t.Errorf("%s: got %+v, want an error", id, info)
			}
		}
	})
}

// TestHeartbeat is report 22: a server that is gone or not running fails its
// heartbeat at once, and a call that fails does not.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, nil)
		all := w.up(t, group, 3)
		<-time.After(time.Minute)
		calls := len(w.Calls())
		for range 10 {
			if err := group.Heartbeat(t.Context(), all[0]); err != nil {
				t.Errorf("healthy server: %v", err)
			}
		}
		if got := len(w.Calls()) - calls; got != 1 {
			t.Errorf("calls for ten heartbeats at once: got %d, want 1", got)
		}
		if err := w.Destroy(all[1]); err != nil {
			t.Fatal(err)
		}
		if err := w.PowerOff(all[2]); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{all[1], all[2], "runner-unknown1"} {
			if err := group.Heartbeat(t.Context(), id); !errors.Is(err, provider.ErrInstanceUnhealthy) {
				t.Errorf("%s: got %v, want unhealthy", id, err)
			}
		}
		<-time.After(time.Minute)
		w.Inject(sim.Rule{Fault: sim.Refuse(http.StatusInternalServerError, "")})
		if err := group.Heartbeat(t.Context(), all[0]); err != nil {
			t.Errorf("heartbeat while the API fails: %v", err)
		}
	})
}

// TestGoneIsReportedAtOnce is report 22, too: the first listing after a server
// was deleted by hand tells, not the sixth.
func TestGoneIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, nil)
		name := w.up(t, group, 1)[0]
		if err := w.Destroy(name); err != nil {
			t.Fatal(err)
		}
		if got := states(t, group)[name]; got != provider.StateDeleted {
			t.Errorf("state: got %q, want deleted", got)
		}
		if got := states(t, group); len(got) != 0 {
			t.Errorf("reported again: %v", got)
		}
	})
}

// TestUserDataLimits is report 24. Nova's limit of 65,535 characters of base64
// is 49,149 bytes.
func TestUserDataLimits(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 60000) // does not compress
	generator := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(generator.IntN(256))
	}
	for _, row := range []struct {
		name    string
		data    []byte
		refused string
		gzipped bool
	}{
		{name: "at the limit", data: noise[:49149]},
		{name: "above, and it does not compress", data: append([]byte("#"), noise[:49149]...), refused: "49149"},
		{name: "above, and it compresses", data: bytes.Repeat([]byte("#cloud-config\n"), 5000), gzipped: true},
		{name: "Ignition is never compressed", data: []byte(`{"ignition": {"version": "3.4.0"}, "x": "` + strings.Repeat("a", 60000) + `"}`), refused: "may not be compressed"},
		{name: "gzip is not compressed twice", data: append([]byte{0x1f, 0x8b}, bytes.Repeat([]byte("a"), 60000)...), refused: "may not be compressed"},
		{name: "what happens to be base64 is encoded nevertheless", data: []byte("I2Nsb3VkLWNvbmZpZwo=")},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "user-data")
			if err := os.WriteFile(path, row.data, 0o600); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				if row.refused != "" {
					err := w.initError(t, map[string]any{"server.user_data_file": path})
					if err == nil || !strings.Contains(err.Error(), "server.user_data_file") || !strings.Contains(err.Error(), row.refused) {
						t.Errorf("got %v, want a refusal with %s", err, row.refused)
					}
					return
				}
				group := w.start(t, map[string]any{"server.user_data_file": path})
				name := w.up(t, group, 1)[0]
				server, _ := w.Snapshot().Server(name)
				sent, err := base64.StdEncoding.DecodeString(server.UserData)
				if err != nil {
					t.Fatal(err)
				}
				if bytes.HasPrefix(sent, []byte{0x1f, 0x8b}) != row.gzipped || !row.gzipped && !bytes.Equal(sent, row.data) {
					t.Errorf("sent %d bytes, gzipped %v", len(sent), bytes.HasPrefix(sent, []byte{0x1f, 0x8b}))
				}
			})
		})
	}
}

// TestBuildTimeout is report 9: a server that does not come up is deleted once
// and frees its slot.
func TestBuildTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		w.SetFates(func(int, sim.ServerInfo) sim.Fate { return sim.Fate{StuckBuilding: true} })
		group := w.start(t, map[string]any{"build_timeout": "5m"})
		increase(t, group, 1, 1)
		for range 400 {
			states(t, group)
			<-time.After(time.Second)
		}
		if got := states(t, group); len(got) != 0 || len(w.Snapshot().Servers) != 0 || w.Count(sim.OpServerDelete) != 1 {
			t.Errorf("reported %v, %d servers, %d deletions; want none, none and one", got, len(w.Snapshot().Servers), w.Count(sim.OpServerDelete))
		}
		if w.log.lines("deleting a server that is not usable", "not up 5m0s after its creation") != 1 {
			t.Errorf("the log does not say why, once:\n%s", w.log)
		}
	})
}

// TestLimitIsExplainedOnce is reports 11, 21 and 28: Nova's own text, with the
// numbers and the request, once per trial, and few calls meanwhile.
func TestLimitIsExplainedOnce(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		config map[string]any
		says   []string
		lines  int // a quota is tried again after 1 and 2 minutes, a full cloud after 3, 6, 12, … s
	}{
		{"quota", map[string]any{"cloud": sim.CloudTiny}, []string{"Quota exceeded for instances", "2 of 2 instances", "HTTP 403", "req-"}, 3},
		{"no host", map[string]any{"server.flavor": "m1.toobig"}, []string{"No valid host was found", "no capacity", "req-"}, 8},
		{
			"volume quota",
			map[string]any{"cloud": sim.CloudTiny, "server.volume_size": 50, "server.flavor": "m1.nodisk"},
			[]string{"VolumeSizeExceedsAvailableQuota", "quota exceeded", "req-"},
			3,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				group := w.newGroup(t, row.config)
				s := w.scale(t, group, 5, 5)
				<-time.After(3 * time.Minute)
				if got := w.log.lines("scale-up limited"); got < 2 || got > row.lines {
					t.Errorf("lines in 3 minutes: got %d, want 2 to %d", got, row.lines)
				}
				if w.log.lines(append([]string{"scale-up limited"}, row.says...)...) == 0 {
					t.Errorf("the log does not say %q:\n%s", row.says, w.log)
				}
				if got := w.Count(sim.OpServerCreate); got > 13 {
					t.Errorf("creations in 3 minutes: %d", got)
				}
				s.stop(t)
			})
		})
	}
}

// TestRestartAtEveryStep ends the plugin at each moment of a scale-up, or
// kills it there, and starts another: nothing is lost, doubled or left.
func TestRestartAtEveryStep(t *testing.T) {
	t.Parallel()
	const wanted = 4
	for _, graceful := range []bool{true, false} {
		for step := range 16 {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{BuildTime: 3 * time.Second})
				w.Inject(sim.Rule{Operation: "compute:server*", Fault: sim.Delay(time.Second)})
				transport := &killable{RoundTripper: w.Transport()}
				first := w.startWith(t, transport)
				increase(t, first, wanted, wanted)
				for range step {
					states(t, first)
					<-time.After(500 * time.Millisecond)
				}
				transport.dead.Store(!graceful)
				w.shutdown(t, first)

				s := w.scale(t, w.newGroup(t, nil), wanted, wanted)
				<-time.After(5 * time.Minute)
				s.most = 0 // what the first one had begun is taken over, however late it shows
				s.assertExact(t, wanted)
				s.stop(t)
			})
		}
	}
}
