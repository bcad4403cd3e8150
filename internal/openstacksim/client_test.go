package openstacksim_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// client talks to a simulator as a user of the default project.
type client struct {
	t     *testing.T
	http  *http.Client
	url   string
	token string
	micro string
}

// newClient reaches a simulator without a socket.
func newClient(t *testing.T, sim *openstacksim.Simulator) *client {
	t.Helper()
	c := &client{t: t, http: &http.Client{Transport: sim.Transport()}, url: "http://simulator", micro: "2.93"}
	c.login(openstacksim.DefaultProject)
	return c
}

func (c *client) login(project string) {
	c.t.Helper()
	status, header, body := c.send(http.MethodPost, "/identity/v3/auth/tokens", passwordRequest(project))
	if status != http.StatusCreated {
		c.t.Fatalf("token: status %d: %v", status, body)
	}
	c.token = header.Get("X-Subject-Token")
}

func passwordRequest(project string) map[string]any {
	domain := map[string]any{"name": "Default"}
	return map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{"user": map[string]any{
			"name": openstacksim.DefaultUser, "password": openstacksim.DefaultPassword, "domain": domain,
		}}},
		"scope": map[string]any{"project": map[string]any{"name": project, "domain": domain}},
	}}
}

// try is one call; its error is that of the transport or of a cut body.
func (c *client) try(method, path string, body any) (int, http.Header, []byte, error) {
	c.t.Helper()
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, reader)
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", c.token)
	request.Header.Set("X-OpenStack-Nova-API-Version", c.micro)
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, content, err
}

// send is one call that must be answered, with JSON if with anything.
func (c *client) send(method, path string, body any) (int, http.Header, map[string]any) {
	c.t.Helper()
	status, header, content, err := c.try(method, path, body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	decoded := map[string]any{}
	if len(content) > 0 {
		if err := json.Unmarshal(content, &decoded); err != nil {
			c.t.Fatalf("%s %s: %v: %q", method, path, err, content)
		}
	}
	return status, header, decoded
}

// want is send with a status that must come.
func (c *client) want(status int, method, path string, body any) map[string]any {
	c.t.Helper()
	got, _, decoded := c.send(method, path, body)
	if got != status {
		c.t.Fatalf("%s %s: status %d, want %d: %v", method, path, got, status, decoded)
	}
	return decoded
}

// id finds the ID of a thing by its name in a listing.
func (c *client) id(path, plural, name string) string {
	c.t.Helper()
	for _, item := range list(c.want(http.StatusOK, http.MethodGet, path, nil)[plural]) {
		if item["name"] == name {
			return text(item["id"])
		}
	}
	c.t.Fatalf("no %s in %s", name, path)
	return ""
}

// spec is a server of the usual kind.
func (c *client) spec(name string, extra map[string]any) map[string]any {
	c.t.Helper()
	server := map[string]any{
		"name":      name,
		"flavorRef": c.id("/compute/v2.1/flavors", "flavors", "m1.small"),
		"imageRef":  c.id("/image/v2/images", "images", "Ubuntu 24.04"),
		"networks":  []any{map[string]any{"uuid": c.id("/network/v2.0/networks", "networks", "private")}},
	}
	maps.Copy(server, extra)
	return map[string]any{"server": server}
}

// create makes a server and gives its ID.
func (c *client) create(name string, extra map[string]any) string {
	c.t.Helper()
	answer := c.want(http.StatusAccepted, http.MethodPost, "/compute/v2.1/servers", c.spec(name, extra))
	return text(object(answer["server"])["id"])
}

// server shows one.
func (c *client) server(id string) map[string]any {
	c.t.Helper()
	return object(c.want(http.StatusOK, http.MethodGet, "/compute/v2.1/servers/"+id, nil)["server"])
}

func object(v any) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	return m
}

func list(v any) []map[string]any {
	items, ok := v.([]any)
	if !ok {
		return nil
	}
	objects := make([]map[string]any, 0, len(items))
	for _, item := range items {
		objects = append(objects, object(item))
	}
	return objects
}

func text(v any) string {
	s, ok := v.(string)
	if !ok {
		return ""
	}
	return s
}

func newSimulator(t *testing.T, options openstacksim.Options) *openstacksim.Simulator {
	t.Helper()
	sim, err := openstacksim.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	return sim
}

// pass lets time go by, in a bubble of testing/synctest.
func pass(d time.Duration) { <-time.After(d) }
