package cloud

import (
	"context"
	"net/netip"
	"net/url"
)

// Login is how a client logs in, without its secrets.
type Login struct {
	// AuthURL is the address of Keystone.
	AuthURL string
	// Services are the addresses that the token is sent to, by service.
	Services map[string]string
	// Insecure is set if certificates are not checked.
	Insecure bool
	// Files are those that the login depends on; none for the environment, unless
	// it names some.
	Files []LoginFile
	// Remarks are what the entry says in vain.
	Remarks []string
}

// LoginFile is a file that a login depends on.
type LoginFile struct {
	Path string
	// Secret is set if others must not read it.
	Secret bool
}

// Login tells of the last login that succeeded.
func (c *Client) Login() Login {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.session.login
}

// loginOf is a login with credentials from files, which led to these services.
func loginOf(creds credentials, files cloudsFiles, reached endpoints) Login {
	login := Login{AuthURL: withoutQuery(creds.auth.IdentityEndpoint), Services: map[string]string{}, Insecure: creds.tls.insecure, Remarks: creds.remarks}
	for service, address := range reached.addresses {
		if service != computeRoot {
			login.Services[service] = withoutQuery(address)
		}
	}
	// Whoever can write the others can choose where the secrets are sent.
	for _, file := range []LoginFile{
		{files.clouds, true},
		{files.secure, true},
		{files.public, false},
		{creds.tls.ca, false},
		{creds.tls.cert, creds.tls.key == ""},
		{creds.tls.key, true},
	} {
		if file.Path != "" {
			login.Files = append(login.Files, file)
		}
	}
	return login
}

// Families tells which kinds of addresses a network has subnets for.
func (c *Client) Families(ctx context.Context, of Network) (ipv4, ipv6 bool, err error) {
	subnets, err := readAll[struct {
		CIDR string `json:"cidr"`
	}](ctx, c, collection{
		op: "list subnets", service: network, path: "subnets", key: "subnets",
		query: url.Values{"network_id": {of.ID}, "fields": {"id", "cidr"}},
	})
	for _, subnet := range subnets {
		prefix, err := netip.ParsePrefix(subnet.CIDR)
		if err != nil {
			return false, false, &Error{Op: "list subnets", Kind: ErrTransient, Message: "a subnet has no range of addresses"}
		}
		ipv4 = ipv4 || prefix.Addr().Is4()
		ipv6 = ipv6 || prefix.Addr().Is6()
	}
	return ipv4, ipv6, err
}
