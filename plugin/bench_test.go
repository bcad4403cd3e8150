package plugin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/pagination"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// latency of each call in the comparisons, that of a cloud across a country.
const latency = 300 * time.Millisecond

// oneByOne returns a loop that creates servers as a plugin does that waits for
// each. What it needs for it is looked up before, so it costs the loop nothing.
func (w *world) oneByOne(tb testing.TB, n int) func() {
	tb.Helper()
	token := w.token(tb)
	spec := fmt.Sprintf(`"flavorRef": %q, "imageRef": %q, "networks": [{"uuid": %q}], "tags": ["naive"]`,
		w.idOf(tb, token, "compute/v2.1/flavors", "flavors", "m1.small"), w.idOf(tb, token, "image/v2/images", "images", "Ubuntu 24.04"),
		w.idOf(tb, token, "network/v2.0/networks", "networks", "private"))
	return func() {
		for i := range n {
			body := fmt.Sprintf(`{"server": {"name": "naive-%d", %s}}`, i, spec)
			w.call(tb, http.MethodPost, "compute/v2.1/servers", token, body, http.StatusAccepted)
		}
	}
}

func (w *world) token(tb testing.TB) string {
	tb.Helper()
	body := fmt.Sprintf(`{"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": %q, "domain": {"id": "default"}, "password": %q}}},
		"scope": {"project": {"name": %q, "domain": {"id": "default"}}}}}`, sim.DefaultUser, sim.DefaultPassword, sim.DefaultProject)
	header, _ := w.call(tb, http.MethodPost, "identity/v3/auth/tokens", "", body, http.StatusCreated)
	return header.Get("X-Subject-Token")
}

// idOf finds an ID by name.
func (w *world) idOf(tb testing.TB, token, where, list, name string) string {
	tb.Helper()
	_, answer := w.call(tb, http.MethodGet, where, token, "", http.StatusOK)
	var lists map[string]json.RawMessage
	if err := json.Unmarshal(answer, &lists); err != nil {
		tb.Fatal(err)
	}
	var entries []struct{ ID, Name string }
	if err := json.Unmarshal(lists[list], &entries); err != nil {
		tb.Fatal(err)
	}
	for _, r := range entries {
		if r.Name == name {
			return r.ID
		}
	}
	tb.Fatalf("no %s in %s", name, where)
	return ""
}

func (w *world) call(tb testing.TB, method, where, token, body string, want int) (http.Header, []byte) {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), method, "http://cloud.example/"+where, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", token)
	request.Header.Set("X-Openstack-Nova-Api-Version", "2.52")
	answer, err := w.Transport().RoundTrip(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != want {
		tb.Fatalf("%s %s: %s %v", method, where, answer.Status, err)
	}
	return answer.Header, content
}

// accepted waits until n servers exist, as a runner would find out.
func (w *world) accepted(n int) {
	for w.Snapshot().ServersCreated < n {
		<-time.After(time.Millisecond)
	}
}

// TestScaleUpIsTenTimesFaster compares 50 servers with a loop that creates one
// at a time, with 300 ms per call, on a clock that jumps: the figures are exact.
// The plugin has its defaults, and looks the image up anew.
func TestScaleUpIsTenTimesFaster(t *testing.T) {
	t.Parallel()
	const servers = 50
	var naive, ours time.Duration
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		loop := w.oneByOne(t, servers)
		w.Inject(sim.Rule{Fault: sim.Delay(latency)})
		started := time.Now()
		loop()
		naive = time.Since(started)
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, nil)
		w.Inject(sim.Rule{Fault: sim.Delay(latency)})
		<-time.After(time.Minute) // the image has to be looked up again
		started := time.Now()
		increase(t, group, servers, servers)
		if took := time.Since(started); took != 0 {
			t.Errorf("increase took %v", took)
		}
		w.accepted(servers)
		ours = time.Since(started)
		if got := w.Count(sim.OpImageList); got < 2 {
			t.Errorf("lists of images: got %d, want one at the start and one for the scale-up", got)
		}
	})
	ratio := ours.Seconds() / naive.Seconds()
	measured(t, "50 servers at 300 ms a call", "time, of a loop that makes one at a time", "<= 0.1", ratio, ratio <= 0.1)
}

