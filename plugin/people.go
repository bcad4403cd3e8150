package plugin

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
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
// it found. The error is nil even when findings are not OK.
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

// GroupServer is a server that carries the tag of a group.
type GroupServer struct {
	// Name and ID are Nova's.
	Name string `json:"name"`
	ID   string `json:"id"`
	// State is what the plugin would report of it: creating, running or
	// deleting; "foreign" for one that is not the group's by name and owner
	// mark, which the plugin never touches.
	State string `json:"state"`
	// Detail is Nova's status, with the fault of a broken server.
	Detail string `json:"detail"`
	// Created is by the cloud's clock.
	Created time.Time `json:"created"`
	// Address is where the runner would connect to; empty if unknown.
	Address string `json:"address"`
}

// Foreign is the State of a server that carries the tag but is not the group's.
const Foreign = "foreign"

// List returns the servers that carry the group's tag, oldest first.
func List(ctx context.Context, config Config, opts ...Option) ([]GroupServer, error) {
	o, err := open(ctx, config, opts)
	if err != nil {
		return nil, err
	}
	defer o.client.Close()
	return o.listed(ctx)
}

func (o *openstack) listed(ctx context.Context) ([]GroupServer, error) {
	servers, err := o.List(ctx)
	if err != nil {
		return nil, err
	}
	listed := make([]GroupServer, 0, len(servers))
	for _, s := range servers {
		_, address := o.address.pick(s.Addresses)
		listed = append(listed, GroupServer{
			Name: s.Name, ID: s.ID, State: stateForPeople(s, o.config.Name), Detail: s.Detail, Created: s.Created, Address: address,
		})
	}
	slices.SortStableFunc(listed, func(a, b GroupServer) int { return a.Created.Compare(b.Created) })
	return listed, nil
}

func stateForPeople(s fleet.Server, group string) string {
	if !s.Owned || !fleet.IsName(group, s.Name) {
		return Foreign
	}
	switch s.Phase {
	case fleet.Running:
		return string(fleet.InUse)
	case fleet.Building:
		return string(fleet.Creating)
	case fleet.Deleting, fleet.Suspect, fleet.Broken, fleet.Gone:
		return string(fleet.BeingDeleted)
	case fleet.Unknown:
	}
	return "unknown"
}

// Intent is what the plugin would ask the cloud for.
type Intent struct {
	// Request is the body of the request that creates one server, with the
	// size of the user data in place of the data.
	Request any `json:"request"`
	// Room is how many such servers fit into what the project's limits leave;
	// -1 when nothing limits them.
	Room int `json:"room"`
	// Limit is what runs out first.
	Limit string `json:"limit"`
}

// Plan returns what creating a server would ask for, and how many fit into the
// project's limits. It changes nothing.
func Plan(ctx context.Context, config Config, opts ...Option) (Intent, error) {
	o, err := open(ctx, config, opts)
	if err != nil {
		return Intent{}, err
	}
	defer o.client.Close()
	limits, err := o.client.Limits(ctx)
	if err != nil {
		return Intent{}, err
	}
	spec := o.spec(config.Name+"-RANDOM", o.found.image.ID)
	size := base64.StdEncoding.EncodedLen(len(spec.UserData))
	spec.UserData = nil
	intent := Intent{Request: spec.Request()}
	if size > 0 {
		intent.Request = map[string]any{"request": spec.Request(), "user_data": fmt.Sprintf("%d of %d characters", size, maxUserData)}
	}
	intent.Room, intent.Limit = limits.Room(o.found.flavor)
	return intent, nil
}

// Cleanup deletes the servers of a group, for when its runner is gone: those
// that are its by name and owner mark, and no others. It returns them, and
// with dryRun only returns them.
func Cleanup(ctx context.Context, config Config, dryRun bool, opts ...Option) ([]GroupServer, error) {
	o, err := open(ctx, config, opts)
	if err != nil {
		return nil, err
	}
	defer o.client.Close()
	listed, err := o.listed(ctx)
	if err != nil {
		return nil, err
	}
	ours := slices.DeleteFunc(listed, func(s GroupServer) bool { return s.State == Foreign })
	if dryRun {
		return ours, nil
	}
	var failed []error
	for _, s := range ours {
		if err := o.deleteNow(ctx, s.ID); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.Name, err))
		}
	}
	return ours, errors.Join(failed...)
}

// deleteNow deletes a server, unlocking it if need be.
func (o *openstack) deleteNow(ctx context.Context, id string) error {
	err := o.Delete(ctx, id)
	if errors.Is(err, fleet.ErrLocked) {
		if err := o.Unlock(ctx, id); err != nil {
			return err
		}
		err = o.Delete(ctx, id)
	}
	if errors.Is(err, fleet.ErrGone) {
		return nil
	}
	return err
}

// open connects for one command.
func open(ctx context.Context, config Config, opts []Option) (*openstack, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	client, found, err := connect(ctx, config, New(opts...).opts, hclog.NewNullLogger())
	if err != nil {
		return nil, err
	}
	return newOpenStack(client, config, found), nil
}
