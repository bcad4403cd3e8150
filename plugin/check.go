package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// Finding is one thing that was looked at for [Check].
type Finding struct {
	// Runner is the name of the [[runners]] entry; empty for what is about the
	// whole file, or no config.toml.
	Runner string `json:"runner,omitempty"`
	// Subject is what: a setting, or a step such as "authentication".
	Subject string `json:"subject"`
	// Detail is what was found, or what is wrong.
	Detail string `json:"detail"`
	// OK is false when the plugin would not start, or no job could run.
	OK bool `json:"ok"`
	// Note is true for what stops nothing and is perhaps not meant.
	Note bool `json:"note,omitempty"`
}

// good is something that is as it has to be.
func good(subject, detail string) Finding { return Finding{Subject: subject, Detail: detail, OK: true} }

// Check does what starting the plugin does with a configuration, the JSON form
// of plugin_config. It changes nothing, and reports what it found. Failures are
// findings that are not OK. They do not keep it from looking at the rest, as
// far as that can be looked at.
func Check(ctx context.Context, raw []byte, opts ...Option) []Finding {
	return inspect(ctx, raw, opts).findings
}

// inspection is what was found about a plugin_config, with what else depends on it.
type inspection struct {
	findings []Finding
	place    string // where servers are made; empty if it is not known
	os       string // of the image; empty if it is not known
	servers  int    // of the group
	room     int    // for more servers in the project's quota, -1 for no limit or not known
	limit    string // what runs out first
}

func inspect(ctx context.Context, raw []byte, opts []Option) inspection {
	config, err := ParseConfig(raw)
	report := inspection{room: -1, findings: findingsOf("configuration", err)}
	if err == nil {
		report.findings = []Finding{good("configuration", "group "+config.Name+", tag "+config.Tag)}
	}
	if config.Cloud == "" && !config.AuthFromEnv {
		report.findings = append(report.findings, config.Server.localFindings()...)
		return report
	}
	report.inspectCloud(ctx, config, err, New(opts...).opts)
	return report
}

// inspectCloud looks at the cloud of a configuration, which may have mistakes.
func (i *inspection) inspectCloud(ctx context.Context, config Config, mistaken error, opts options) {
	add := func(findings ...Finding) { i.findings = append(i.findings, findings...) }
	logger := hclog.NewNullLogger()
	client, err := dial(ctx, config, opts, logger)
	if err != nil {
		add(findingsOf("cloud "+config.Cloud, err)...)
		add(config.Server.localFindings()...)
		return
	}
	defer client.Close()
	i.place = client.Place()
	add(good("authentication", i.place))
	add(loginFindings(client.Login())...)
	add(good("microversion", client.Microversion().String()))
	found, wrong, failed := resolve(ctx, client, config, logger)
	found.families(ctx, client, config, &wrong)
	add(found.findings(config, wrong)...)
	for _, err := range failed {
		add(findingsOf("cloud "+config.Cloud, err)...)
	}
	if found.image.ID != "" {
		i.os = platformOf(found.image).os
	}
	var mistakes *ConfigError
	if errors.As(mistaken, &mistakes) && (problems(mistakes.Problems).has("name") || problems(mistakes.Problems).has("tag")) {
		return
	}
	servers, err := newOpenStack(client, config, logger).List(ctx)
	if err != nil {
		add(findingsOf("listing", err)...)
		return
	}
	add(good("listing", fmt.Sprintf("servers with the group's tag: %d", len(servers))))
	i.inspectQuota(ctx, client, found, servers, config.Name)
}

// inspectQuota finds how many servers fit. Credentials that may not ask for the
// limits leave it open.
func (i *inspection) inspectQuota(ctx context.Context, client *cloud.Client, found resources, servers []fleet.Server, group string) {
	for _, s := range servers {
		if s.Owned && fleet.IsName(group, s.Name) {
			i.servers++
		}
	}
	if found.flavor.ID == "" {
		return
	}
	if limits, err := client.Limits(ctx); err == nil {
		i.room, i.limit = limits.Room(found.flavor)
	}
}

// loginFindings are about the entry of clouds.yaml and its files.
func loginFindings(login cloud.Login) []Finding {
	var findings []Finding
	for _, remark := range login.Remarks {
		findings = append(findings, note("clouds.yaml", "%s", remark)...)
	}
	for _, file := range login.Files {
		findings = append(findings, fileFindings("clouds.yaml", file.Path, file.Secret)...)
	}
	if login.Insecure {
		findings = append(findings, note("clouds.yaml", "verify is false, or insecure true: the cloud's certificate is not checked, and anyone who controls the network can read the credentials; set cacert instead")...)
	}
	if inClear(login.AuthURL) {
		return append(findings, note("clouds.yaml", "auth_url %s has no TLS: credentials and tokens can be read on the network; use https", login.AuthURL)...)
	}
	for _, service := range slices.Sorted(maps.Keys(login.Services)) {
		if address := login.Services[service]; inClear(address) {
			findings = append(findings, note("clouds.yaml",
				"the %s service at %s has no TLS: the token can be read on the network; set %s_endpoint_override to an address with https", service, address, service)...)
		}
	}
	return findings
}

