package cloud

import (
	"context"
	"net/url"
	"slices"
	"strings"
)

// portServers is how many servers' ports are asked for at a time: their IDs have
// to fit into one address.
const portServers = 50

// PortsOf returns the MAC addresses of the ports that servers have on a network, by
// the server's ID. Nova names networks only by name, which is not unique.
func (c *Client) PortsOf(ctx context.Context, networkID string, servers []string) (map[string][]string, error) {
	macs := map[string][]string{}
	for some := range slices.Chunk(servers, portServers) {
		ports, err := readAll[struct {
			Server string `json:"device_id"`
			MAC    string `json:"mac_address"`
		}](ctx, c, collection{op: "list ports", service: network, path: "ports", key: "ports", query: url.Values{
			"network_id": {networkID}, "device_id": some, "fields": {"id", "device_id", "mac_address"},
		}})
		if err != nil {
			return nil, err
		}
		for _, port := range ports {
			if port.Server == "" || port.MAC == "" {
				return nil, &Error{Op: "list ports", Kind: ErrTransient, Message: "a port has no server or no address"}
			}
			macs[port.Server] = append(macs[port.Server], strings.ToLower(port.MAC))
		}
	}
	return macs, nil
}
