package cloud

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/nearest"
)

// Kinds of values in clouds.yaml.
const (
	kindText    = "text"
	kindFlag    = "true or false"
	kindSection = "a section"
	kindList    = "a list"
	kindAny     = ""
)

// A Key is what is known of a key of an entry of clouds.yaml. The format is
// openstacksdk's:
// https://docs.openstack.org/openstacksdk/latest/user/config/configuration.html
type Key struct {
	// Name is the key, with the section in front: "auth.password". A * is
	// compute, network, image or block_storage.
	Name string
	// Text says what the key does here, or why it does nothing.
	Text string

	kind string
	use  use
}

// use is what is made of a key.
type use int

const (
	used    use = iota
	unused      // it means nothing here
	refused     // it asks for what is not done here
)

// CloudsKeys are all keys of an entry that are used, for the documentation.
func CloudsKeys() []Key {
	return slices.DeleteFunc(cloudsKeys(), func(k Key) bool { return k.use != used })
}

func cloudsKeys() []Key { return slices.Concat(usedKeys(), refusedKeys(), unusedKeys()) }

func usedKeys() []Key {
	return []Key{
		{Name: "auth", kind: kindSection, Text: "Where and how to log in."},
		{Name: "auth.auth_url", kind: kindText, Text: "Address of Keystone, with or without `/v3`."},
		{Name: "auth.username", kind: kindText, Text: "The user, with a domain."},
		{Name: "auth.user_id", kind: kindText, Text: "The user, without a domain."},
		{Name: "auth.password", kind: kindText, Text: "The user's password."},
		{Name: "auth.project_name", kind: kindText, Text: "The project, with a domain."},
		{Name: "auth.project_id", kind: kindText, Text: "The project, without a domain."},
		{Name: "auth.tenant_name", kind: kindText, Text: "Old name of `project_name`."},
		{Name: "auth.tenant_id", kind: kindText, Text: "Old name of `project_id`."},
		{Name: "auth.trust_id", kind: kindText, Text: "A trust, in place of a project."},
		{Name: "auth.user_domain_name", kind: kindText, Text: "Domain of the user."},
		{Name: "auth.user_domain_id", kind: kindText, Text: "Domain of the user."},
		{Name: "auth.project_domain_name", kind: kindText, Text: "Domain of the project."},
		{Name: "auth.project_domain_id", kind: kindText, Text: "Domain of the project."},
		{Name: "auth.domain_name", kind: kindText, Text: "Domain of both."},
		{Name: "auth.domain_id", kind: kindText, Text: "Domain of both."},
		{Name: "auth.default_domain", kind: kindText, Text: "ID of the domain of both, if none is set; `default` unless set."},
		{Name: "auth.default_domain_id", kind: kindText, Text: "Same as `auth.default_domain`."},
		{Name: "auth.default_domain_name", kind: kindText, Text: "Same as `auth.default_domain`, by name."},
		{Name: "auth.application_credential_id", kind: kindText, Text: "The application credential."},
		{Name: "auth.application_credential_name", kind: kindText, Text: "The application credential, with its user."},
		{Name: "auth.application_credential_secret", kind: kindText, Text: "Its secret."},
		{Name: "auth_type", kind: kindText, Text: "`password`, `v3password` or `v3applicationcredential`. If it is not set, it follows from the keys of `auth`."},
		{Name: "auth_plugin", kind: kindText, Text: "Old name of `auth_type`."},
		{Name: "profile", kind: kindText, Text: "An entry of `clouds-public.yaml` that the entry is laid over."},
		{Name: "cloud", kind: kindText, Text: "Old name of `profile`."},
		{Name: "region_name", kind: kindText, Text: "The region. Required if the catalogue or the entry has several. `OS_REGION_NAME` wins."},
		{Name: "regions", kind: kindList, Text: "Regions of the entry, by name or as `{name, values}`; the values of the chosen one are laid over the entry."},
		{Name: "interface", kind: kindText, Text: "`public`, `internal` or `admin`; `public` unless set. `OS_INTERFACE` wins."},
		{Name: "endpoint_type", kind: kindText, Text: "Old name of `interface`."},
		{Name: "verify", kind: kindFlag, Text: "`false` accepts any certificate."},
		{Name: "insecure", kind: kindFlag, Text: "`true` accepts any certificate, whatever `verify` says."},
		{Name: "cacert", kind: kindText, Text: "File with certificate authorities. A `~` in front is your home folder."},
		{Name: "cert", kind: kindText, Text: "File with the client's certificate, and with its key if `key` is not set."},
		{Name: "key", kind: kindText, Text: "File with the client's key."},
		{Name: "identity_api_version", kind: kindAny, Text: "3 only."},
		{Name: "compute_default_microversion", kind: kindText, Text: "Microversion of Nova, 2.52 to 2.96. If it is not set, the newest that both sides know."},
		{Name: "*_endpoint_override", kind: kindText, Text: "Address of the service, in place of the catalogue's. `%(project_id)s` is replaced."},
		{Name: "*_endpoint", kind: kindText, Text: "Same as `*_endpoint_override`."},
		{Name: "*_interface", kind: kindText, Text: "`interface` of that service."},
		{Name: "*_region_name", kind: kindText, Text: "`region_name` of that service."},
		{Name: "*_api_version", kind: kindAny, Text: "2 only, for `block_storage` 3."},
	}
}

