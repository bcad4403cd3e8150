package plugin

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	"github.com/radome-io/fleeting-plugin-openstack/internal/nearest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

// Kinds of values, as TOML has them.
const (
	text  = "a string"
	flag  = "true or false"
	whole = "a whole number"
	other = "" // not looked at
)

// autoscalerKeys are what the runner knows in [runners.autoscaler], with the
// kind of those that are looked at here:
// https://docs.gitlab.com/runner/configuration/advanced-configuration/#the-runnersautoscaler-section
func autoscalerKeys() map[string]string {
	return map[string]string{
		"plugin": text, "capacity_per_instance": whole, "max_use_count": whole, "max_instances": whole,
		"instance_ready_command": text, "plugin_config": other, "connector_config": other, "policy": other,
		"delete_instances_on_shutdown": flag, "update_interval": other, "update_interval_when_expecting": other,
		"instance_acquire_timeout": other, "instance_operation_time_buckets": other, "state_storage": other,
		"scale_throttle": other, "vm_isolation": other, "log_internal_ip": flag, "log_external_ip": flag,
		"deletion_retry_interval": other, "shutdown_deletion_interval": other, "shutdown_deletion_retries": whole,
		"failure_threshold": whole, "reservation_throttling": flag, "instance_creation_time_buckets": other,
		"instance_is_running_time_buckets": other, "instance_deletion_time_buckets": other,
		"instance_readiness_time_buckets": other, "instance_life_duration_buckets": other,
	}
}

// connectorKeys are those of [runners.autoscaler.connector_config].
func connectorKeys() map[string]string {
	return map[string]string{
		"os": text, "arch": text, "protocol": text, "protocol_port": whole, "username": text, "password": text,
		"key_path": text, "use_static_credentials": flag, "keepalive": other, "timeout": other, "use_external_addr": flag,
	}
}

const wantedConnector = "set username, key_path or password and use_static_credentials = true"

// Misplaced is an error that names the settings of plugin_config that stand in
// the [runners.autoscaler] section itself, where the runner ignores them, or nil.
// It is a [ConfigError].
func Misplaced(autoscaler map[string]any) error {
	var (
		found    problems
		runners  = autoscalerKeys()
		settings = configKeys()
	)
	for _, key := range slices.Sorted(maps.Keys(autoscaler)) {
		if _, known := runners[key]; known || !slices.Contains(settings, key) {
			continue
		}
		right := key + " in [runners.autoscaler.plugin_config]"
		if _, section := autoscaler[key].(map[string]any); section {
			right = "[runners.autoscaler.plugin_config." + key + "]"
		}
		found.add("runners.autoscaler."+key, "is in the wrong section: write %s", right)
	}
	return found.err()
}

// checkKeys reports values of a wrong type, with which the runner does not
// start, and keys that are nearly known, which it ignores.
func checkKeys(prefix string, section map[string]any, known map[string]string) []Finding {
	var findings []Finding
	names := slices.Sorted(maps.Keys(known))
	for _, key := range slices.Sorted(maps.Keys(section)) {
		kind, ok := known[key]
		if prefix == "" && slices.Contains(configKeys(), key) {
			continue // see Misplaced
		}
		switch is := kindOf(section[key]); {
		case ok && kind != other && kind != is:
			findings = append(findings, Finding{Subject: prefix + key, Detail: fmt.Sprintf("must be %s, not %s", kind, is)})
		case !ok:
			near := nearest.To(key, names, 1)
			if len(near) == 1 && section[near[0]] == nil {
				findings = append(findings, note(prefix+key, "is not known here; did you mean %s?", near[0])...)
			}
		}
	}
	return findings
}

// kindOf names the type of a value.
func kindOf(value any) string {
	switch value.(type) {
	case string:
		return text
	case bool:
		return flag
	case int64:
		return whole
	case float64:
		return "a number with a fraction"
	case map[string]any:
		return "a section"
	default:
		return "a list"
	}
}

// groupSize is how many servers the group can have.
func groupSize(autoscaler map[string]any) int {
	config, _ := autoscaler["plugin_config"].(map[string]any)
	if n, ok := config["max_size"].(int64); ok && n > 0 && n < maxSize {
		return int(n)
	}
	return maxSize
}

