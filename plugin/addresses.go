package plugin

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

const (
	// portsTimeout bounds the asking for ports of one listing.
	portsTimeout = 10 * time.Second
	// portsKept is how long what is known of a server's ports outlives its last
	// sight.
	portsKept = time.Hour
)

// addressBook knows on which of its addresses a server is reached.
type addressBook struct {
	client *cloud.Client
	supply *supply
	config Config

	mu    sync.Mutex
	ports map[string]*knownPorts // by server
}

// knownPorts are the MAC addresses of a server's ports on the chosen network.
type knownPorts struct {
	macs []string
	seen time.Time
}

// choose returns a server's addresses on the network to connect on; known is false
// where it cannot be told which they are.
func (b *addressBook) choose(s cloud.Server) (addresses []fleet.Address, known bool) {
	fits, known := b.filter(s)
	if !known {
		return nil, false
	}
	addresses = make([]fleet.Address, 0, len(s.Addresses))
	for _, a := range s.Addresses {
		if fits(a) {
			addresses = append(addresses, fleet.Address{IP: a.IP, Floating: a.Floating})
		}
	}
	return addresses, true
}

// filter tells the addresses on the network to connect on from others. Nova lists
// them by the name of the network, which several may have, and which may have
// changed; then the ports decide. While Neutron cannot be asked for the name, the
// server itself may have it.
func (b *addressBook) filter(s cloud.Server) (fits func(cloud.Address) bool, known bool) {
	found, _ := b.supply.get()
	named := func(name string) func(cloud.Address) bool {
		return func(a cloud.Address) bool { return a.Network == name }
	}
	all := func(cloud.Address) bool { return true }
	switch chosen := found.addressNetwork; {
	case b.needsPorts(s, found):
		macs, known := b.macs(s.ID)
		return func(a cloud.Address) bool { return slices.Contains(macs, a.MAC) }, known
	case chosen.ID != "" && slices.ContainsFunc(s.Addresses, named(chosen.Name)):
		return named(chosen.Name), true
	case s.Metadata[networkKey] != "":
		return named(s.Metadata[networkKey]), true
	case chosen.ID == "" && b.config.AddressNetwork != "" && !cloud.IsID(b.config.AddressNetwork):
		return named(b.config.AddressNetwork), true
	}
	return all, onePort(s.Addresses) || len(b.config.Server.Networks) == 1
}

// needsPorts reports whether only Neutron can tell which of a server's addresses
// are on the network to connect on.
func (b *addressBook) needsPorts(s cloud.Server, found resources) bool {
	several := len(b.config.Server.Networks) > 1 && !onePort(s.Addresses)
	named := slices.ContainsFunc(s.Addresses, func(a cloud.Address) bool { return a.Network == found.addressNetwork.Name })
	return found.addressNetwork.ID != "" && several && (found.addressTwins || !named)
}

// onePort reports whether all addresses are those of one port.
func onePort(addresses []cloud.Address) bool {
	return !slices.ContainsFunc(addresses, func(a cloud.Address) bool { return a.MAC == "" || a.MAC != addresses[0].MAC })
}

func (b *addressBook) macs(server string) ([]string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ports, ok := b.ports[server]
	if !ok {
		return nil, false
	}
	return ports.macs, true
}

// learn asks Neutron for the ports of servers where the name of the network does
// not tell it from another. It makes no call in any other group, and none for a
// server that is known.
func (b *addressBook) learn(ctx context.Context, servers []cloud.Server) {
	found, _ := b.supply.get()
	unknown := b.unknown(servers, found)
	if len(unknown) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, portsTimeout)
	defer cancel()
	macs, err := b.client.PortsOf(ctx, found.addressNetwork.ID, unknown)
	if err != nil {
		b.supply.log.Warn("ports cannot be looked up, so the addresses of new servers are not known yet", "reason", err.Error())
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, found := range macs {
		b.ports[id] = &knownPorts{macs: found, seen: time.Now()}
	}
}

// unknown returns the servers whose ports are needed and not known, and forgets
// those that have not been seen for long.
func (b *addressBook) unknown(servers []cloud.Server, found resources) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	var unknown []string
	for _, s := range servers {
		if ports := b.ports[s.ID]; ports != nil {
			ports.seen = now
		} else if b.needsPorts(s, found) {
			unknown = append(unknown, s.ID)
		}
	}
	for id, ports := range b.ports {
		if now.Sub(ports.seen) > portsKept {
			delete(b.ports, id)
		}
	}
	return unknown
}

// pick returns the first fixed address of a family and the first floating one,
// empty if there is none. Nova lists IPv6 and IPv4 in any order.
func pick(addresses []fleet.Address, ipv6 bool) (internal, external string) {
	for _, a := range addresses {
		switch {
		case ipv6 != isIPv6(a.IP):
		case a.Floating && external == "":
			external = a.IP.String()
		case !a.Floating && internal == "":
			internal = a.IP.String()
		}
	}
	return internal, external
}

func isIPv6(ip netip.Addr) bool { return ip.Is6() && !ip.Is4In6() }
