package plugin_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// The tests named TestReport… are what people who run such things met. Each
// names the report; the numbers are those of the list that they come from.
// Reports about what the plugin does not do (it makes no floating IPs, no
// ports, no key pairs) are held by tests that it makes no such call.

// report runs a test on a cloud of its own, on a clock that jumps.
func report(t *testing.T, options sim.Options, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	// The same run each time.
	options.RandomSeed = cmp.Or(options.RandomSeed, 1)
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t, options)) })
}

// retired deletes all instances and waits until they are gone.
func (w *world) retired(t *testing.T, group provider.InstanceGroup) {
	t.Helper()
	all := names(states(t, group))
	if got, err := group.Decrease(t.Context(), all); len(got) != len(all) || err != nil {
		t.Fatalf("decrease: got %v, %v, want %v", got, err, all)
	}
	<-time.After(time.Minute)
	states(t, group)
	<-time.After(time.Minute)
	if left := w.Snapshot().Tagged(groupTag); len(left) != 0 {
		t.Errorf("servers left: %+v", left)
	}
}

// person is somebody else who uses the cloud's API.
type person struct {
	t     *testing.T
	http  *http.Client
	token string
}

func (w *world) person(t *testing.T) *person {
	t.Helper()
	p := &person{t: t, http: &http.Client{Transport: w.Transport()}}
	domain := map[string]any{"name": "Default"}
	_, header := p.call(http.MethodPost, "/identity/v3/auth/tokens", map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{"user": map[string]any{
			"name": sim.DefaultUser, "password": sim.DefaultPassword, "domain": domain,
		}}},
		"scope": map[string]any{"project": map[string]any{"name": sim.DefaultProject, "domain": domain}},
	}})
	p.token = header.Get("X-Subject-Token")
	return p
}

// call makes a call that must succeed.
func (p *person) call(method, path string, body any) (map[string]any, http.Header) {
	p.t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(p.t.Context(), method, "http://cloud.example"+path, bytes.NewReader(encoded))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", p.token)
	response, err := p.http.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		p.t.Fatalf("%s %s: %s, %v: %s", method, path, response.Status, err, content)
	}
	decoded := map[string]any{}
	if len(content) > 0 {
		if err := json.Unmarshal(content, &decoded); err != nil {
			p.t.Fatal(err)
		}
	}
	return decoded, response.Header
}

// text follows keys into an answer, the first element of each list.
func text(value any, keys ...string) string {
	for _, key := range keys {
		if list, isList := value.([]any); isList && len(list) > 0 {
			value = list[0]
		}
		object, isObject := value.(map[string]any)
		if !isObject {
			return ""
		}
		value = object[key]
	}
	found, _ := value.(string)
	return found
}

// callsOf gives the calls of an operation so far.
func (w *world) callsOf(op sim.Operation) []sim.Call {
	return slices.DeleteFunc(w.Calls(), func(c sim.Call) bool { return c.Operation != op })
}

// statuses counts the answers of all calls so far.
func (w *world) statuses(status int) int {
	n := 0
	for _, c := range w.Calls() {
		if c.Status == status {
			n++
		}
	}
	return n
}

// gauge counts how many calls of a kind are under way at one time.
type gauge struct {
	next http.RoundTripper
	want func(*http.Request) bool

	mu        sync.Mutex
	now, most int
}

func (g *gauge) RoundTrip(r *http.Request) (*http.Response, error) {
	if !g.want(r) {
		return g.next.RoundTrip(r)
	}
	g.mu.Lock()
	g.now++
	g.most = max(g.most, g.now)
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.now--
		g.mu.Unlock()
	}()
	return g.next.RoundTrip(r)
}

func isCreate(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/servers")
}

// write replaces the clouds.yaml.
func (w *world) write(t *testing.T, content string) {
	t.Helper()
	if err := os.WriteFile(w.clouds, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rotated replaces the application credential in a clouds.yaml.
func rotated(content, id, secret string) string {
	var lines []string
	for line := range strings.Lines(content) {
		key, _, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "application_credential_id":
			line = key + ": " + id + "\n"
		case "application_credential_secret":
			line = key + ": " + secret + "\n"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

// startThrough starts a plugin that reaches the cloud through a transport.
func (w *world) startThrough(t *testing.T, transport http.RoundTripper, change map[string]any) *plugin.InstanceGroup {
	t.Helper()
	raw, err := json.Marshal(w.config(change))
	if err != nil {
		t.Fatal(err)
	}
	group := plugin.New(plugin.WithTransport(transport))
	if err := json.Unmarshal(raw, group); err != nil {
		t.Fatal(err)
	}
	return w.init(t, group)
}