func refusedKeys() []Key {
	const needs = "needs an auth_type that is not supported; use password or v3applicationcredential"
	return []Key{
		{Name: "auth.token", use: refused, Text: "a token ends, and cannot be renewed; use a password or an application credential"},
		{Name: "auth.passcode", use: refused, Text: "a one-time password cannot be used again to renew a token; use an application credential"},
		{Name: "auth.system_scope", use: refused, Text: "servers are made in a project; set project_name or project_id"},
		{Name: "auth.identity_provider", use: refused, Text: needs},
		{Name: "auth.protocol", use: refused, Text: needs},
		{Name: "auth.access_token", use: refused, Text: needs},
		{Name: "auth.client_id", use: refused, Text: needs},
		{Name: "auth.client_secret", use: refused, Text: needs},
	}
}

func unusedKeys() []Key {
	return []Key{
		{Name: "networks", use: unused},
		{Name: "external_network", use: unused},
		{Name: "internal_network", use: unused},
		{Name: "floating_ip_source", use: unused},
		{Name: "secgroup_source", use: unused},
		{Name: "nat_source", use: unused},
		{Name: "image_format", use: unused},
		{Name: "image_api_use_tasks", use: unused},
		{Name: "disable_vendor_agent", use: unused},
		{Name: "vendor_hook", use: unused},
		{Name: "force_ipv4", use: unused},
		{Name: "message", use: unused},
		{Name: "status", use: unused},
		{Name: "description", use: unused},
		{Name: "api_timeout", use: unused},
		{Name: "locations", use: unused},
		{Name: "nat_destination", use: unused},
		{Name: "default_network", use: unused},
		{Name: "timing", use: unused},
		{Name: "split_loggers", use: unused},
		{Name: "client_config", use: unused},
		{Name: "cache", use: unused},
		{Name: "statsd", use: unused},
		{Name: "prometheus", use: unused},
		{Name: "influxdb", use: unused},
		{Name: "auth_methods", use: unused},
		{Name: "connect_retries", use: unused},
		{Name: "status_code_retries", use: unused},
		{Name: "service_type", use: unused},
		{Name: "service_name", use: unused},
		{Name: "rate_limit", use: unused},
		{Name: "*_connect_retries", use: unused},
		{Name: "*_status_code_retries", use: unused},
		{Name: "*_service_type", use: unused},
		{Name: "*_service_name", use: unused},
		{Name: "*_rate_limit", use: unused},
		{Name: "*_min_version", use: unused},
		{Name: "*_max_version", use: unused},
	}
}

