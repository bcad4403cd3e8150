package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/nearest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
)

// CheckRunner looks at what a runner's config.toml says of one of its [[runners]]
// entries beside plugin_config: whether the runner starts the plugin, can log in
// to servers, and how many it may ask for. It reads the files that key_path and
// plugin name, from the working directory if they are relative, as the runner
// does. It does not connect to a server. os is the operating system of the image,
// in Go's words; empty if it is not known.
func CheckRunner(config RunnerConfig, entry map[string]any, os string) []Finding {
	autoscaler, _ := entry["autoscaler"].(map[string]any)
	var findings []Finding
	if err := Misplaced(autoscaler); err != nil {
		findings = findingsOf("runners.autoscaler", err)
	}
	findings = append(findings, checkKeys("", autoscaler, autoscalerKeys())...)
	findings = append(findings, checkExecutor(entry)...)
	findings = append(findings, checkPlugin(autoscaler)...)
	findings = append(findings, checkMaxInstances(autoscaler)...)
	findings = append(findings, checkConcurrent(config.Content, entry, autoscaler)...)
	findings = append(findings, checkVersion(config.RunnerVersion, autoscaler)...)
	connector, ok := autoscaler["connector_config"].(map[string]any)
	if !ok {
		return append(findings, Finding{
			Subject: "connector_config",
			Detail:  "is missing, so the runner cannot log in to servers: " + wantedConnector,
		})
	}
	findings = append(findings, checkKeys("connector_config.", connector, connectorKeys())...)
	return append(findings, checkConnector(connector, autoscaler, os)...)
}

// note is something that stops nothing and is perhaps not meant.
func note(subject, format string, args ...any) []Finding {
	return []Finding{{Subject: subject, Detail: fmt.Sprintf(format, args...), OK: true, Note: true}}
}

// checkExecutor: of the runner's executors, two start plugins:
// https://docs.gitlab.com/runner/executors/
func checkExecutor(entry map[string]any) []Finding {
	const subject = "executor"
	starters := []string{"docker-autoscaler", "instance"}
	executor, isText := entry[subject].(string)
	switch {
	case entry[subject] != nil && !isText:
		return []Finding{{Subject: subject, Detail: fmt.Sprintf("must be %s, not %s", text, kindOf(entry[subject]))}}
	case executor == "":
		return []Finding{{Subject: subject, Detail: "is not set; docker-autoscaler and instance are those that start a plugin"}}
	case !slices.Contains(starters, executor):
		detail := executor + " starts no plugin, so jobs run elsewhere or not at all; docker-autoscaler and instance do"
		if near := nearest.To(executor, starters, 1); len(near) == 1 {
			detail += "; did you mean " + near[0] + "?"
		}
		return []Finding{{Subject: subject, Detail: detail}}
	case executor == "instance":
		return []Finding{good(subject, executor)}
	}
	return append([]Finding{good(subject, executor)}, checkDocker(entry)...)
}

// checkDocker: the docker-autoscaler executor runs no job without its section.
func checkDocker(entry map[string]any) []Finding {
	const subject = "runners.docker"
	section, isSection := entry["docker"].(map[string]any)
	image, _ := section["image"].(string)
	switch {
	case !isSection:
		return []Finding{{Subject: subject, Detail: "is missing, and docker-autoscaler runs no job without it; add [runners.docker] with image, which jobs use that name none"}}
	case image == "":
		return note(subject, "image is not set, so jobs that name no image fail")
	default:
		return []Finding{good(subject, "image "+image)}
	}
}

// checkPlugin looks whether there is an executable, where the plugin is given
// by its path. Whether a name is installed, fleeting-plugin doctor tells.
func checkPlugin(autoscaler map[string]any) []Finding {
	const subject = "plugin"
	path, isText := autoscaler[subject].(string)
	if autoscaler[subject] != nil && !isText {
		return nil // reported with the other kinds
	}
	if path == "" {
		return []Finding{{Subject: subject, Detail: "is missing, so the runner knows no plugin to start"}}
	}
	// The runner takes whatever is there for a path, and anything else for a name.
	switch info, err := os.Stat(path); {
	case err != nil && !places.IsPath(path):
		return nil
	case err != nil:
		return note(subject, "%s; without the file, the runner takes it for the name of an installed plugin", err)
	case info.IsDir() || info.Mode().Perm()&0o111 == 0 && !strings.EqualFold(filepath.Ext(path), ".exe"):
		return note(subject, "%s is no executable file", path)
	default:
		return []Finding{good(subject, path+" is an executable file")}
	}
}

// checkConcurrent compares what the runner runs at most with what the entry
// could run: the runner's own limit is 1 unless set.
func checkConcurrent(file, entry, autoscaler map[string]any) []Finding {
	perServer := int64(1)
	if n, ok := autoscaler["capacity_per_instance"].(int64); ok && n > 0 {
		perServer = n
	}
	servers, _ := autoscaler["max_instances"].(int64)
	could := min(max(servers, 0), int64(groupSize(autoscaler))) * perServer
	findings := checkLimit("concurrent", file["concurrent"], could)
	if findings == nil && (could > 1 || servers == 0) {
		findings = note("concurrent", "is not set, so the runner runs one job at a time, however many servers there may be")
	}
	return append(findings, checkLimit("limit", entry["limit"], could)...)
}

// checkLimit compares one limit of jobs, nil or 0 if not set, with what could run.
func checkLimit(key string, value any, could int64) []Finding {
	n, isNumber := value.(int64)
	jobs := "one job at a time"
	if n != 1 {
		jobs = fmt.Sprintf("%d jobs at a time", n)
	}
	switch {
	case value != nil && !isNumber:
		return []Finding{{Subject: key, Detail: fmt.Sprintf("must be %s, not %s", whole, kindOf(value))}}
	case n <= 0:
		return nil
	case n < could:
		return note(key, "%s, of the %d that max_instances and capacity_per_instance allow", jobs, could)
	default:
		return []Finding{good(key, jobs)}
	}
}

// checkLogin tells of a user with a key that nothing puts on the servers, as
// far as plugin_config says.
func checkLogin(connector, autoscaler map[string]any) []Finding {
	config, _ := autoscaler["plugin_config"].(map[string]any)
	server, _ := config["server"].(map[string]any)
	key, _ := connector["key_path"].(string)
	puts := func(name string) bool { return server[name] != nil && server[name] != "" }
	if key == "" || server == nil || slices.ContainsFunc([]string{"key_name", "user_data", "user_data_file"}, puts) {
		return nil
	}
	return note("connector_config", "neither server.key_name nor user data puts the key on servers, so the image has to have it")
}

// checkFloating tells of floating addresses that the runner is to use and the
// plugin does not wait for: Nova may show one late.
func checkFloating(connector, autoscaler map[string]any) []Finding {
	config, _ := autoscaler["plugin_config"].(map[string]any)
	if connector["use_external_addr"] != true || config["wait_for_floating_ip"] == true {
		return nil
	}
	return note("use_external_addr", "servers take jobs before Nova shows their floating address, and the runner then connects to the fixed one; set wait_for_floating_ip in plugin_config")
}
