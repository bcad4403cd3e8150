package secureurl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/secureurl"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"https://fulcio.sigstore.dev":      true,
		"HTTPS://fulcio.sigstore.dev/api":  true,
		"https://10.0.0.1:8443":            true,
		"http://127.0.0.1:5555":            true,
		"http://[::1]:5555/api":            true,
		"http://[::ffff:127.0.0.1]/":       true,
		"http://localhost":                 true,
		"http://LOCALHOST:80":              true,
		"http://fulcio.sigstore.dev":       false,
		"http://10.0.0.1":                  false,
		"http://localhost.example.com":     false,
		"http://127.0.0.1.example.com":     false,
		"http://127.0.0.1@example.com":     false,
		"http://example.com#127.0.0.1":     false,
		"fulcio.sigstore.dev":              false,
		"//fulcio.sigstore.dev":            false,
		"https:fulcio.sigstore.dev":        false,
		"https://":                         false,
		"ftp://fulcio.sigstore.dev":        false,
		"file:///etc/passwd":               false,
		"":                                 false,
		"http://user:secret@example.com?t": false,
		"http://%zz?secret":                false,
	} {
		err := secureurl.Check(address)
		if ok != (err == nil) || err != nil && !errors.Is(err, secureurl.ErrInsecure) {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error has the secret: %v", address, err)
		}
	}
}
