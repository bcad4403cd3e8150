package nova

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
)

func (s *Nova) listServers(c *cloud.Call) (*cloud.Answer, error) {
	page, next, err := s.page(c)
	if err != nil {
		return nil, err
	}
	views := []any{}
	for _, srv := range page {
		views = append(views, map[string]any{"id": srv.id, "name": srv.name, "links": links(c, "servers", srv.id)})
	}
	return listing(views, next)
}

func (s *Nova) detailServers(c *cloud.Call) (*cloud.Answer, error) {
	page, next, err := s.page(c)
	if err != nil {
		return nil, err
	}
	views := []any{}
	for _, srv := range page {
		if s.cloud.Condition.CellDown {
			views = append(views, s.unreachableView(c, srv))
			continue
		}
		views = append(views, s.view(c, srv, false))
	}
	return listing(views, next)
}

func listing(views []any, next string) (*cloud.Answer, error) {
	body := map[string]any{"servers": views}
	if next != "" {
		body["servers_links"] = []cloud.Link{{Rel: "next", Href: next}}
	}
	return cloud.OK(body)
}

// unreachableView is what Nova says of a server whose cell is down.
func (s *Nova) unreachableView(c *cloud.Call, srv *server) map[string]any {
	return map[string]any{
		"id": srv.id, "status": "UNKNOWN", "tenant_id": srv.project,
		"created": s.cloud.Stamp(srv.created, cloud.Seconds), "links": links(c, "servers", srv.id),
	}
}

func (s *Nova) showServer(c *cloud.Call) (*cloud.Answer, error) {
	srv, err := s.findServer(c)
	if err != nil {
		return nil, err
	}
	if srv.fate.Unreadable {
		return nil, unexpected()
	}
	if !s.cloud.Condition.CellDown {
		return cloud.OK(map[string]any{"server": s.view(c, srv, true)})
	}
	if !c.AtLeast(69) {
		return nil, unexpected()
	}
	view := s.unreachableView(c, srv)
	view["OS-EXT-STS:power_state"] = 0
	view["OS-EXT-AZ:availability_zone"] = srv.wantZone
	view["user_id"], view["image"], view["flavor"] = srv.user, "", embeddedFlavor(c, srv.flavor)
	return cloud.OK(map[string]any{"server": view})
}

