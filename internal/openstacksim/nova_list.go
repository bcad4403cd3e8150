package openstacksim

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
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
		if s.cellDown {
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
		"created": srv.created.UTC().Format(withZone), "links": novaLinks(c, "servers", srv.id),
	}
}

func (s *Simulator) showServer(c *call) (*answer, error) {
	srv, err := s.findServer(c)
	if err != nil {
		return nil, err
	}
	if !s.cellDown {
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
	start := filter.all()
	ascending := c.query.Get("sort_dir") == "asc"
	ordered := slices.Clone(s.serverOrder)
	if !ascending {
		slices.Reverse(ordered)
	}
	if marker := c.query.Get("marker"); marker != "" {
		at := slices.IndexFunc(ordered, func(srv *server) bool {
			return srv.id == marker && srv.project == c.auth.project.ID && (!srv.gone() || !filter.since.IsZero())
		})
		if at < 0 {
			return nil, "", badRequest("marker [%s] not found", marker)
		}
		ordered = ordered[at+1:]
	}
	var page []*server
	for _, srv := range ordered {
		if srv.project != c.auth.project.ID || !s.listed(srv, filter) || !filter.accepts(srv) {
			continue
		}
		if s.cellDown && (!start || !c.micro.least(69)) {
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
// who asks for changes, and all as late as the lag says.
func (s *Simulator) listed(srv *server, f serverFilter) bool {
	age := s.present.Sub(srv.created)
	if age < s.listingLag || age < srv.fate.HiddenFor {
		return false
	}
	if !srv.gone() {
		return true
	}
	dead := s.present.Sub(srv.terminated)
	return !f.since.IsZero() || dead < s.listingLag || dead < srv.fate.LingersFor
}

// serverFilter is the part of a query that chooses servers.
type serverFilter struct {
	name                           *regexp.Regexp
	statuses                       []string
	tags, tagsAny, notTags, notAny []string
	flavor, image, reservation     string
	id                             string
	since, before                  time.Time
	locked                         *bool
}

// all tells whether nothing was asked for.
func (f serverFilter) all() bool {
	return f.name == nil && f.statuses == nil && f.tags == nil && f.tagsAny == nil && f.notTags == nil && f.notAny == nil &&
		f.flavor == "" && f.image == "" && f.reservation == "" && f.id == "" && f.since.IsZero() && f.before.IsZero() && f.locked == nil
}

func (f serverFilter) accepts(srv *server) bool {
	has := func(tag string) bool { return slices.Contains(srv.tags, tag) }
	hasAll := func(tags []string) bool { return !slices.ContainsFunc(tags, func(t string) bool { return !has(t) }) }
	switch {
	case f.name != nil && !f.name.MatchString(srv.name),
		f.statuses != nil && !slices.Contains(f.statuses, srv.status()),
		!hasAll(f.tags),
		f.tagsAny != nil && !slices.ContainsFunc(f.tagsAny, has),
		f.notTags != nil && hasAll(f.notTags),
		slices.ContainsFunc(f.notAny, has),
		f.flavor != "" && srv.flavor.ID != f.flavor,
		f.image != "" && srv.image != f.image,
		f.reservation != "" && srv.reservation != f.reservation,
		f.id != "" && srv.id != f.id,
		!f.since.IsZero() && srv.updated.Before(f.since),
		!f.before.IsZero() && srv.updated.After(f.before),
		f.locked != nil && srv.locked != *f.locked:
		return false
	}
	return true
}

func (s *Simulator) parseFilter(c *call) (serverFilter, error) {
	var f serverFilter
	for key, values := range c.query {
		value := values[len(values)-1]
		var err error
		switch key {
		case "name":
			if f.name, err = regexp.Compile("(?i)" + value); err != nil {
				return f, badRequest("Invalid input for query parameters name. Value: %s. '%s' is not a 'regex'", value, value)
			}
		case "status":
			for _, status := range values {
				f.statuses = append(f.statuses, strings.ToUpper(status))
			}
		case "tags":
			f.tags = strings.Split(value, ",")
		case "tags-any":
			f.tagsAny = strings.Split(value, ",")
		case "not-tags":
			f.notTags = strings.Split(value, ",")
		case "not-tags-any":
			f.notAny = strings.Split(value, ",")
		case "flavor":
			f.flavor = value
		case "image":
			f.image = value
		case "reservation_id":
			f.reservation = value
		case "uuid":
			f.id = value
		case "changes-since":
			f.since, err = parseTime(value)
		case "changes-before":
			f.before, err = parseTime(value)
		case "locked":
			locked, bad := strconv.ParseBool(value)
			if bad != nil || !c.micro.least(73) {
				err = badRequest("Invalid input for query parameters locked. Value: %s.", value)
			}
			f.locked = &locked
		default:
			err = unknownFilter(c, key, value)
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, badRequest("Invalid input for query parameters changes-since. Value: %s. '%s' is not a 'date-time'", text, text)
}

// unknownFilter refuses, from 2.75 on, what Nova does not know; before, and
// for what members may not filter by, the key is ignored.
func unknownFilter(c *call, key, value string) error {
	known := []string{
		"limit", "marker", "sort_key", "sort_dir", "all_tenants", "deleted", "ip", "ip6", "availability_zone",
		"config_drive", "key_name", "created_at", "launched_at", "terminated_at", "power_state", "task_state", "vm_state",
		"progress", "user_id", "project_id", "tenant_id", "host", "hostname", "display_name", "description", "access_ip_v4",
		"access_ip_v6", "auto_disk_config", "instance_type_id", "image_ref", "kernel_id", "ramdisk_id", "root_device_name",
		"launch_index", "locked_by", "node", "cell_name", "soft_deleted", "changes-before",
	}
	if !c.micro.least(75) || slices.Contains(known, key) {
		return nil
	}
	return badRequest("Invalid input for query parameters %s. Value: %s. Additional properties are not allowed ('%s' was unexpected)", key, value, key)
}