// TestCallBudget: one call for a steady Update, none for ConnectInfo.
func TestCallBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, nil)
		all := w.up(t, group, 20)
		before := len(w.Calls())
		for range 10 {
			states(t, group)
			for _, name := range all {
				if _, err := group.ConnectInfo(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
			<-time.After(time.Minute)
		}
		calls := float64(len(w.Calls()) - before)
		measured(t, "at rest, 20 servers", "calls a minute", "1", calls/10, calls == 10)
	})
}

// BenchmarkIncrease is the call alone, which must not hold up the runner.
func BenchmarkIncrease(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		w := newWorldTB(b, sim.Options{})
		group := w.startTB(b, w.Transport())
		b.StartTimer()
		if n, err := group.Increase(b.Context(), 50); n != 50 || err != nil {
			b.Fatal(n, err)
		}
	}
}

// canned answers listings with fixed bytes, so that only the plugin's own work
// is measured.
type canned struct {
	http.RoundTripper
	listing []byte
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.listing == nil || path.Base(r.URL.Path) != "detail" || !strings.Contains(r.URL.Path, "servers") {
		return c.RoundTripper.RoundTrip(r)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(c.listing)), ContentLength: int64(len(c.listing)), Request: r,
	}, nil
}

// thousand fills a cloud with servers of the group and returns their listing.
func (w *world) thousand(tb testing.TB) []byte {
	tb.Helper()
	for i := range 1000 {
		_, err := w.AddServer(sim.ServerSpec{
			Name: fmt.Sprintf("%s-%08d", groupName, i), Flavor: "m1.small", Tags: []string{groupTag},
			Metadata: map[string]string{"fleeting:group": groupTag},
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	_, listing := w.call(tb, http.MethodGet, "compute/v2.1/servers/detail?tags="+groupTag, w.token(tb), "", http.StatusOK)
	return listing
}

// BenchmarkUpdate is a whole Update over 1,000 servers, against the library's
// reading of the same bytes alone.
func BenchmarkUpdate(b *testing.B) {
	w := newWorldTB(b, sim.Options{})
	listing := w.thousand(b)
	b.Run("ours", func(b *testing.B) {
		group := w.startTB(b, canned{w.Transport(), listing})
		b.SetBytes(int64(len(listing)))
		b.ReportAllocs()
		for b.Loop() {
			updateThousand(b, group)
		}
	})
	b.Run("ExtractServers", func(b *testing.B) {
		b.SetBytes(int64(len(listing)))
		b.ReportAllocs()
		for b.Loop() {
			extractServers(b, listing)
		}
	})
}

func updateThousand(tb testing.TB, group provider.InstanceGroup) {
	tb.Helper()
	n := 0
	err := group.Update(tb.Context(), func(string, provider.State) { n++ })
	if err != nil || n != 1000 {
		tb.Fatalf("%d servers, %v", n, err)
	}
}

func extractServers(tb testing.TB, listing []byte) {
	tb.Helper()
	var body any
	decoder := json.NewDecoder(bytes.NewReader(listing))
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil {
		tb.Fatal(err)
	}
	page := servers.ServerPage{LinkedPageBase: pagination.LinkedPageBase{PageResult: pagination.PageResult{
		Result: gophercloud.Result{Body: body, Header: http.Header{}},
	}}}
	if all, err := servers.ExtractServers(page); err != nil || len(all) != 1000 {
		tb.Fatalf("%d servers, %v", len(all), err)
	}
}

// TestStartWithAThousandServers, until the first Update has reported them all.
func TestStartWithAThousandServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		w.thousand(t)
		w.Inject(sim.Rule{Fault: sim.Delay(latency)})
		started := time.Now()
		group := w.start(t, map[string]any{"server.key_name": "fleeting", "server.security_groups": []string{"ssh"}, "server.server_group": "runners"})
		updateThousand(t, group)
		took := time.Since(started)
		t.Logf("started with 1,000 servers in %v", took)
		if took >= 2*time.Second {
			t.Errorf("took %v, not less than 2 s", took)
		}
	})
}

// startTB starts a plugin for a benchmark.
func (w *world) startTB(tb testing.TB, transport http.RoundTripper) *plugin.InstanceGroup {
	tb.Helper()
	raw, err := json.Marshal(w.config(nil))
	if err != nil {
		tb.Fatal(err)
	}
	group := plugin.New(plugin.WithTransport(transport))
	if err := json.Unmarshal(raw, group); err != nil {
		tb.Fatal(err)
	}
	if _, err := group.Init(tb.Context(), w.log.logger(), settings()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := group.Shutdown(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return group
}
