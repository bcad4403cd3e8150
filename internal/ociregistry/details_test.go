package ociregistry

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestReasons: what a registry says is for people who do not know Go's notation,
// is one line, and shows no query of a URL.
func TestReasons(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"details": {
			`{"errors":[{"code":"NAME_UNKNOWN","message":"unknown","detail":{"name":"team/plugin"}},{"code":"DENIED","message":"no","detail":"ask us"},{"code":"DENIED","message":"no"}]}`,
			`404 Not Found: name unknown: unknown: {"name":"team/plugin"}; denied: no: ask us; denied: no`,
		},
		"nothing":          {"", "404 Not Found"},
		"a page":           {"<!DOCTYPE html><html><head><title>Sign in &amp; go</title></head>", `404 Not Found: a web page titled "Sign in & go"`},
		"a page, no title": {"\n<html>", "404 Not Found: a web page"},
		"Artifactory":      {`{"errors":[{"status":403,"message":"Forbidden"}]}`, "404 Not Found: Forbidden"},
		"GitLab":           {`{"message":"404 Project Not Found"}`, "404 Not Found: 404 Project Not Found"},
		"OAuth":            {`{"error":"invalid_request"}`, "404 Not Found: invalid_request"},
		"text":             {"no such\x1b[31m thing\nsecond line", "404 Not Found: no such\\u001b[31m thing"},
		"long text":        {strings.Repeat("x", 1000), "404 Not Found: " + strings.Repeat("x", reasonLimit) + "…"},
	} {
		address := &url.URL{Scheme: "https", Host: "registry.example", Path: "/v2/", RawQuery: "X-Amz-Signature=secret"}
		err := wrap("list tags of", "team/plugin", refused(&http.Response{
			StatusCode: http.StatusNotFound, Body: io.NopCloser(strings.NewReader(c.body)),
			Request: &http.Request{Method: http.MethodGet, URL: address},
		}))
		want := "list tags of team/plugin: GET https://registry.example/v2/: " + c.want
		if err.Error() != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, err, want)
		}
	}
}
