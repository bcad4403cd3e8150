package cloud

import (
	"net/http"
	"net/url"
	"testing"
)

// TestRedirects: a token goes to the host that it was made for, and never back
// to plain HTTP.
func TestRedirects(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		from, to string
		followed bool
	}{
		"same host":            {"https://nova.example.com/v2.1", "https://nova.example.com/v2.1/", true},
		"upgrade":              {"http://nova.example.com/", "https://nova.example.com/", true},
		"upgrade, other port":  {"http://nova.example.com:80/", "https://nova.example.com:8774/", true},
		"other host":           {"https://nova.example.com/", "https://login.example.com/", false},
		"downgrade":            {"https://nova.example.com/", "http://nova.example.com/", false},
		"other port, no https": {"http://nova.example.com/", "http://nova.example.com:8080/", false},
	} {
		request := func(address string) *http.Request {
			parsed, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			return &http.Request{URL: parsed}
		}
		err := checkRedirect(request(row.to), []*http.Request{request(row.from)})
		if (err == nil) != row.followed {
			t.Errorf("%s: got %v, followed should be %v", name, err, row.followed)
		}
	}
	request := &http.Request{URL: &url.URL{Scheme: "https", Host: "a"}}
	if err := checkRedirect(request, []*http.Request{request, request, request, request}); err == nil {
		t.Error("a loop is followed")
	}
}
