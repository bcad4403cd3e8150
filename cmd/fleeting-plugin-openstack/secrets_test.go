package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/hashicorp/go-hclog"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// What a runner's files keep secret.
const (
	secretPassword  = "pa55 w0rd/of+the:user"
	secretToken     = "sim-" // how the simulator's tokens begin
	secretConnector = "connector-passw0rd"
	secretUserData  = "#cloud-config\nusers:\n- name: runner\n  plain_text_passwd: in-the-user-data\n"
	secretMetadata  = "private-note-of-the-team"
)

// parrot is a cloud that repeats everything that it knows in the answers to one
// kind of call, in a form that services or proxies have.
type parrot struct {
	cloud *sim.Simulator
	met   func(*http.Request) bool
	form  func(everything string) *http.Response
	first int // of what it repeats

	mu     sync.Mutex
	tokens []string
}

// RoundTrip implements http.RoundTripper.
func (p *parrot) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.tokens = append(p.tokens, r.Header.Get("X-Auth-Token"))
	p.mu.Unlock()
	if !p.met(r) {
		return p.cloud.Transport().RoundTrip(r)
	}
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
	}
	everything := []string{
		fmt.Sprint(r.Method, " ", r.URL), "\x1b[2J\u202e\u009b31m", fmt.Sprint(r.Header), string(sent), secretUserData, fmt.Sprintf("%q", secretUserData),
		base64.StdEncoding.EncodeToString([]byte(secretUserData)), secretPassword, url.QueryEscape(secretPassword), secretMetadata, r.Header.Get("X-Auth-Token"),
	}
	// A message is cut at the first secret, so that each has to come first somewhere.
	first := p.first % len(everything)
	answer := p.form(strings.Join(append(everything[first:], everything[:first]...), " "))
	answer.Request = r
	return answer, nil
}

// forms are those in which a request comes back, by name.
func forms() map[string]func(string) *http.Response {
	respond := func(status int, kind, body string) *http.Response {
		return &http.Response{
			StatusCode: status, Status: fmt.Sprint(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)),
		}
	}
	service := func(status int, wrapper, before string) func(string) *http.Response {
		return func(everything string) *http.Response {
			body, err := json.Marshal(map[string]any{wrapper: map[string]any{"code": status, "message": before + everything}})
			if err != nil {
				return respond(status, "text/plain", err.Error())
			}
			return respond(status, "application/json", string(body))
		}
	}
	page := func(status int) func(string) *http.Response {
		return func(everything string) *http.Response {
			return respond(status, "text/html", "<html><pre>"+everything+"</pre></html>")
		}
	}
	return map[string]func(string) *http.Response{
		"Nova's check":  service(400, "badRequest", "Invalid input for field/attribute server. Value: "),
		"Nova, 403":     service(403, "forbidden", "Policy doesn't allow "),
		"Nova, 409":     service(409, "conflictingRequest", "Cannot "),
		"Nova, 413":     service(413, "overLimit", "Too long: "),
		"Nova, 500":     service(500, "computeFault", "Unexpected API Error: "),
		"Keystone's":    service(400, "error", "Invalid input for field 'identity/password': "),
		"Keystone, 401": service(401, "error", "Who is "),
		"Neutron's":     service(400, "NeutronError", "Unrecognized attribute(s) "),
		"Glance's":      func(everything string) *http.Response { return service(400, "message", "")(everything) },
		"a proxy's 200": page(200),
		"a proxy's 404": page(404),
		"a proxy's 503": page(503),
		"a quota's":     service(403, "forbidden", "Quota exceeded for "),
		"a list of faults": func(everything string) *http.Response {
			body, err := json.Marshal(map[string]any{"servers": []any{map[string]any{
				"id": "00000000-0000-4000-8000-000000000000", "name": "runner-abcdefgh", "status": "ERROR", "tags": []string{"fleeting:runner"},
				"metadata": map[string]string{"fleeting:group": "fleeting:runner"}, "fault": map[string]any{"message": "Build failed: " + everything},
			}}})
			if err != nil {
				return respond(500, "text/plain", err.Error())
			}
			return respond(200, "application/json", string(body))
		},
	}
}

// callsMade are the calls of the plugin and its commands, by a part of their path.
func callsMade() map[string]string {
	return map[string]string{
		"login": "/auth/tokens", "version": "/compute/v2.1/", "flavors": "/flavors/detail", "images": "/v2/images", "networks": "/v2.0/networks",
		"security groups": "/security-groups", "server groups": "/os-server-groups", "key pairs": "/os-keypairs", "zones": "/os-availability-zone",
		"volume types": "/types", "limits": "/limits", "servers": "/servers/detail", "creation": "POST /servers", "deletion": "DELETE /servers/", "server": "GET /servers/0",
	}
}

func meets(part string) func(*http.Request) bool {
	method, path, withMethod := strings.Cut(part, " ")
	if !withMethod {
		method, path = "", part
	}
	return func(r *http.Request) bool {
		switch {
		case method != "" && method != r.Method:
			return false
		case strings.HasSuffix(part, "/v2.1/"):
			return strings.HasSuffix(r.URL.Path, part)
		case path == "/servers":
			return strings.HasSuffix(r.URL.Path, path)
		}
		return strings.Contains(r.URL.Path, path)
	}
}

