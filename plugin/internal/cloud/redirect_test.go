package cloud

import (
	"cmp"
	"net/http"
	"net/url"
	"testing"
)

// TestRedirects: a token goes to the scheme, host and port that it was sent to,
// and a password never back to plain HTTP. What is not a GET stays what it is.
func TestRedirects(t *testing.T) {
	t.Parallel()
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	for name, row := range map[string]struct {
		method, from, to string
		becomes          string // another method, after 301, 302 or 303
		call, login      bool
	}{
		"same place":              {get, "https://nova.example.com/v2.1", "https://nova.example.com/v2.1/", "", true, true},
		"standard port":           {get, "https://nova.example.com/", "https://NOVA.example.com:443/x", "", true, true},
		"upgrade":                 {get, "http://nova.example.com/", "https://nova.example.com/", "", false, true},
		"upgrade, other port":     {post, "http://nova.example.com:80/", "https://nova.example.com:8774/", "", false, true},
		"other host":              {get, "https://nova.example.com/", "https://login.example.com/", "", false, false},
		"host with the same end":  {get, "https://example.com/", "https://evil-example.com/", "", false, false},
		"downgrade":               {get, "https://nova.example.com/", "http://nova.example.com/", "", false, false},
		"downgrade, same port":    {get, "https://nova.example.com:8774/", "http://nova.example.com:8774/", "", false, false},
		"other port":              {get, "https://nova.example.com/", "https://nova.example.com:8443/", "", false, false},
		"other port, no https":    {get, "http://nova.example.com/", "http://nova.example.com:8080/", "", false, false},
		"creation becomes a GET":  {post, "https://nova.example.com/servers", "https://nova.example.com/servers/", get, false, false},
		"creation stays one":      {post, "https://nova.example.com/servers", "https://nova.example.com/servers/", "", true, true},
		"deletion becomes a GET":  {del, "https://nova.example.com/servers/1", "https://nova.example.com/servers/1/", get, false, false},
		"login becomes a GET":     {post, "http://k.example.com/v3", "https://k.example.com/v3", get, false, false},
		"another scheme entirely": {get, "https://nova.example.com/", "ftp://nova.example.com/", "", false, false},
	} {
		request := func(method, address string) *http.Request {
			parsed, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			return &http.Request{Method: method, URL: parsed}
		}
		to := request(cmp.Or(row.becomes, row.method), row.to)
		via := []*http.Request{request(row.method, row.from)}
		if err := checkCall(to, via); (err == nil) != row.call || err != nil && !unsent(err) {
			t.Errorf("%s: a call: got %v, followed should be %v", name, err, row.call)
		}
		if err := checkLogin(to, via); (err == nil) != row.login {
			t.Errorf("%s: a login: got %v, followed should be %v", name, err, row.login)
		}
	}
	request := &http.Request{URL: &url.URL{Scheme: "https", Host: "a"}}
	if err := checkCall(request, []*http.Request{request, request, request, request}); err == nil {
		t.Error("a loop is followed")
	}
}
