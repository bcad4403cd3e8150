package cloud

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/radome-io/fleeting-plugin-openstack/internal/nearest"
)

// credentials is all that is taken from clouds.yaml and the environment.
type credentials struct {
	auth      gophercloud.AuthOptions
	region    string
	iface     string            // public, internal or admin
	ifaces    map[string]string // of services that have one of their own
	regions   map[string]string // the same
	overrides map[string]string
	tls       tlsFiles
	version   Microversion // that Nova is to be asked for; zero for the newest
	remarks   []string     // what the entry says in vain
}

// interfaceOf is the interface of a service.
func (c credentials) interfaceOf(service string) string {
	return cmp.Or(c.ifaces[service], c.iface)
}

// loadCredentials reads the entry anew.
func loadCredentials(opts Options) (credentials, cloudsFiles, error) {
	var m mistakes
	files, entry, err := m.loadEntry(opts)
	if err != nil {
		return credentials{}, files, err
	}
	creds := m.credentials(entry, opts.LookupEnv)
	if files.clouds == "" {
		for i, wrong := range m.wrong {
			m.wrong[i] = keyOfAuth.ReplaceAllStringFunc(wrong, func(key string) string {
				return "OS_" + strings.ToUpper(strings.TrimPrefix(key, "auth."))
			})
		}
	}
	if len(m.wrong) > 0 {
		return credentials{}, files, &entryError{from: files.from, cloud: opts.Cloud, wrong: m.wrong}
	}
	creds.remarks = m.remarks
	return creds, files, nil
}

// keyOfAuth is a key of the auth section in a message.
var keyOfAuth = regexp.MustCompile(`\bauth\.[a-z_]+`)

// loadEntry reads the entry from clouds.yaml, or from the environment where that
// is asked for.
func (m *mistakes) loadEntry(opts Options) (cloudsFiles, map[string]any, error) {
	fromEnv, set := entryFromEnv(opts.LookupEnv)
	theEnv := cloudsFiles{from: "the environment (OS_*)"}
	if opts.FromEnv {
		return theEnv, fromEnv, nil
	}
	files, err := findClouds(opts.CloudsFile, opts.LookupEnv)
	if errors.Is(err, fs.ErrNotExist) && opts.Cloud == envCloud && set {
		return theEnv, fromEnv, nil
	}
	if err != nil {
		return files, nil, err
	}
	// What is written while they are read must not count as read.
	files.read = files.stamp()
	entry, err := m.readEntry(files, opts.Cloud)
	return files, entry, err
}

// credentials checks an entry and takes from it what is used.
func (m *mistakes) credentials(entry map[string]any, lookupEnv func(string) (string, bool)) credentials {
	entry = m.chooseRegion(entry, lookupEnv)
	m.checkSection("", entry)
	creds := credentials{
		region: cmp.Or(env(lookupEnv, "OS_REGION_NAME"), text(entry, "region_name")),
		iface:  m.endpointInterface("interface", cmp.Or(env(lookupEnv, "OS_INTERFACE"), text(entry, "interface", "endpoint_type"), "public")),
		ifaces: map[string]string{}, regions: map[string]string{}, overrides: map[string]string{},
		tls: tlsFiles{
			ca: expand(text(entry, "cacert"), lookupEnv), cert: expand(text(entry, "cert"), lookupEnv), key: expand(text(entry, "key"), lookupEnv),
			insecure: entry["insecure"] == true || entry["verify"] == false,
		},
		auth: m.authOptions(entry),
	}
	for _, service := range []string{compute, network, image, volume} {
		m.takeService(entry, service, &creds)
	}
	if version := fmt.Sprint(entry["identity_api_version"]); entry["identity_api_version"] != nil && version != "3" && !strings.HasPrefix(version, "3.") {
		m.add("identity_api_version: must be 3, not %q", version)
	}
	if wanted := text(entry, "compute_default_microversion"); wanted != "" {
		minor, ok := parseMinor(wanted)
		if !ok || minor < minorTags || minor > minorCeiling {
			m.add("compute_default_microversion: must be 2.%d to 2.%d, not %q", minorTags, minorCeiling, wanted)
		}
		creds.version = Microversion{minor}
	}
	return creds
}

