package openstacksim_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// TestImagesTakeProperties: those of the project's own images, by Glance's patch.
func TestImagesTakeProperties(t *testing.T) {
	t.Parallel()
	seed := openstacksim.DefaultSeed()
	for i := range seed.Images {
		seed.Images[i].Owner = openstacksim.DefaultProject
	}
	c := newClient(t, newSimulator(t, openstacksim.Options{Seed: &seed}))
	path := "/image/v2/images/" + c.id("/image/v2/images", "images", "Windows Server 2022")
	patch := func(kind string, changes ...map[string]any) (int, map[string]any) {
		body, err := json.Marshal(changes)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, c.url+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Auth-Token", c.token)
		request.Header.Set("Content-Type", kind)
		response, err := c.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		var image map[string]any
		_ = json.Unmarshal(content, &image)
		return response.StatusCode, image
	}
	const kind = "application/openstack-images-v2.1-json-patch"
	change := func(op, name string, value any) map[string]any {
		return map[string]any{"op": op, "path": "/" + name, "value": value}
	}
	if status, image := patch(kind, change("add", "os_type", "linux"), change("add", "a~1b", "c")); status != http.StatusOK || image["os_type"] != "linux" || image["a/b"] != "c" {
		t.Errorf("add: %d, %v", status, image)
	}
	if status, image := patch(kind, change("remove", "a~1b", nil), change("replace", "os_type", "windows")); status != http.StatusOK || image["os_type"] != "windows" || image["a/b"] != nil {
		t.Errorf("remove and replace: %d, %v", status, image)
	}
	for name, row := range map[string]struct {
		kind   string
		change map[string]any
		status int
	}{
		"what is not there":      {kind, change("remove", "nope", nil), http.StatusConflict},
		"a field":                {kind, change("replace", "status", "queued"), http.StatusBadRequest},
		"another type of change": {"application/json", change("add", "a", "b"), http.StatusUnsupportedMediaType},
	} {
		if status, image := patch(row.kind, row.change); status != row.status {
			t.Errorf("%s: %d, %v", name, status, image)
		}
	}
	c.login(openstacksim.TinyProject)
	if status, _ := patch(kind, change("add", "a", "b")); status != http.StatusForbidden {
		t.Errorf("of another project: %d", status)
	}
}

// TestApplicationCredentialsAreMade: with rules, which then hold, and until they are
// deleted.
func TestApplicationCredentialsAreMade(t *testing.T) {
	t.Parallel()
	c := newClient(t, newSimulator(t, openstacksim.Options{}))
	user := text(object(object(c.want(http.StatusCreated, http.MethodPost, "/identity/v3/auth/tokens", passwordRequest(openstacksim.DefaultProject))["token"])["user"])["id"])
	root := "/identity/v3/users/" + user + "/application_credentials"
	asked := map[string]any{"application_credential": map[string]any{"name": "runner", "access_rules": []any{
		map[string]any{"service": "compute", "method": "GET", "path": "/v2.1/flavors"},
	}}}
	made := object(c.want(http.StatusCreated, http.MethodPost, root, asked)["application_credential"])
	if made["secret"] == nil || len(list(made["access_rules"])) != 1 {
		t.Fatalf("made: %v", made)
	}
	c.want(http.StatusConflict, http.MethodPost, root, asked)
	c.want(http.StatusForbidden, http.MethodPost, "/identity/v3/users/other/application_credentials", asked)
	c.want(http.StatusBadRequest, http.MethodPost, root, map[string]any{"application_credential": map[string]any{}})
	shown := object(c.want(http.StatusOK, http.MethodGet, root+"/"+text(made["id"]), nil)["application_credential"])
	if shown["secret"] != nil || shown["name"] != "runner" {
		t.Errorf("shown: %v", shown)
	}
	if got := len(list(c.want(http.StatusOK, http.MethodGet, root+"?name=runner", nil)["application_credentials"])); got != 1 {
		t.Errorf("%d listed by the name", got)
	}
	owner := c.token
	login := map[string]any{"auth": map[string]any{"identity": map[string]any{
		"methods": []string{"application_credential"}, "application_credential": map[string]any{"id": made["id"], "secret": made["secret"]},
	}}}
	_, header, _ := c.send(http.MethodPost, "/identity/v3/auth/tokens", login)
	c.token = header.Get("X-Subject-Token")
	c.want(http.StatusOK, http.MethodGet, "/compute/v2.1/flavors", nil)
	c.want(http.StatusUnauthorized, http.MethodGet, "/compute/v2.1/servers", nil)
	c.want(http.StatusForbidden, http.MethodPost, root, asked)
	c.token = owner
	c.want(http.StatusNoContent, http.MethodDelete, root+"/"+text(made["id"]), nil)
	c.want(http.StatusNotFound, http.MethodGet, root+"/"+text(made["id"]), nil)
	c.want(http.StatusNotFound, http.MethodPost, "/identity/v3/auth/tokens", login)
}
