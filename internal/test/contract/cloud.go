package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Access is an entry of a clouds.yaml, as far as the cases need it.
type Access struct {
	Auth struct {
		URL              string `yaml:"auth_url"`
		Username         string `yaml:"username"`
		Password         string `yaml:"password"`
		Project          string `yaml:"project_name"`
		CredentialID     string `yaml:"application_credential_id"`
		CredentialSecret string `yaml:"application_credential_secret"`
	} `yaml:"auth"`
}

// ParseClouds reads a clouds.yaml.
func ParseClouds(content []byte) (map[string]Access, error) {
	var file struct {
		Clouds map[string]Access `yaml:"clouds"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("contract: clouds.yaml: %w", err)
	}
	return file.Clouds, nil
}

// Cloud is one side of the contract: a way to the services, and who asks.
type Cloud struct {
	client *http.Client
	// main is the project with room, tiny the one with hardly any; credential
	// stands for main.
	main, tiny, credential Access

	endpoints map[string]string // of main, by service
	tokens    map[string]string // by project
}

// Connect logs in to a cloud with the accesses of its three kinds.
func Connect(ctx context.Context, client *http.Client, main, tiny, credential Access) (*Cloud, error) {
	c := &Cloud{client: client, main: main, tiny: tiny, credential: credential, endpoints: map[string]string{}, tokens: map[string]string{}}
	for _, access := range []Access{tiny, main} {
		if err := c.login(ctx, access); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// ofTiny is the cloud as the project with hardly any room sees it. Cinder's address
// has another project in it.
func (c *Cloud) ofTiny() *Cloud {
	tiny := *c
	tiny.main, tiny.endpoints = c.tiny, maps.Clone(c.endpoints)
	delete(tiny.endpoints, "volume")
	return &tiny
}

func passwordRequest(access Access, password string) map[string]any {
	domain := map[string]any{"name": "Default"}
	return map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{"user": map[string]any{
			"name": access.Auth.Username, "password": password, "domain": domain,
		}}},
		"scope": map[string]any{"project": map[string]any{"name": access.Auth.Project, "domain": domain}},
	}}
}

func credentialRequest(id, secret string) map[string]any {
	return map[string]any{"auth": map[string]any{"identity": map[string]any{
		"methods": []string{"application_credential"}, "application_credential": map[string]any{"id": id, "secret": secret},
	}}}
}

// login gets the token of a project, and the catalogue.
func (c *Cloud) login(ctx context.Context, access Access) error {
	c.endpoints["identity"] = strings.TrimSuffix(access.Auth.URL, "/")
	reply, err := c.do(ctx, request{method: http.MethodPost, service: "identity", path: "/auth/tokens", body: passwordRequest(access, access.Auth.Password)})
	if err != nil {
		return err
	}
	if reply.Status != http.StatusCreated {
		return fmt.Errorf("contract: token for %s: status %d: %s", access.Auth.Project, reply.Status, reply.raw)
	}
	c.tokens[access.Auth.Project] = reply.Header.Get("X-Subject-Token")
	project := reply.Text("token", "project", "id")
	names := map[string]string{"compute": "compute", "image": "image", "network": "network", "volumev3": "volume", "placement": "placement"}
	for _, entry := range reply.List("token", "catalog") {
		service, wanted := names[text(entry["type"])]
		if !wanted {
			continue
		}
		for _, endpoint := range objects(entry["endpoints"]) {
			if endpoint["interface"] == "public" {
				c.endpoints[service] = strings.TrimSuffix(text(endpoint["url"]), "/")
			}
		}
	}
	// Where clients of before microversions go.
	c.endpoints["legacy"] = strings.TrimSuffix(c.endpoints["compute"], ".1") + "/" + project
	c.endpoints["image"] = strings.TrimSuffix(c.endpoints["image"], "/v2")
	return nil
}

// request is one call of a case.
type request struct {
	method, service, path string
	body                  any
	micro                 string // of Nova; empty sends no header
	token                 string
}

// Reply is what a call got.
type Reply struct {
	Status int
	Header http.Header
	Body   any
	raw    []byte
}

// At follows keys into the body.
func (r Reply) At(keys ...string) any {
	value := r.Body
	for _, key := range keys {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[key]
	}
	return value
}

// Text is At for a string; anything else gives an empty one.
func (r Reply) Text(keys ...string) string { return text(r.At(keys...)) }

// List is At for a list of objects.
func (r Reply) List(keys ...string) []map[string]any { return objects(r.At(keys...)) }

func text(value any) string {
	s, ok := value.(string)
	if !ok {
		return ""
	}
	return s
}

func objects(value any) []map[string]any {
	items, ok := value.([]any)
	if !ok {
		return nil
	}
	var found []map[string]any
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			found = append(found, object)
		}
	}
	return found
}

// maxReply bounds what is read of an answer.
const maxReply = 16 << 20

// target is the address that a request goes to.
func (c *Cloud) target(r request) (string, error) {
	endpoint, known := c.endpoints[r.service]
	switch {
	case !known:
		return "", fmt.Errorf("contract: the catalogue has no %s", r.service)
	case r.path == "root":
		return rootOf(endpoint) + "/", nil
	case strings.HasPrefix(r.path, "http"):
		return r.path, nil
	}
	return endpoint + r.path, nil
}

func (c *Cloud) do(ctx context.Context, r request) (Reply, error) {
	target, err := c.target(r)
	if err != nil {
		return Reply{}, err
	}
	var body io.Reader
	if r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return Reply{}, fmt.Errorf("contract: %w", err)
		}
		body = bytes.NewReader(encoded)
	}
	call, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return Reply{}, fmt.Errorf("contract: %w", err)
	}
	call.Header.Set("Accept", "application/json")
	if body != nil {
		call.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		call.Header.Set("X-Auth-Token", r.token)
	}
	if r.micro != "" && (r.service == "compute" || r.service == "legacy") {
		call.Header.Set("X-OpenStack-Nova-API-Version", r.micro)
		call.Header.Set("OpenStack-API-Version", "compute "+r.micro)
	}
	response, err := c.client.Do(call)
	if err != nil {
		return Reply{}, fmt.Errorf("contract: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return Reply{}, fmt.Errorf("contract: %s %s: %w", r.method, target, err)
	}
	reply := Reply{Status: response.StatusCode, Header: response.Header, raw: raw}
	if len(raw) == 0 {
		return reply, nil
	}
	if err := json.Unmarshal(raw, &reply.Body); err != nil {
		reply.Body = string(raw)
	}
	return reply, nil
}

// rootOf is where a service tells its versions: the endpoint without /v3 or /v2.1.
func rootOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	at := strings.Index(u.Path, "/v")
	if strings.HasPrefix(u.Path, "/volume") {
		at = strings.Index(u.Path[1:], "/v") + 1
	}
	if at >= 0 {
		u.Path = u.Path[:at]
	}
	return strings.TrimSuffix(u.String(), "/")
}
