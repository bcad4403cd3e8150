// Package secureurl decides to which web addresses a secret or a question of
// trust may go.
//
// It parses addresses; it opens no connection and resolves no name.
package secureurl

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// ErrInsecure is an address that would be spoken to in clear text, or that is
// not one of a web service.
var ErrInsecure = errors.New("not an https address")

// Check refuses every address but https://HOST, and http://HOST where HOST is a
// loopback address of this machine. Errors match [ErrInsecure].
func Check(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return fmt.Errorf("%w: %q", ErrInsecure, withoutSecrets(u, address))
	case u.Scheme == "https", u.Scheme == "http" && IsLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%w: %q; http is for this machine's own addresses only", ErrInsecure, withoutSecrets(u, address))
}

// withoutSecrets is an address for a message.
func withoutSecrets(u *url.URL, address string) string {
	if u == nil {
		before, _, _ := strings.Cut(address, "?")
		return before
	}
	return (&url.URL{Scheme: u.Scheme, Opaque: u.Opaque, Host: u.Host, Path: u.Path}).String()
}

// IsLoopback reports whether a host, without its port, is this machine's own
// loopback interface.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.Unmap().IsLoopback()
}
