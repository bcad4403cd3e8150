package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
)

// Finding is one thing that was looked at for [Check].
type Finding struct {
	// Subject is what: a setting, or a step such as "authentication".
	Subject string `json:"subject"`
	// Detail is what was found, or what is wrong.
	Detail string `json:"detail"`
	// OK is false when the plugin would not start.
	OK bool `json:"ok"`
}

// Check does what starting the plugin does, changes nothing, and reports what
// it found. Failures are findings that are not OK, the last of which is where
// it had to stop.
func Check(ctx context.Context, config Config, opts ...Option) []Finding {
	if err := config.check(); err != nil {
		return findingsOf("configuration", err)
	}
	findings := []Finding{{"configuration", "group " + config.Name + ", tag " + config.Tag, true}}
	client, found, err := connect(ctx, config, New(opts...).opts, hclog.NewNullLogger())
	if err != nil {
		return append(findings, findingsOf("cloud "+config.Cloud, err)...)
	}
	defer client.Close()
	findings = append(findings,
		Finding{"authentication", client.Place(), true}, Finding{"microversion", client.Microversion().String(), true})
	findings = append(findings, found.findings(config)...)
	servers, err := newOpenStack(client, config, found).List(ctx)
	if err != nil {
		return append(findings, findingsOf("listing", err)...)
	}
	return append(findings, Finding{"listing", fmt.Sprintf("servers with the group's tag: %d", len(servers)), true})
}

// findings tells what the names of a configuration stand for.
func (r resources) findings(config Config) []Finding {
	server := config.Server
	findings := []Finding{
		{"server.flavor", fmt.Sprintf("%s: VCPUs %d, RAM %d MiB, disk %d GiB", cloud.Resource{ID: r.flavor.ID, Name: r.flavor.Name},
			r.flavor.VCPUs, r.flavor.RAM, r.flavor.Disk), true},
		{"server.image", fmt.Sprintf("%s of %s, for %s/%s", cloud.Resource{ID: r.image.ID, Name: r.image.Name},
			r.image.Created.Format(time.DateTime), platformOf(r.image).os, platformOf(r.image).arch), true},
	}
	for _, n := range r.networks {
		findings = append(findings, Finding{"server.networks", n.String(), true})
	}
	for _, g := range r.securityGroups {
		findings = append(findings, Finding{"server.security_groups", g.String(), true})
	}
	if r.serverGroup.ID != "" {
		findings = append(findings, Finding{"server.server_group", r.serverGroup.String(), true})
	}
	if server.KeyName != "" {
		findings = append(findings, Finding{"server.key_name", server.KeyName + ", of the user that the plugin authenticates as", true})
	}
	if len(r.userData) > 0 {
		findings = append(findings, Finding{"server.user_data", fmt.Sprintf("%d bytes as sent", len(r.userData)), true})
	}
	if server.VolumeSize > 0 {
		findings = append(findings, Finding{"server.volume_size", fmt.Sprintf("boots from a volume of %d GiB", server.VolumeSize), true})
	} else if r.flavor.Disk == 0 {
		findings = append(findings, Finding{
			"server.volume_size", "the flavor has no root disk, and most clouds then refuse a server without a volume", false,
		})
	}
	return findings
}

// findingsOf spreads a list of mistakes over findings.
func findingsOf(subject string, err error) []Finding {
	var config *ConfigError
	if !errors.As(err, &config) {
		return []Finding{{subject, err.Error(), false}}
	}
	var findings []Finding
	for _, p := range config.Problems {
		findings = append(findings, Finding{p.Key, p.Text, false})
	}
	return findings
}