// serviceKeys are the spellings of a service in keys, from the catalogue's types.
func serviceKeys(service string) []string {
	names := catalogTypes(service)
	if service == volume {
		names = append(names, "block_storage")
	}
	for i, name := range names {
		names[i] = strings.ReplaceAll(name, "-", "_")
	}
	return names
}

// knownKeys are the keys by name, those with a * once for each spelling of each
// service.
func knownKeys() map[string]Key {
	known := map[string]Key{}
	for _, key := range cloudsKeys() {
		rest, perService := strings.CutPrefix(key.Name, "*_")
		if !perService {
			known[key.Name] = key
			continue
		}
		for _, service := range []string{compute, network, image, volume} {
			for _, spelling := range serviceKeys(service) {
				known[spelling+"_"+rest] = key
			}
		}
	}
	return known
}

// mistakes are what is wrong with an entry, and remarks what it says in vain.
type mistakes struct{ wrong, remarks []string }

func (m *mistakes) add(format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

func (m *mistakes) remark(format string, args ...any) {
	m.remarks = append(m.remarks, fmt.Sprintf(format, args...))
}

// checkSection looks at each key of a section: whether it is known, and has a
// value of its kind. In auth, where a mistake keeps everybody out, an unknown key
// is wrong.
func (m *mistakes) checkSection(prefix string, section map[string]any) {
	known := knownKeys()
	var vain []string
	for _, name := range slices.Sorted(maps.Keys(section)) {
		key, ok := known[prefix+name]
		switch is := kindOfValue(section[name]); {
		case !ok:
			m.unknown(prefix, name, known)
		case is == kindAny: // null is no value
		case key.use == refused:
			m.add("%s%s: %s", prefix, name, key.Text)
		case key.use == unused:
			vain = append(vain, name)
		case key.kind != kindAny && key.kind != is:
			m.add("%s%s takes %s, not %s: a value of the wrong type", prefix, name, key.kind, is)
		}
	}
	if len(vain) > 0 {
		m.remark("not used here: %s", strings.Join(vain, ", "))
	}
}

// unknown says what a key was perhaps meant to be. It shows no value that a
// missing blank has made part of the key.
func (m *mistakes) unknown(prefix, name string, known map[string]Key) {
	name, rest := cutKey(name)
	meant := ""
	switch near := nearKeys(prefix, name, known); {
	case rest && slices.Equal(near, []string{name}):
		meant = "; put a blank behind its colon"
	case len(near) == 1:
		meant = "; did you mean " + prefix + near[0] + "?"
	}
	_, inAuth := known["auth."+name]
	switch {
	case prefix == "" && inAuth:
		m.add("%q belongs into the section auth", name)
	case prefix == "":
		m.remark("%q is an unknown key%s", name, meant)
	default:
		m.add("%q is an unknown key of %s%s", name, strings.TrimSuffix(prefix, "."), meant)
	}
}

// cutKey cuts off what a missing blank has made part of a key.
func cutKey(name string) (key string, cut bool) {
	if at := strings.IndexAny(name, ":= "); at >= 0 {
		return name[:at], true
	}
	return name, false
}

// nearKeys finds the key that was perhaps meant; a name, where that is left out.
func nearKeys(prefix, name string, known map[string]Key) []string {
	var names []string
	for _, candidate := range slices.Sorted(maps.Keys(known)) {
		rest, ok := strings.CutPrefix(candidate, prefix)
		if ok && !strings.Contains(rest, ".") && known[candidate].use == used {
			names = append(names, rest)
		}
	}
	for _, named := range []string{name + "name", name + "_name"} {
		if slices.Contains(names, named) {
			return []string{named}
		}
	}
	return nearest.To(name, names, 1)
}

// kindOfValue names the kind of a value of [yamlText]; kindAny for null.
func kindOfValue(value any) string {
	switch value.(type) {
	case nil:
		return kindAny
	case string:
		return kindText
	case bool:
		return kindFlag
	case map[string]any:
		return kindSection
	default:
		return kindList
	}
}
