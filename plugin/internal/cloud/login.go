package cloud

import (
	"context"
	"net/netip"
	"net/url"
	"os"
)

// Login is how a client logs in, without its secrets.
type Login struct {
	// AuthURL is the address of Keystone.
	AuthURL string
	// Insecure is set if certificates are not checked.
	Insecure bool
	// Files are those that the entry was read from.
	Files []string
}

// Login reads the entry of clouds.yaml anew. It is empty if that fails, which the
// next authentication reports.
func (c *Client) Login() Login {
	creds, files, err := loadCredentials(c.session.opts)
	if err != nil {
		return Login{}
	}
	login := Login{AuthURL: creds.auth.IdentityEndpoint, Insecure: creds.tls.insecure, Files: []string{files.clouds}}
	if _, err := os.Stat(files.secure); err == nil {
		login.Files = append(login.Files, files.secure)
	}
	return login
}

// Families tells which kinds of addresses a network has subnets for.
func (c *Client) Families(ctx context.Context, of Network) (ipv4, ipv6 bool, err error) {
	var page struct {
		Subnets []struct {
			CIDR string `json:"cidr"`
		} `json:"subnets"`
	}
	query := url.Values{"network_id": {of.ID}, "fields": {"cidr"}}
	if err := c.get(ctx, "list subnets", network, "subnets", query, &page); err != nil {
		return false, false, err
	}
	for _, subnet := range page.Subnets {
		if prefix, err := netip.ParsePrefix(subnet.CIDR); err == nil {
			ipv4 = ipv4 || prefix.Addr().Is4()
			ipv6 = ipv6 || prefix.Addr().Is6()
		}
	}
	return ipv4, ipv6, nil
}
