package cloud

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
)

const (
	// briefMost bounds the servers that are asked for one by one in a brief
	// listing, and briefWorkers those asked for at a time.
	briefMost    = 100
	briefWorkers = 8
)

// fullViews are the servers as Nova showed them last.
type fullViews struct {
	mu      sync.Mutex
	servers map[string]Server // by ID
}

// replace keeps the servers of a whole listing, and no others.
func (f *fullViews) replace(listed []Server) {
	servers := make(map[string]Server, len(listed))
	for _, s := range listed {
		servers[s.ID] = s
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers = servers
}

func (f *fullViews) add(s Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.servers == nil {
		f.servers = map[string]Server{}
	}
	f.servers[s.ID] = s
}

func (f *fullViews) of(id string) (Server, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.servers[id]
	return s, ok
}

// cannotShow reports whether Nova itself failed to show servers in full. It asks
// Neutron for their security groups, and while Neutron is down it answers 500.
func cannotShow(err error) bool {
	var failed *Error
	return errors.As(err, &failed) && failed.Status == http.StatusInternalServerError
}

// listBriefly lists servers by what Nova knows without Neutron: their names, and
// whether they are being built, run or have failed. The rest is taken from when
// they were last shown in full, or else asked for one by one. A server of which
// that cannot be had is left out, and whole is false. If nothing can be had, the
// error is cause.
func (c *Client) listBriefly(ctx context.Context, query url.Values, cause error) (servers []Server, whole bool, err error) {
	if c.othersTold.Load() {
		return nil, false, cause // thousands of servers of others would be asked for
	}
	statuses := map[string]string{}
	var listed []Resource
	for _, status := range []string{"", "BUILD", "ACTIVE", "ERROR"} {
		asked := maps.Clone(query)
		if status != "" {
			asked.Set("status", status)
		}
		found, err := readAll[Resource](ctx, c, collection{op: "list servers briefly", service: compute, path: "servers", key: "servers", query: asked})
		if err != nil {
			return nil, false, fmt.Errorf("%w; %w", cause, err)
		}
		for _, s := range found {
			statuses[s.ID] = status
		}
		if status == "" {
			listed = found
		}
	}
	if !c.briefTold.Swap(true) {
		c.log.WarnContext(ctx, "the compute service cannot show servers in full; going on with their names and states", "reason", cause.Error())
	}
	c.completeViews(ctx, listed)
	servers, whole = make([]Server, 0, len(listed)), true
	for _, l := range listed {
		s, known := c.views.of(l.ID)
		if !known {
			whole = false
			continue
		}
		if now := statuses[l.ID]; now != "" && now != s.Status {
			s.Status, s.TaskState = now, ""
		}
		servers = append(servers, s)
	}
	return servers, whole, nil
}

// completeViews asks for what is needed of servers that were not shown in full
// since this process started.
func (c *Client) completeViews(ctx context.Context, listed []Resource) {
	unknown := slices.DeleteFunc(slices.Clone(listed), func(l Resource) bool {
		_, known := c.views.of(l.ID)
		return known || !serverID.MatchString(l.ID)
	})
	var pool sync.WaitGroup
	slots := make(chan struct{}, briefWorkers)
	for _, l := range unknown[:min(len(unknown), briefMost)] {
		slots <- struct{}{}
		pool.Go(func() {
			defer func() { <-slots }()
			if s, err := c.viewInParts(ctx, l); err == nil {
				c.views.add(s)
			}
		})
	}
	pool.Wait()
}

// viewInParts asks for the metadata and the addresses of a server, which Nova has
// itself.
func (c *Client) viewInParts(ctx context.Context, of Resource) (Server, error) {
	server := Server{ID: of.ID, Name: Printable(of.Name)}
	var metadata struct {
		Metadata map[string]string `json:"metadata"`
	}
	path := "servers/" + url.PathEscape(of.ID)
	if err := c.get(ctx, "show the metadata of server "+of.ID, compute, path+"/metadata", &metadata); err != nil {
		return server, err
	}
	var networks struct {
		Addresses map[string][]struct {
			IP string `json:"addr"`
		} `json:"addresses"`
	}
	if err := c.get(ctx, "show the addresses of server "+of.ID, compute, path+"/ips", &networks); err != nil {
		return server, err
	}
	server.Metadata = metadata.Metadata
	for _, network := range slices.Sorted(maps.Keys(networks.Addresses)) {
		for _, a := range networks.Addresses[network] {
			if ip, err := netip.ParseAddr(a.IP); err == nil {
				server.Addresses = append(server.Addresses, Address{Network: network, IP: ip})
			}
		}
	}
	return server, nil
}