func checkMaxInstances(autoscaler map[string]any) []Finding {
	const subject = "max_instances"
	most := groupSize(autoscaler)
	value, set := autoscaler[subject]
	n, isNumber := value.(int64)
	switch {
	case set && !isNumber:
		return nil // reported with the other kinds
	case n < 0:
		return []Finding{{Subject: subject, Detail: fmt.Sprintf("must be positive, not %d", n)}}
	case n == 0:
		is := "is not set"
		if set {
			is = "is 0, which sets no limit"
		}
		return note(subject, "%s, so the runner may ask for as many servers as the plugin makes: %d", is, most)
	case n > int64(most):
		remedy := "divide the servers over several [[runners]] entries"
		if most < maxSize {
			remedy = "raise max_size in plugin_config"
		}
		return []Finding{{Subject: subject, Detail: fmt.Sprintf("is %d, and the group has %d servers at most: the runner does not start; %s", n, most, remedy)}}
	default:
		return []Finding{{Subject: subject, Detail: fmt.Sprintf("up to %d servers", n), OK: true}}
	}
}

// checkConnector tells whether there is something to log in with. The plugin
// provisions no credentials, so they have to be here. What the entry leaves open
// follows from the image.
func checkConnector(connector, autoscaler map[string]any, imageOS string) []Finding {
	var missing []string
	username, _ := connector["username"].(string)
	password, _ := connector["password"].(string)
	key, _ := connector["key_path"].(string)
	static, _ := connector["use_static_credentials"].(bool)
	protocol, because := protocolOf(connector, imageOS)
	if username == "" {
		missing = append(missing, "username")
	}
	switch winrm := strings.HasPrefix(string(protocol), "winrm"); {
	case winrm && password == "":
		missing = append(missing, fmt.Sprintf("password, which %s needs%s", protocol, because))
	case !winrm && password == "" && key == "":
		missing = append(missing, "key_path or password")
	}
	if !static {
		missing = append(missing, "use_static_credentials = true")
	}
	var findings []Finding
	if _, known := provider.DefaultProtocolPorts[protocol]; !known {
		findings = append(findings, Finding{
			Subject: "connector_config.protocol", Detail: fmt.Sprintf("must be ssh, winrm or winrm+https, not %q", protocol),
		})
	}
	if len(missing) > 0 {
		findings = append(findings, Finding{
			Subject: "connector_config", Detail: "the runner cannot log in to servers without " + strings.Join(missing, ", "),
		})
	}
	if key != "" {
		findings = append(findings, checkKey(key)...)
	}
	if len(missing) == 0 {
		findings = append(findings, good("connector_config", fmt.Sprintf("logs in as %s by %s%s", username, protocol, because)))
		findings = append(findings, checkLogin(connector, autoscaler)...)
		findings = append(findings, checkFloating(connector, autoscaler)...)
	}
	return findings
}

// protocolOf is how the runner reaches servers, with the reason where it follows
// from the image.
func protocolOf(connector map[string]any, imageOS string) (protocol provider.Protocol, because string) {
	set, _ := connector["protocol"].(string)
	os, _ := connector["os"].(string)
	if os == "" && set == "" && imageOS == "windows" {
		because = " (the image has os_type=windows)"
	}
	complete := platform{os: imageOS}.complete(provider.ConnectorConfig{OS: os, Protocol: provider.Protocol(set)})
	return complete.Protocol, because
}

// A later setting is one that older runners ignore.
type later struct {
	section, key, since string
	// means is what ignoring it does; empty if jobs run all the same.
	means string
}

// laterSettings are of the sections that the plugin's guides show. The versions are
// those of the runner's releases whose configuration first has the key.
func laterSettings() []later {
	const connector = "connector_config"
	return []later{
		{connector, "protocol_port", "17.11.0", "the runner connects to the protocol's default port"},
		{"", "scale_throttle", "17.0.0", ""},
		{"", "update_interval", "17.0.0", ""},
		{"", "update_interval_when_expecting", "17.0.0", ""},
		{"", "state_storage", "17.5.0", ""},
		{"", "instance_acquire_timeout", "18.1.0", ""},
		{"", "log_internal_ip", "18.2.0", ""},
		{"", "log_external_ip", "18.2.0", ""},
		{"", "deletion_retry_interval", "18.3.0", ""},
		{"", "failure_threshold", "18.3.0", ""},
		{"", "shutdown_deletion_interval", "18.3.0", ""},
		{"", "shutdown_deletion_retries", "18.3.0", ""},
		{"", "reservation_throttling", "18.7.0", ""},
	}
}

