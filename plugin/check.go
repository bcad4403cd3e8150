package plugin

import (
	"bytes"
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
	// OK is false when the plugin would not start, or no job could run.
	OK bool `json:"ok"`
	// Note is true for what stops nothing and is perhaps not meant.
	Note bool `json:"note,omitempty"`
}

// good is something that is as it has to be.
func good(subject, detail string) Finding { return Finding{Subject: subject, Detail: detail, OK: true} }

// Check does what starting the plugin does, changes nothing, and reports what
// it found. Failures are findings that are not OK, the last of which is where
// it had to stop.
func Check(ctx context.Context, config Config, opts ...Option) []Finding {
	if err := config.check(); err != nil {
		return findingsOf("configuration", err)
	}
	findings := []Finding{good("configuration", "group "+config.Name+", tag "+config.Tag)}
	client, found, err := connect(ctx, config, New(opts...).opts, hclog.NewNullLogger())
	if err != nil {
		return append(findings, findingsOf("cloud "+config.Cloud, err)...)
	}
	defer client.Close()
	findings = append(findings,
		good("authentication", client.Place()), good("microversion", client.Microversion().String()))
	findings = append(findings, found.findings(config)...)
	servers, err := newOpenStack(client, config, found).List(ctx)
	if err != nil {
		return append(findings, findingsOf("listing", err)...)
	}
	return append(findings, good("listing", fmt.Sprintf("servers with the group's tag: %d", len(servers))))
}

// findings tells what the names of a configuration stand for.
func (r resources) findings(config Config) []Finding {
	server := config.Server
	findings := []Finding{
		good("server.flavor", fmt.Sprintf("%s: VCPUs %d, RAM %d MiB, disk %d GiB", cloud.Resource{ID: r.flavor.ID, Name: r.flavor.Name},
			r.flavor.VCPUs, r.flavor.RAM, r.flavor.Disk)),
		good("server.image", fmt.Sprintf("%s of %s, for %s/%s", cloud.Resource{ID: r.image.ID, Name: r.image.Name},
			r.image.Created.Format(time.DateTime), platformOf(r.image).os, platformOf(r.image).arch)),
	}
	for _, n := range r.networks {
		findings = append(findings, good("server.networks", n.String()))
	}
	for _, g := range r.securityGroups {
		findings = append(findings, good("server.security_groups", g.String()))
	}
	if r.serverGroup.ID != "" {
		findings = append(findings, good("server.server_group", r.serverGroup.String()))
	}
	if server.KeyName != "" {
		findings = append(findings, good("server.key_name", server.KeyName+", of the user that the plugin authenticates as"))
	}
	if len(r.userData) > 0 {
		findings = append(findings, userDataFinding(r.userData))
	}
	if server.VolumeSize > 0 {
		findings = append(findings, good("server.volume_size", fmt.Sprintf("boots from a volume of %d GiB", server.VolumeSize)))
	} else if r.flavor.Disk == 0 {
		findings = append(findings, Finding{
			Subject: "server.volume_size", Detail: "the flavor has no root disk, and most clouds then refuse a server without a volume",
		})
	}
	return findings
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

// findingsOf spreads a list of mistakes over findings.
func findingsOf(subject string, err error) []Finding {
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