// takeService takes what an entry says of one service.
func (m *mistakes) takeService(entry map[string]any, service string, creds *credentials) {
	for _, spelling := range slices.Backward(serviceKeys(service)) { // the present one wins
		if address := text(entry, spelling+"_endpoint_override", spelling+"_endpoint"); address != "" {
			if _, err := versioned(service, address, "p"); err != nil {
				m.add("%s_endpoint_override: %v", spelling, err)
			}
			creds.overrides[service] = address
		}
		if iface := text(entry, spelling+"_interface"); iface != "" {
			creds.ifaces[service] = m.endpointInterface(spelling+"_interface", iface)
		}
		if region := text(entry, spelling+"_region_name"); region != "" {
			creds.regions[service] = region
		}
		key := spelling + "_api_version"
		major, _, _ := strings.Cut(fmt.Sprint(entry[key]), ".")
		if most := map[bool]string{true: "3"}[service == volume]; entry[key] != nil && major != "2" && major != most {
			m.add("%s: must be %s, not %q", key, cmp.Or(most, "2"), fmt.Sprint(entry[key]))
		}
	}
}

// chooseRegion lays the values of the chosen region over the entry.
func (m *mistakes) chooseRegion(entry map[string]any, lookupEnv func(string) (string, bool)) map[string]any {
	listed, isList := entry["regions"].([]any)
	if !isList {
		return entry
	}
	chosen := cmp.Or(env(lookupEnv, "OS_REGION_NAME"), text(entry, "region_name"))
	var names []string
	for _, item := range listed {
		region, _ := item.(map[string]any)
		name, isText := item.(string)
		if !isText {
			name = text(region, "name")
		}
		names = append(names, name)
		if values, ok := region["values"].(map[string]any); ok && (name == chosen || len(listed) == 1) {
			entry = overlay(entry, values)
		}
	}
	switch {
	case slices.Contains(names, ""):
		m.add("regions: each must be a name, or a section with a name")
	case chosen == "" && len(names) > 1:
		m.add("regions: it lists several regions; choose one with region_name or OS_REGION_NAME: %s", strings.Join(names, ", "))
	case chosen == "" && len(names) == 1:
		entry = overlay(entry, map[string]any{"region_name": names[0]})
	case len(names) > 0 && !slices.Contains(names, chosen):
		m.add("region_name: %q is not among regions: %s", chosen, strings.Join(names, ", "))
	}
	return entry
}

func (m *mistakes) endpointInterface(key, chosen string) string {
	iface := strings.TrimSuffix(chosen, "URL")
	if !slices.Contains([]string{"public", "internal", "admin"}, iface) {
		m.add("%s %q is none of public, internal and admin", key, chosen)
	}
	return iface
}

// authOptions makes gophercloud's options out of the auth section.
func (m *mistakes) authOptions(entry map[string]any) gophercloud.AuthOptions {
	auth, isSection := entry["auth"].(map[string]any)
	if !isSection {
		if entry["auth"] == nil {
			m.add("it has no auth section")
		}
		return gophercloud.AuthOptions{}
	}
	opts := gophercloud.AuthOptions{IdentityEndpoint: text(auth, "auth_url")}
	if opts.IdentityEndpoint == "" {
		m.missing(auth, "auth_url")
	} else if _, err := versioned(identity, opts.IdentityEndpoint, ""); err != nil {
		m.add("auth.auth_url: %v", err)
	}
	kind, supported := m.authType(entry)
	if !supported {
		return opts // its keys are others
	}
	byCredential := text(auth, "application_credential_id", "application_credential_name", "application_credential_secret") != ""
	byPassword := text(auth, "password") != ""
	m.checkSection("auth.", auth)
	switch {
	case kind == "" && byCredential && byPassword:
		m.add("auth: has a password and an application credential; remove one of them, or set auth_type")
	case kind == "v3applicationcredential", kind == "" && byCredential:
		m.applicationCredential(auth, &opts)
	case byCredential && !byPassword:
		m.add("auth_type: is %s, but auth has an application credential; set v3applicationcredential", kind)
	default:
		m.password(auth, &opts)
	}
	return opts
}