// answersIn reports whether the service that takes a call answers in a form, or
// something in front of it does.
func answersIn(form, part string) bool {
	service := "Nova"
	switch {
	case part == "/auth/tokens":
		service = "Keystone"
	case strings.HasPrefix(part, "/v2.0/"), part == "/security-groups":
		service = "Neutron"
	case strings.HasPrefix(part, "/v2/"):
		service = "Glance"
	}
	return strings.HasPrefix(form, service) || strings.HasPrefix(form, "a ")
}

// TestNoSecretIsPrinted lets every call fail in every form in which a service or a
// proxy repeats a request, and searches all that the plugin logs and its commands
// print for everything that the configuration keeps secret, and for what would
// change a terminal.
func TestNoSecretIsPrinted(t *testing.T) {
	t.Parallel()
	turn := 0
	for what, part := range callsMade() {
		for form, respond := range forms() {
			if !answersIn(form, part) {
				continue
			}
			turn++
			first := turn
			t.Run(what+"/"+form, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					d := newSecretDesk(t)
					p := &parrot{cloud: d.cloud, met: meets(part), form: respond, first: first}
					for _, args := range []string{
						"check", "check --output json", "plan --output json", "list", "list --output json", "cleanup", "cleanup --yes --output json",
					} {
						d.assertQuiet(t, args, d.print(t, p, strings.Fields(args)...), p)
					}
					d.assertQuiet(t, "the plugin", d.serve(t, p), p)
				})
			})
		}
	}
}

func newSecretDesk(t *testing.T) desk {
	t.Helper()
	d := newDesk(t, goodServer+fmt.Sprintf(`key_name = "fleeting"
security_groups = ["ssh"]
server_group = "runners"
availability_zone = "az-a"
volume_size = 20
volume_type = "lab"
user_data = %q
metadata = {note = %q}
`, secretUserData, secretMetadata))
	if err := d.cloud.SetPassword(sim.DefaultUser, secretPassword); err != nil {
		t.Fatal(err)
	}
	clouds := filepath.Join(filepath.Dir(d.config), "clouds.yaml")
	for file, change := range map[string]*strings.Replacer{
		clouds:   strings.NewReplacer("password: "+sim.DefaultPassword+"\n", fmt.Sprintf("password: %q\n", secretPassword)),
		d.config: strings.NewReplacer(`password = "secret"`, fmt.Sprintf("password = %q", secretConnector), sim.CloudTiny, sim.CloudPassword),
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		changed := change.Replace(string(content))
		if changed == string(content) {
			t.Fatalf("%s has nothing to replace", file)
		}
		if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := d.cloud.AddServer(sim.ServerSpec{
		Name: "runner-abcdefgh", Tags: []string{"fleeting:runner"}, Metadata: map[string]string{"fleeting:group": "fleeting:runner"},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.cloud.AddServer(sim.ServerSpec{Name: "theirs\x1b[2J\u202e\n\u009b", Tags: []string{"fleeting:runner"}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// print runs a command and returns all of its output.
func (d desk) print(t *testing.T, p *parrot, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	runForPeople(t.Context(), append(args, "--config", d.config), &out, &errs, plugin.WithTransport(p))
	return out.String() + errs.String()
}

// serve runs the plugin as a runner does, and returns its log and its errors.
func (d desk) serve(t *testing.T, p *parrot) string {
	t.Helper()
	read, err := readConfig(d.config, "openstack")
	if err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	group := plugin.New(plugin.WithTransport(p))
	if err := json.Unmarshal(read.raw, group); err != nil {
		t.Fatal(err)
	}
	logger := hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace, JSONFormat: true})
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(&log, err)
		}
	}
	_, err = group.Init(t.Context(), logger, provider.Settings{ConnectorConfig: provider.ConnectorConfig{Username: "runner", Password: secretConnector, UseStaticCredentials: true}})
	fail(err)
	for range 5 {
		_, err := group.Increase(t.Context(), 1)
		fail(err)
		var known []string
		fail(group.Update(t.Context(), func(name string, _ provider.State) { known = append(known, name) }))
		for _, name := range known {
			_, err := group.ConnectInfo(t.Context(), name)
			fail(err)
			fail(group.Heartbeat(t.Context(), name))
		}
		_, err = group.Decrease(t.Context(), known[:min(1, len(known))])
		fail(err)
		<-time.After(time.Minute)
	}
	fail(group.Shutdown(t.Context()))
	return log.String()
}

func (d desk) assertQuiet(t *testing.T, what, printed string, p *parrot) {
	t.Helper()
	p.mu.Lock()
	tokens := p.tokens
	p.mu.Unlock()
	forbidden := append([]string{
		secretPassword, secretPassword[5:], url.QueryEscape(secretPassword), secretConnector, "cloud-config", "plain_text_passwd", "in-the-user-data",
		base64.StdEncoding.EncodeToString([]byte(secretUserData))[:20],
	}, tokens...)
	if !strings.HasPrefix(what, "plan") {
		forbidden = append(forbidden, secretMetadata) // plan shows what it would ask for
	}
	for _, secret := range forbidden {
		if secret != "" && strings.Contains(printed, secret) {
			t.Errorf("%s shows %q:\n%s", what, secret, printed)
		}
	}
	if strings.Contains(printed, secretToken) {
		t.Errorf("%s shows a token:\n%s", what, printed)
	}
	for _, r := range strings.ReplaceAll(printed, "\n", "") {
		if !unicode.IsPrint(r) {
			t.Errorf("%s prints %U:\n%q", what, r, printed)
			break
		}
	}
}

// lockedBuffer is a buffer that several may write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