// page finds the servers of a listing and the link to its next page.
func (s *Nova) page(c *cloud.Call) ([]*server, string, error) {
	filter, err := s.parseFilter(c)
	if err != nil {
		return nil, "", err
	}
	limit, err := s.pageSize(c.Query.Get("limit"))
	if err != nil {
		return nil, "", err
	}
	ordered, err := s.from(c, c.Query.Get("marker"))
	if err != nil {
		return nil, "", err
	}
	if s.cloud.Condition.CellDown && (!filter.all() || !c.AtLeast(69)) {
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
func (s *Nova) from(c *cloud.Call, marker string) ([]*server, error) {
	var ordered []*server
	for _, srv := range s.order {
		if srv.project == c.Auth.Project.ID {
			ordered = append(ordered, srv)
		}
	}
	if c.Query.Get("sort_key") == "display_name" {
		slices.SortStableFunc(ordered, func(a, b *server) int { return strings.Compare(a.name, b.name) })
	}
	if c.Query.Get("sort_dir") != "asc" {
		slices.Reverse(ordered)
	}
	if marker == "" {
		return ordered, nil
	}
	at := slices.IndexFunc(ordered, func(srv *server) bool {
		return srv.id == marker
	})
	if at < 0 {
		return nil, cloud.BadRequest("marker [%s] not found", marker)
	}
	return ordered[at+1:], nil
}

func (s *Nova) pageSize(asked string) (int, error) {
	if asked == "" {
		return s.settings.MaxLimit, nil
	}
	n, err := strconv.Atoi(asked)
	if err != nil || n < 0 {
		return 0, cloud.BadRequest("Invalid input for query parameters limit. Value: %s. '%s' does not match '^[0-9]*$'", asked, asked)
	}
	if n == 0 {
		return s.settings.MaxLimit, nil
	}
	return min(n, s.settings.MaxLimit), nil
}

func nextLink(c *cloud.Call, marker string) string {
	query := url.Values{}
	for key, values := range c.Query {
		if key != "marker" {
			query[key] = values
		}
	}
	encoded := query.Encode()
	if encoded != "" {
		encoded += "&"
	}
	return c.Base + strings.TrimSuffix(c.Request.URL.Path, "/") + "?" + encoded + "marker=" + marker
}

// listed tells whether listings show the server at all: deleted ones only to
// callers that ask for changes, and all as late as the lag says.
func (s *Nova) listed(srv *server, f serverFilter) bool {
	age, lag := s.cloud.Now().Sub(srv.created), s.cloud.Condition.ListingLag
	if age < lag || age < srv.fate.HiddenFor || srv.fate.Unreadable && !srv.gone() {
		return false
	}
	if !srv.gone() {
		return srv.vm != vmSoftDeleted
	}
	dead := s.cloud.Now().Sub(srv.terminated)
	return !f.since.IsZero() || dead < lag || dead < srv.fate.LingersFor || srv.fate.Ghost
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
	tags := srv.tags
	if srv.gone() && !f.since.IsZero() {
		tags = nil // they went with the server
	}
	has := func(tag string) bool { return slices.Contains(tags, tag) }
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

func (s *Nova) parseFilter(c *cloud.Call) (serverFilter, error) {
	var f serverFilter
	for key, values := range c.Query {
		value := values[len(values)-1]
		if f.takeList(key, value, c) || f.takeText(key, value) {
			continue
		}
		if err := s.takeOther(c, &f, key, value, values); err != nil {
			return f, err
		}
	}
	return f, nil
}

// takeList takes a filter that is a list of tags.
func (f *serverFilter) takeList(key, value string, c *cloud.Call) bool {
	list, known := map[string]*[]string{
		"tags": &f.tags, "tags-any": &f.tagsAny, "not-tags": &f.notTags, "not-tags-any": &f.notAny,
	}[key]
	if known && c.AtLeast(26) { // older ones ignore it
		*list = strings.Split(value, ",")
	}
	return known
}

// takeText takes a filter that is one value.
func (f *serverFilter) takeText(key, value string) bool {
	text, known := map[string]*string{
		"flavor": &f.flavor, "image": &f.image, "reservation_id": &f.reservation, "uuid": &f.id,
	}[key]
	if known {
		*text = value
	}
	return known
}

func (s *Nova) takeOther(c *cloud.Call, f *serverFilter, key, value string, values []string) (err error) {
	switch key {
	case "name":
		if f.name, err = regexp.Compile("(?i)" + value); err != nil {
			return cloud.BadRequest("Invalid input for query parameters name. Value: %s. '%s' is not a 'regex'", value, value)
		}
	case "status":
		for _, status := range values {
			if status = strings.ToUpper(status); knownStatus(status) {
				f.statuses = append(f.statuses, status)
			}
		}
		if f.statuses == nil {
			return cloud.BadRequest("Invalid status value")
		}
	case "changes-since":
		f.since, err = s.parseTime(value)
	case "changes-before":
		f.before, err = s.parseTime(value)
	case "locked":
		if !c.AtLeast(73) {
			return nil
		}
		locked, bad := strconv.ParseBool(value)
		if bad != nil {
			return cloud.BadRequest("Invalid input for query parameters locked. Value: %s.", value)
		}
		f.locked = &locked
	default:
		return unknownFilter(c, key)
	}
	return err
}

func (s *Nova) parseTime(text string) (time.Time, error) {
	if t, valid := s.cloud.ParseTime(text); valid {
		return t, nil
	}
	return time.Time{}, cloud.BadRequest("Invalid input for query parameters changes-since. Value: %s. '%s' is not a 'date-time'", text, text)
}

// unknownFilter refuses, from 2.75 on, what Nova does not know; before, and
// for what members may not filter by, the key is ignored.
func unknownFilter(c *cloud.Call, key string) error {
	known := []string{
		"limit", "marker", "sort_key", "sort_dir", "all_tenants", "deleted", "ip", "ip6", "availability_zone",
		"config_drive", "key_name", "created_at", "launched_at", "terminated_at", "power_state", "task_state", "vm_state",
		"progress", "user_id", "project_id", "tenant_id", "host", "hostname", "display_name", "description", "access_ip_v4",
		"access_ip_v6", "auto_disk_config", "instance_type_id", "image_ref", "kernel_id", "ramdisk_id", "root_device_name",
		"launch_index", "locked_by", "node", "cell_name", "soft_deleted", "changes-before",
	}
	if !c.AtLeast(75) || slices.Contains(known, key) {
		return nil
	}
	return cloud.BadRequest("'%s' does not match any of the regexes: '^_'", key)
}

func knownStatus(status string) bool {
	return slices.Contains([]string{
		"ACTIVE", "BUILD", "DELETED", "ERROR", "HARD_REBOOT", "MIGRATING", "PASSWORD", "PAUSED", "REBOOT", "REBUILD", "RESCUE",
		"RESIZE", "REVERT_RESIZE", "SHELVED", "SHELVED_OFFLOADED", "SHUTOFF", "SOFT_DELETED", "SUSPENDED", "UNKNOWN", "VERIFY_RESIZE",
	}, status)
}