// inClear tells whether what is sent to an address can be read on a network.
func inClear(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && parsed.Scheme == "http" && !onThisMachine(parsed.Hostname())
}

// onThisMachine tells whether what is sent to a host reaches no network.
func onThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// localFindings are about what needs no cloud.
func (s *ServerConfig) localFindings() []Finding {
	data, problem := s.loadUserData()
	switch {
	case problem != nil:
		return []Finding{{Subject: problem.Key, Detail: problem.Text}}
	case len(data) > 0:
		return []Finding{userDataFinding(data)}
	default:
		return nil
	}
}

// findings tells what the names of a configuration stand for, and which are
// wrong, in the order of the keys.
func (r resources) findings(config Config, wrong problems) []Finding {
	all := append(r.named(), r.doubts...)
	all = append(all, r.disk(config.Server)...)
	for _, p := range wrong {
		// What is there, and does not fit, is not well.
		all = slices.DeleteFunc(all, func(f Finding) bool {
			return f.OK && !f.Note && f.Subject == p.Key && (p.Key == "server.flavor" || p.Key == "server.volume_size")
		})
		all = append(all, Finding{Subject: p.Key, Detail: p.Text})
	}
	order := []string{
		"server.flavor", "server.image", "server.networks", "address_network", "address_family", "server.security_groups", "server.server_group",
		"server.availability_zone", "server.key_name", "server.user_data", "server.user_data_file", "server.volume_size", "server.volume_type",
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return slices.Index(order, a.Subject) - slices.Index(order, b.Subject) })
	return all
}

// named are the things that were found by their names.
func (r resources) named() []Finding {
	var findings []Finding
	add := func(subject, id, detail string) {
		if id != "" {
			findings = append(findings, good(subject, detail))
		}
	}
	add("server.flavor", r.flavor.ID, fmt.Sprintf("%s: VCPUs %d, RAM %d MiB, disk %d GiB",
		cloud.Resource{ID: r.flavor.ID, Name: r.flavor.Name}, r.flavor.VCPUs, r.flavor.RAM, r.flavor.Disk))
	add("server.image", r.image.ID, fmt.Sprintf("%s of %s, for %s/%s", cloud.Resource{ID: r.image.ID, Name: r.image.Name},
		r.image.Created.Format(time.DateTime), platformOf(r.image).os, platformOf(r.image).arch))
	for _, n := range r.networks {
		if !n.Closed {
			add("server.networks", n.ID, n.String())
		}
	}
	for _, g := range r.securityGroups {
		add("server.security_groups", g.ID, g.String())
	}
	add("server.server_group", r.serverGroup.ID, r.serverGroup.String())
	add("server.availability_zone", r.zone, r.zone)
	add("server.key_name", r.keyPair, r.keyPair+", of the user that the plugin authenticates as")
	add("server.volume_type", r.volumeType.ID, r.volumeType.String())
	if len(r.userData) > 0 {
		findings = append(findings, userDataFinding(r.userData))
	}
	return findings
}

// disk tells what a server boots from.
func (r resources) disk(server ServerConfig) []Finding {
	const subject = "server.volume_size"
	switch {
	case server.VolumeSize > 0:
		return []Finding{good(subject, fmt.Sprintf("boots from a volume of %d GiB", server.VolumeSize))}
	case r.flavor.ID != "" && r.flavor.Disk == 0:
		return []Finding{{Subject: subject, Detail: "the flavor has no root disk, and most clouds then refuse a server without a volume"}}
	default:
		return nil
	}
}

// userDataFinding also tells of blanks in front, which come from user data that
// was indented to fit the TOML around it.
func userDataFinding(data []byte) Finding {
	found := good("server.user_data", fmt.Sprintf("%d bytes as sent", len(data)))
	if bytes.ContainsRune([]byte(" \t\r\n"), rune(data[0])) {
		found.Note = true
		found.Detail += "; it begins with a blank, which is sent too: begin it at the start of a line"
	}
	return found
}

// findingsOf spreads a list of mistakes over findings; none for nil.
func findingsOf(subject string, err error) []Finding {
	if err == nil {
		return nil
	}
	var config *ConfigError
	if !errors.As(err, &config) {
		return []Finding{{Subject: subject, Detail: err.Error()}}
	}
	var findings []Finding
	for _, p := range config.Problems {
		findings = append(findings, Finding{Subject: p.Key, Detail: p.Text})
	}
	return findings
}