// authType is the auth_type of an entry, or the supported one that was perhaps
// meant.
func (m *mistakes) authType(entry map[string]any) (kind string, supported bool) {
	kind = text(entry, "auth_type", "auth_plugin")
	if slices.Contains(authTypes(), kind) {
		return kind, true
	}
	near := nearest.To(kind, authTypes(), 1)
	if len(near) == 0 || len(kind)-len(near[0]) > 2 { // such as v3oidcpassword
		m.add("auth_type %q is not supported; use password or v3applicationcredential", kind)
		return kind, false
	}
	m.add("auth_type %q is not supported; did you mean %s?", kind, near[0])
	return near[0], true
}

// authTypes are the supported values of auth_type; "" for none.
func authTypes() []string { return []string{"", "password", "v3password", "v3applicationcredential"} }

// missing reports the first of some keys of auth as missing, unless one of them is
// there with a value of another kind, which is reported already.
func (m *mistakes) missing(auth map[string]any, names ...string) {
	for _, name := range names {
		if is := kindOfValue(auth[name]); is != kindAny && is != kindText {
			return
		}
	}
	m.add("auth.%s is missing", strings.Join(names, " or auth."))
}

func (m *mistakes) applicationCredential(auth map[string]any, opts *gophercloud.AuthOptions) {
	opts.ApplicationCredentialID = text(auth, "application_credential_id")
	opts.ApplicationCredentialSecret = text(auth, "application_credential_secret")
	if opts.ApplicationCredentialSecret == "" {
		m.missing(auth, "application_credential_secret")
	}
	if opts.ApplicationCredentialID != "" {
		return
	}
	if opts.ApplicationCredentialName = text(auth, "application_credential_name"); opts.ApplicationCredentialName == "" {
		m.missing(auth, "application_credential_id")
		return
	}
	m.user(auth, opts)
}

func (m *mistakes) password(auth map[string]any, opts *gophercloud.AuthOptions) {
	m.user(auth, opts)
	if opts.Password = text(auth, "password"); opts.Password == "" {
		m.missing(auth, "password")
	}
	opts.Scope = &gophercloud.AuthScope{TrustID: text(auth, "trust_id")}
	projectID, projectName := text(auth, "project_id", "tenant_id"), text(auth, "project_name", "tenant_name")
	switch {
	case opts.Scope.TrustID != "":
	case projectID != "":
		opts.Scope.ProjectID = projectID
	case projectName == "":
		m.missing(auth, "project_name", "project_id")
	default:
		opts.Scope.ProjectName = projectName
		opts.Scope.DomainID, opts.Scope.DomainName = domainOf(auth, "project_domain")
	}
}

// user names the user by ID, or by name within a domain.
func (m *mistakes) user(auth map[string]any, opts *gophercloud.AuthOptions) {
	if opts.UserID = text(auth, "user_id"); opts.UserID != "" {
		return
	}
	if opts.Username = text(auth, "username"); opts.Username == "" {
		m.missing(auth, "username", "user_id")
	}
	opts.DomainID, opts.DomainName = domainOf(auth, "user_domain")
}

// domainOf is a domain, by ID or else by name.
func domainOf(auth map[string]any, own string) (id, name string) {
	if id = text(auth, own+"_id", "domain_id"); id != "" {
		return id, ""
	}
	if name = text(auth, own+"_name", "domain_name"); name != "" {
		return "", name
	}
	if name = text(auth, "default_domain_name"); name != "" && text(auth, "default_domain", "default_domain_id") == "" {
		return "", name
	}
	return cmp.Or(text(auth, "default_domain", "default_domain_id"), "default"), ""
}
