package openstacksim

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

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

func (s *Simulator) parseFilter(c *call) (serverFilter, error) {
	var f serverFilter
	for key, values := range c.query {
		value := values[len(values)-1]
		if f.takeList(key, value, c.micro) || f.takeText(key, value) {
			continue
		}
		if err := s.takeOther(c, &f, key, value, values); err != nil {
			return f, err
		}
	}
	return f, nil
}

// takeList takes a filter that is a list of tags.
func (f *serverFilter) takeList(key, value string, micro microversion) bool {
	list, known := map[string]*[]string{
		"tags": &f.tags, "tags-any": &f.tagsAny, "not-tags": &f.notTags, "not-tags-any": &f.notAny,
	}[key]
	if known && micro.least(26) { // older ones ignore it
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

func (s *Simulator) takeOther(c *call, f *serverFilter, key, value string, values []string) (err error) {
	switch key {
	case "name":
		if f.name, err = regexp.Compile("(?i)" + value); err != nil {
			return badRequest("Invalid input for query parameters name. Value: %s. '%s' is not a 'regex'", value, value)
		}
	case "status":
		for _, status := range values {
			if status = strings.ToUpper(status); knownStatus(status) {
				f.statuses = append(f.statuses, status)
			}
		}
		if f.statuses == nil {
			return badRequest("Invalid status value")
		}
	case "changes-since":
		f.since, err = s.parseTime(value)
	case "changes-before":
		f.before, err = s.parseTime(value)
	case "locked":
		if !c.micro.least(73) {
			return nil
		}
		locked, bad := strconv.ParseBool(value)
		if bad != nil {
			return badRequest("Invalid input for query parameters locked. Value: %s.", value)
		}
		f.locked = &locked
	default:
		return unknownFilter(c, key)
	}
	return err
}

func (s *Simulator) parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Add(-s.weather.Clock), nil
		}
	}
	return time.Time{}, badRequest("Invalid input for query parameters changes-since. Value: %s. '%s' is not a 'date-time'", text, text)
}

// unknownFilter refuses, from 2.75 on, what Nova does not know; before, and
// for what members may not filter by, the key is ignored.
func unknownFilter(c *call, key string) error {
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
	return badRequest("'%s' does not match any of the regexes: '^_'", key)
}

func knownStatus(status string) bool {
	return slices.Contains([]string{
		"ACTIVE", "BUILD", "DELETED", "ERROR", "HARD_REBOOT", "MIGRATING", "PASSWORD", "PAUSED", "REBOOT", "REBUILD", "RESCUE",
		"RESIZE", "REVERT_RESIZE", "SHELVED", "SHELVED_OFFLOADED", "SHUTOFF", "SOFT_DELETED", "SUSPENDED", "UNKNOWN", "VERIFY_RESIZE",
	}, status)
}