// oldestRunner is the first that the plugin is known to work with.
const oldestRunner = "16.11.0"

// checkVersion compares what an entry uses with the version of the runner.
func checkVersion(version string, autoscaler map[string]any) []Finding {
	const subject = "gitlab-runner"
	connector, _ := autoscaler["connector_config"].(map[string]any)
	needs := []later{}
	for _, setting := range laterSettings() {
		section := autoscaler
		if setting.section != "" {
			section = connector
		}
		if value, set := section[setting.key]; set && !isDefaultPort(setting.key, value, connector) {
			needs = append(needs, setting)
		}
	}
	if connector["protocol"] == "winrm+https" {
		needs = append(needs, later{"connector_config", `protocol = "winrm+https"`, "17.11.0", "the runner cannot connect"})
	}
	if version == "" {
		return unknownVersion(subject, needs)
	}
	if older(version, oldestRunner) {
		return []Finding{{Subject: subject, Detail: fmt.Sprintf("version %s is older than %s, the first that the plugin works with", version, oldestRunner)}}
	}
	findings := []Finding{good(subject, "version "+version)}
	for _, setting := range needs {
		subject := strings.TrimPrefix(setting.section+"."+setting.key, ".")
		switch {
		case !older(version, setting.since):
		case setting.means != "":
			findings = append(findings, Finding{Subject: subject, Detail: fmt.Sprintf(
				"needs GitLab Runner %s or later; %s does not know it, and %s", setting.since, version, setting.means)})
		default:
			findings = append(findings, note(subject, "needs GitLab Runner %s or later; %s ignores it", setting.since, version)...)
		}
	}
	return findings
}

// unknownVersion tells the newest version that what is used needs.
func unknownVersion(subject string, needs []later) []Finding {
	var newest later
	for _, setting := range needs {
		if newest.since == "" || older(newest.since, setting.since) {
			newest = setting
		}
	}
	if newest.since == "" {
		return nil
	}
	return note(subject, "is not in the path, so its version is not known; %s needs %s or later", newest.key, newest.since)
}

// isDefaultPort tells a port that is dialled without the setting, too.
func isDefaultPort(key string, value any, connector map[string]any) bool {
	if key != "protocol_port" {
		return false
	}
	protocol, _ := protocolOf(connector, "")
	port, _ := value.(int64)
	return port == 0 || int(port) == provider.DefaultProtocolPorts[protocol]
}

// older compares versions of the form 17.11.0; what follows, as in 17.11.0~beta,
// does not count.
func older(a, b string) bool {
	return slices.Compare(numbers(a), numbers(b)) < 0
}

func numbers(version string) []int {
	var parts []int
	for part := range strings.SplitSeq(version, ".") {
		if end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
			part = part[:end]
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		parts = append(parts, n)
	}
	return parts
}

// checkKey reads the key that the runner logs in with.
func checkKey(path string) []Finding {
	const subject = "key_path"
	content, err := os.ReadFile(path)
	if err != nil {
		return []Finding{{Subject: subject, Detail: err.Error()}}
	}
	block, _ := pem.Decode(content)
	unmarked, err := textfile.Unmarked(content)
	switch {
	case err != nil || len(unmarked) < len(content):
		return []Finding{{Subject: subject, Detail: path + " begins with a byte order mark, behind which the runner finds no key; save it as UTF-8 without one, or as ASCII"}}
	case block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return []Finding{{Subject: subject, Detail: path + " holds no private key in PEM"}}
	case encrypted(block):
		return []Finding{{Subject: subject, Detail: path + " has a passphrase, which the runner cannot ask for; use a key without one (ssh-keygen -p)"}}
	default:
		return append([]Finding{good(subject, path+" holds a private key")}, fileFindings(subject, path, true)...)
	}
}

// encrypted tells a key with a passphrase: in the forms of OpenSSL (RFC 1421, RFC
// 5958) and in OpenSSH's, which begins with the name of the cipher
// (PROTOCOL.key of OpenSSH).
func encrypted(block *pem.Block) bool {
	rest, openSSH := bytes.CutPrefix(block.Bytes, []byte("openssh-key-v1\x00"))
	unencrypted := bytes.HasPrefix(rest, []byte("\x00\x00\x00\x04none"))
	return block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" || openSSH && !unencrypted
}

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
