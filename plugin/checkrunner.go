package plugin

import (
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/nearest"
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

func checkMaxInstances(autoscaler map[string]any) []Finding {
	const subject = "max_instances"
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
		return note(subject, "%s, so the runner may ask for as many servers as the plugin makes: %d", is, maxSize)
	case n > maxSize:
		return note(subject, "is %d, and a group has %d at most", n, maxSize)
	default:
		return []Finding{{Subject: subject, Detail: fmt.Sprintf("up to %d servers", n), OK: true}}
	}
}

// checkConnector tells whether there is something to log in with. The plugin
// provisions no credentials, so they have to be here.
func checkConnector(connector, autoscaler map[string]any) []Finding {
	var missing []string
	username, _ := connector["username"].(string)
	password, _ := connector["password"].(string)
	key, _ := connector["key_path"].(string)
	static, _ := connector["use_static_credentials"].(bool)
	protocol, _ := connector["protocol"].(string)
	if username == "" {
		missing = append(missing, "username")
	}
	switch winrm := strings.HasPrefix(protocol, "winrm"); {
	case winrm && password == "":
		missing = append(missing, "password, which "+protocol+" needs")
	case !winrm && password == "" && key == "":
		missing = append(missing, "key_path or password")
	}
	if !static {
		missing = append(missing, "use_static_credentials = true")
	}
	var findings []Finding
	if len(missing) > 0 {
		findings = append(findings, Finding{
			Subject: "connector_config", Detail: "the runner cannot log in to servers without " + strings.Join(missing, ", "),
		})
	}
	if key != "" {
		findings = append(findings, checkKey(key))
	}
	if len(missing) == 0 {
		findings = append(findings, good("connector_config", "logs in as "+username))
		findings = append(findings, checkLogin(connector, autoscaler)...)
	}
	return findings
}

func checkKey(path string) Finding {
	const subject = "key_path"
	content, err := os.ReadFile(path)
	if err != nil {
		return Finding{Subject: subject, Detail: err.Error()}
	}
	if block, _ := pem.Decode(content); block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		return Finding{Subject: subject, Detail: path + " holds no private key in PEM"}
	}
	return Finding{Subject: subject, Detail: path + " holds a private key", OK: true}
}
