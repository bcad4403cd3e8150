package cloud

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// novaWithoutNeutron answers as Nova does while Neutron is down: what needs it is a
// 500, and lists by name, metadata and addresses are there.
func novaWithoutNeutron(down *bool, servers map[string]string) func(*http.Request) (*http.Response, error) {
	const fault = `{"computeFault": {"code": 500, "message": "Unexpected API Error.\\n<class 'keystoneauth1.exceptions.connection.ConnectFailure'>"}}`
	return func(r *http.Request) (*http.Response, error) {
		path, found := strings.CutPrefix(r.URL.Path, "/v2.1/servers")
		id, _, _ := strings.Cut(strings.Trim(path, "/"), "/")
		switch {
		case !found:
			return nil, nil //nolint:nilnil // as usual
		case path == "" || path == "/detail" && !*down:
			return reply(http.StatusOK, `{"servers": [`+listedAs(servers, r.URL.Query())+`]}`), nil
		case strings.HasSuffix(path, "/metadata"):
			return reply(http.StatusOK, `{"metadata": {"of": "`+id+`"}}`), nil
		case strings.HasSuffix(path, "/ips") && servers[id] != "BROKEN":
			return reply(http.StatusOK, `{"addresses": {"private": [{"version": 4, "addr": "10.0.0.1"}]}}`), nil
		}
		return reply(http.StatusInternalServerError, fault), nil
	}
}

func listedAs(servers map[string]string, query url.Values) string {
	var listed []string
	for id, status := range servers {
		if wanted := query.Get("status"); wanted == "" || wanted == status {
			listed = append(listed, fmt.Sprintf(`{"id": %q, "name": "n-%s", "tags": ["tag"], "status": %q, "metadata": {"of": %q}, "OS-EXT-STS:task_state": null}`, id, id, status, id))
		}
	}
	return strings.Join(listed, ",")
}

// TestNovaWithoutNeutron: servers are listed while Nova cannot show them in full, by
// a process that knows them and by one that does not.
func TestNovaWithoutNeutron(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			down := !known
			servers := map[string]string{"a": "ACTIVE", "b": "BUILD", "c": "ERROR", "d": "SHUTOFF"}
			s := newStage(t, novaWithoutNeutron(&down, servers))
			client := s.connect(t)
			if _, err := client.ListServers(t.Context(), "tag", time.Hour); err != nil {
				t.Fatal(err)
			}
			down = true
			parts := s.count("GET /v2.1/servers/a/metadata")
			servers["b"] = "ACTIVE"
			listed, err := client.ListServers(t.Context(), "tag", time.Hour)
			if err != nil || len(listed) != 4 {
				t.Fatalf("%d servers, %v", len(listed), err)
			}
			for _, got := range listed {
				want := map[string]string{"a": "ACTIVE", "b": "ACTIVE", "c": "ERROR", "d": map[bool]string{true: "SHUTOFF"}[known]}[got.ID]
				if got.Status != want || got.Name != "n-"+got.ID || got.Metadata["of"] != got.ID || !known && len(got.Addresses) != 1 {
					t.Errorf("known %v: %+v, want status %q", known, got, want)
				}
			}
			if got := s.count("GET /v2.1/servers/a/metadata"); got != parts || known != (parts == 0) {
				t.Errorf("known %v: metadata was asked for %d times, and %d before", known, got, parts)
			}
			found, err := client.FindServers(t.Context(), "tag", "n-b")
			if err != nil || len(found) != 1 || found[0].ID != "b" {
				t.Errorf("found %+v, %v", found, err)
			}
			if got := strings.Count(s.logged(), "cannot show servers in full"); got != 1 {
				t.Errorf("lines: %d", got)
			}
		})
	}
}

// TestNovaWithoutAnything: a server of which nothing can be had is not there, which
// proves nothing, and is not said to be missing when it is looked for by name.
func TestNovaWithoutAnything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := true
		s := newStage(t, novaWithoutNeutron(&down, map[string]string{"a": "ACTIVE", "x": "BROKEN"}))
		client := s.connect(t)
		listed, err := client.ListServers(t.Context(), "tag", time.Hour)
		if err != nil || len(listed) != 1 || listed[0].ID != "a" {
			t.Errorf("%+v, %v", listed, err)
		}
		if found, err := client.FindServers(t.Context(), "tag", "n-x"); err == nil {
			t.Errorf("found %+v, and should not know", found)
		}
	})
}
