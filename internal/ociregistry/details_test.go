package ociregistry

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"oras.land/oras-go/v2/registry/remote/errcode"
)

// TestErrorsSpellDetailsAsTheRegistryDid: what a registry says is for people
// who do not know Go's notation.
func TestErrorsSpellDetailsAsTheRegistryDid(t *testing.T) {
	t.Parallel()
	var details errcode.Errors
	if err := json.Unmarshal([]byte(`[{"code":"NAME_UNKNOWN","message":"unknown","detail":{"name":"team/plugin"}},{"code":"DENIED","message":"no","detail":"ask us"},{"code":"DENIED","message":"no"}]`), &details); err != nil {
		t.Fatal(err)
	}
	address := &url.URL{Scheme: "https", Host: "registry.example", Path: "/v2/"}
	err := wrap("list tags of", "team/plugin", &errcode.ErrorResponse{Method: http.MethodGet, URL: address, StatusCode: http.StatusNotFound, Errors: details})
	want := `list tags of team/plugin: GET "https://registry.example/v2/": response status code 404: name unknown: unknown: {"name":"team/plugin"}; denied: no: ask us; denied: no`
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}
