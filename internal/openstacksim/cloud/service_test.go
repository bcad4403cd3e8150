package cloud_test

import (
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
)

// anyone is an identity service that knows every token but an empty one.
type anyone struct{}

func (anyone) Authenticate(c *cloud.Call) (*cloud.Auth, error) {
	if c.Request.Header.Get("X-Auth-Token") == "" {
		return nil, cloud.Unauthorized()
	}
	return &cloud.Auth{Project: &cloud.Project{}}, nil
}

func (anyone) ProjectOf(string) string { return "" }

// TestPathsOfAService: a path with a slash at its end, with another method, of
// no service, that is not clean, and with an escaped variable.
func TestPathsOfAService(t *testing.T) {
	t.Parallel()
	c := cloud.New(cloud.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	c.Identity = anyone{}
	api := c.Serve(cloud.Service{Name: "image", Wrap: cloud.PlainError, NoMethod: func(method string) string { return "no " + method }})
	api.Open("GET ", fault.OpImageInfo, func(*cloud.Call) (*cloud.Answer, error) { return cloud.OK("root") })
	api.Handle("GET /v2/images/{id}", fault.OpImageShow, func(call *cloud.Call) (*cloud.Answer, error) { return cloud.OK(call.Arg("id")) })
	for name, row := range map[string]struct {
		method, path, token string
		status              int
		body                string
		op                  fault.Operation
	}{
		"the root":           {http.MethodGet, "/image/", "", 200, `"root"`, fault.OpImageInfo},
		"a variable":         {http.MethodGet, "/image/v2/images/a%20b/", "t", 200, `"a b"`, fault.OpImageShow},
		"without a token":    {http.MethodGet, "/image/v2/images/a", "", 401, "", fault.OpImageShow},
		"another method":     {http.MethodPut, "/image/v2/images/a", "t", 405, "", fault.OpUnknown},
		"an unknown path":    {http.MethodGet, "/image/v2/nope", "t", 404, "", fault.OpUnknown},
		"a path not clean":   {http.MethodGet, "/image//v2/images/a", "t", 404, "", fault.OpUnknown},
		"an unknown service": {http.MethodGet, "/placement/x", "t", 404, "", fault.OpUnknown},
		"unknown, no token":  {http.MethodGet, "/image/v2/nope", "", 401, "", fault.OpUnknown},
	} {
		request, err := http.NewRequestWithContext(t.Context(), row.method, "http://simulator"+row.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Auth-Token", row.token)
		response, err := c.Transport().RoundTrip(request)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != row.status || row.body != "" && string(body) != row.body {
			t.Errorf("%s: status %d, body %s, %v; want %d %s", name, response.StatusCode, body, err, row.status, row.body)
		}
		calls := c.Calls()
		if last := calls[len(calls)-1]; last.Operation != row.op || last.URL != row.path {
			t.Errorf("%s: recorded as %s %s, want %s %s", name, last.Operation, last.URL, row.op, row.path)
		}
	}
}
