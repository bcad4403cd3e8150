package openstacksim

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

func (s *Simulator) listServers(c *call) (*answer, error) {
	page, next, err := s.page(c)
	if err != nil {
		return nil, err
	}
	views := []any{}
	for _, srv := range page {
		views = append(views, map[string]any{"id": srv.id, "name": srv.name, "links": novaLinks(c, "servers", srv.id)})
	}
	return listing(views, next)
}

func (s *Simulator) detailServers(c *call) (*answer, error) {
	page, next, err := s.page(c)
	if err != nil {
		return nil, err
	}
	views := []any{}
	for _, srv := range page {
		if s.weather.CellDown {
			views = append(views, s.unreachableView(c, srv))
			continue
		}
		views = append(views, s.view(c, srv, false))
	}
	return listing(views, next)
}

func listing(views []any, next string) (*answer, error) {
	body := map[string]any{"servers": views}
	if next != "" {
		body["servers_links"] = []link{{Rel: "next", Href: next}}
	}
	return ok(body)
}

// unreachableView is what Nova says of a server whose cell is down.
func (s *Simulator) unreachableView(c *call, srv *server) map[string]any {
	return map[string]any{
		"id": srv.id, "status": "UNKNOWN", "tenant_id": srv.project,
		"created": s.stamp(srv.created, withZone), "links": novaLinks(c, "servers", srv.id),
	}
}

func (s *Simulator) showServer(c *call) (*answer, error) {
	srv, err := s.findServer(c)
	if err != nil {
		return nil, err
	}
	if srv.fate.Unreadable {
		return nil, unexpected()
	}
	if !s.weather.CellDown {
		return ok(map[string]any{"server": s.view(c, srv, true)})
	}
	if !c.micro.least(69) {
		return nil, unexpected()
	}
	view := s.unreachableView(c, srv)
	view["OS-EXT-STS:power_state"] = 0
	view["OS-EXT-AZ:availability_zone"] = srv.wantZone
	view["user_id"], view["image"], view["flavor"] = srv.user, "", embeddedFlavor(c, srv.flavor)
	return ok(map[string]any{"server": view})
}

// page finds the servers of a listing and the link to its next page.
func (s *Simulator) page(c *call) ([]*server, string, error) {
	filter, err := s.parseFilter(c)
	if err != nil {
		return nil, "", err
	}
	limit, err := s.pageSize(c.query.Get("limit"))
	if err != nil {
		return nil, "", err
	}
	ordered, err := s.from(c, c.query.Get("marker"))
	if err != nil {
		return nil, "", err
	}
	if s.weather.CellDown && (!filter.all() || !c.micro.least(69)) {
		ordered = nil
	}
	var page []*server
	for _, srv := range ordered {
		if !s.listed(srv, filter) || !filter.accepts(srv) {
			continue
		}
		page = append(page, srv)
		if len(page) == limit {
			break
		}
	}
	if len(page) < limit {
		return page, "", nil
	}
	return page, nextLink(c, page[len(page)-1].id), nil
}

// from gives the project's servers in the order of the listing, after the marker.
// That may be a deleted one, until it is purged from the database.
func (s *Simulator) from(c *call, marker string) ([]*server, error) {
	var ordered []*server
	for _, srv := range s.serverOrder {
		if srv.project == c.auth.project.ID {
			ordered = append(ordered, srv)
		}
	}
	if c.query.Get("sort_key") == "display_name" {
		slices.SortStableFunc(ordered, func(a, b *server) int { return strings.Compare(a.name, b.name) })
	}
	if c.query.Get("sort_dir") != "asc" {
		slices.Reverse(ordered)
	}
	if marker == "" {
		return ordered, nil
	}
	at := slices.IndexFunc(ordered, func(srv *server) bool {
		return srv.id == marker
	})
	if at < 0 {
		return nil, badRequest("marker [%s] not found", marker)
	}
	return ordered[at+1:], nil
}

func (s *Simulator) pageSize(asked string) (int, error) {
	if asked == "" {
		return s.options.MaxLimit, nil
	}
	n, err := strconv.Atoi(asked)
	if err != nil || n < 0 {
		return 0, badRequest("Invalid input for query parameters limit. Value: %s. '%s' does not match '^[0-9]*$'", asked, asked)
	}
	if n == 0 {
		return s.options.MaxLimit, nil
	}
	return min(n, s.options.MaxLimit), nil
}

func nextLink(c *call, marker string) string {
	query := url.Values{}
	for key, values := range c.query {
		if key != "marker" {
			query[key] = values
		}
	}
	encoded := query.Encode()
	if encoded != "" {
		encoded += "&"
	}
	return c.base + strings.TrimSuffix(c.request.URL.Path, "/") + "?" + encoded + "marker=" + marker
}

// listed tells whether listings show the server at all: deleted ones only to
// callers that ask for changes, and all as late as the lag says.
func (s *Simulator) listed(srv *server, f serverFilter) bool {
	age, lag := s.present.Sub(srv.created), s.weather.ListingLag
	if age < lag || age < srv.fate.HiddenFor || srv.fate.Unreadable && !srv.gone() {
		return false
	}
	if !srv.gone() {
		return srv.vm != vmSoftDeleted
	}
	dead := s.present.Sub(srv.terminated)
	return !f.since.IsZero() || dead < lag || dead < srv.fate.LingersFor || srv.fate.Ghost
}
