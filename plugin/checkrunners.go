package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/access"
	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
)

// RunnerConfig is a runner's config.toml.
type RunnerConfig struct {
	// Path is where it was read from; empty if it was not read from a file.
	Path string
	// Content is the file as decoded from TOML.
	Content map[string]any
	// RunnerVersion is that of the gitlab-runner that reads it, such as
	// "17.11.0"; empty if it is not known.
	RunnerVersion string
}

// CheckRunners looks at [[runners]] entries of a config.toml as [Check] and
// [CheckRunner] do, and at whether two of its entries share a group. Others are
// the entries of this plugin that are not looked at otherwise. It changes nothing.
func CheckRunners(ctx context.Context, config RunnerConfig, entries, others []map[string]any, opts ...Option) []Finding {
	var findings []Finding
	if config.Path != "" {
		findings = fileFindings("config.toml", config.Path, true)
	}
	groups := map[sharedGroup]string{}
	for _, entry := range others {
		groups[groupOf(entry, "")] = labelOf(entry)
	}
	for _, entry := range entries {
		found := checkEntry(ctx, config, entry, opts)
		// Where the others are, their settings tell; two clouds that are one, the login.
		here, asWritten := groupOf(entry, found.place), groupOf(entry, "")
		other, shared := groups[here]
		if !shared {
			other, shared = groups[asWritten]
		}
		if shared && here.name != "" {
			found.findings = append(found.findings, Finding{Subject: "name", Detail: fmt.Sprintf(
				"the [[runners]] entry %q has the group %s, too, and each would delete the other's servers; give each entry a name of its own in plugin_config",
				other, here.name)})
		}
		groups[here], groups[asWritten] = labelOf(entry), labelOf(entry)
		for _, f := range found.findings {
			f.Runner = labelOf(entry)
			findings = append(findings, f)
		}
	}
	return findings
}

// checkEntry is all about one entry but its neighbours.
func checkEntry(ctx context.Context, config RunnerConfig, entry map[string]any, opts []Option) inspection {
	autoscaler, _ := entry["autoscaler"].(map[string]any)
	raw, err := json.Marshal(autoscaler["plugin_config"])
	if err != nil {
		return inspection{findings: []Finding{{Subject: "configuration", Detail: err.Error()}}}
	}
	found := inspect(ctx, raw, opts)
	found.findings = append(found.findings, CheckRunner(config, entry, found.os)...)
	found.findings = append(found.findings, found.quotaFindings(autoscaler)...)
	// What is in the wrong section is missing in the right one.
	slices.SortStableFunc(found.findings, func(a, b Finding) int { return misplacedFirst(b) - misplacedFirst(a) })
	return found
}

// misplacedFirst is 1 for a finding about a setting in the wrong section.
func misplacedFirst(f Finding) int {
	if strings.HasPrefix(f.Subject, "runners.autoscaler.") {
		return 1
	}
	return 0
}

// labelOf names an entry for people.
func labelOf(entry map[string]any) string {
	name, _ := entry["name"].(string)
	return name
}

// sharedGroup is what two entries must not have in common.
type sharedGroup struct{ place, name, tag string }

// groupOf is the group of an entry, in a place; without one, the settings that
// lead there have to tell.
func groupOf(entry map[string]any, place string) sharedGroup {
	autoscaler, _ := entry["autoscaler"].(map[string]any)
	settings, _ := autoscaler["plugin_config"].(map[string]any)
	text := func(key string) string { value, _ := settings[key].(string); return value }
	config := Config{Name: text("name"), Tag: text("tag")}
	config.setTextDefaults()
	if place == "" {
		place = fmt.Sprintf("%q of %q", text("cloud"), text("clouds_config"))
	}
	return sharedGroup{place, config.Name, config.Tag}
}

// quotaFindings compares what the runner may ask for with what the project may have.
func (i inspection) quotaFindings(autoscaler map[string]any) []Finding {
	most, _ := autoscaler["max_instances"].(int64)
	if i.room < 0 || most <= 0 {
		return nil
	}
	could := int64(i.room + i.servers)
	if could >= most {
		return []Finding{good("quota", fmt.Sprintf("room for %d servers of this kind, those of the group included", could))}
	}
	return note("quota", "room for %d servers of this kind, those of the group included, of the %d that max_instances allows: %s would run out first",
		could, most, i.limit)
}

// fileFindings tells who else can change a file, or read one that holds secrets.
// That its group can read it is how Kubernetes mounts files.
func fileFindings(subject, path string, secret bool) []Finding {
	others, err := access.Of(path)
	switch {
	case err != nil:
		return nil // what reads the file says why
	case others.Write != "":
		return note(subject, "%s can be changed by %s; let only the runner's user write it", path, others.Write)
	case secret && others.Read != "" && !strings.HasPrefix(others.Read, "its group"):
		return note(subject, "%s has secrets and can be read by %s; let only the runner's user read it", path, others.Read)
	default:
		return nil
	}
}

// families compares address_family with the subnets of the network that the
// runner connects on.
func (r *resources) families(ctx context.Context, client *cloud.Client, config Config, wrong *problems) {
	const key = "address_family"
	network := r.addressNetwork
	if network.ID == "" || network.Closed { // whose subnets are not shown
		return
	}
	ipv4, ipv6, err := client.Families(ctx, network)
	switch wants := config.AddressFamily; {
	case err != nil:
		r.doubts = append(r.doubts, note(key, "not looked at: %s", err)...)
	case !ipv4 && !ipv6:
		wrong.add("server.networks", "%s has no subnet, so servers get no address there", network)
	case wants == "ipv4" && !ipv4:
		wrong.add(key, "is ipv4, but %s has IPv6 subnets only; set address_family = \"ipv6\"", network)
	case wants == "ipv6" && !ipv6:
		wrong.add(key, "is ipv6, but %s has IPv4 subnets only; omit address_family", network)
	}
}
