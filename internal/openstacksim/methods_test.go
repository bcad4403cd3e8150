package openstacksim_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// TestMethodsThatPathsDoNotHave: each service refuses them in its own way. The
// answers are those of Zed's sources: Nova's and Cinder's routers know a path
// only together with its methods.
func TestMethodsThatPathsDoNotHave(t *testing.T) {
	t.Parallel()
	c := newClient(t, newSimulator(t, openstacksim.Options{}))
	for path, row := range map[string]struct {
		status int
		body   string
	}{
		"/identity/v3/auth/catalog":    {http.StatusMethodNotAllowed, `{"message": "The method is not allowed for the requested URL."}`},
		"/compute/v2.1/flavors/detail": {http.StatusNotFound, `{"code": "404 Not Found", "message": "The resource could not be found.<br /><br />\n\n\n", "title": "Not Found"}`},
		"/volume/v3/any/types":         {http.StatusNotFound, `{"code": "404 Not Found", "message": "The resource could not be found.<br /><br />\n\n\n", "title": "Not Found"}`},
		"/image/v2/images":             {http.StatusMethodNotAllowed, `{"code": "405 Method Not Allowed", "message": "The method PUT is not allowed for this resource. <br /><br />\n", "title": "Method Not Allowed"}`},
		"/network/v2.0/networks":       {http.StatusMethodNotAllowed, `{"NeutronError": {"type": "HTTPMethodNotAllowed", "message": "The server could not comply with the request since it is either malformed or otherwise incorrect.", "detail": ""}}`},
	} {
		status, header, got, err := c.try(http.MethodPut, path, map[string]any{})
		if err != nil {
			t.Fatal(err)
		}
		var want, body any
		if err := json.Unmarshal([]byte(row.body), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got, &body); err != nil {
			t.Fatalf("%s: %v: %s", path, err, got)
		}
		if diff := cmp.Diff(want, body); status != row.status || header.Get("Content-Type") != "application/json" || diff != "" {
			t.Errorf("%s: status %d, want %d; %s (-want +got):\n%s", path, status, row.status, header.Get("Content-Type"), diff)
		}
	}
}
