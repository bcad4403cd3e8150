package plugin

import (
	"net/netip"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// addressChoice tells which of a server's addresses to connect to.
type addressChoice struct {
	network string // name; empty takes any
	ipv6    bool
}

// pick returns the first fixed address and the first floating one, or the
// fixed one again when there is none. Nova lists IPv6 and IPv4 in any order.
func (c addressChoice) pick(addresses []fleet.Address) (internal, external string) {
	for _, a := range addresses {
		if c.network != "" && a.Network != c.network || c.ipv6 != isIPv6(a.IP) {
			continue
		}
		switch {
		case a.Floating && external == "":
			external = a.IP.String()
		case !a.Floating && internal == "":
			internal = a.IP.String()
		}
	}
	if external == "" {
		external = internal
	}
	return internal, external
}

func isIPv6(ip netip.Addr) bool { return ip.Is6() && !ip.Is4In6() }
