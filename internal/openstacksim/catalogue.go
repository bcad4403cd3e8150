package openstacksim

import (
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// catalogue lists the services, each in every region and for every interface.
func (s *Simulator) catalogue(c *call, projectID string) []any {
	compute := c.root(serviceCompute) + "/v2.1"
	if s.weather.LegacyEndpoint {
		compute = c.root(serviceCompute) + "/v2/" + projectID
	}
	services := []struct{ kind, name, url string }{
		{"identity", "keystone", c.root(serviceIdentity) + "/v3"},
		{"compute", "nova", compute},
		{"image", "glance", c.root(serviceImage)},
		{"network", "neutron", c.root(serviceNetwork)},
		{"volumev3", "cinder", c.root(serviceVolume) + "/v3/" + projectID},
		{"placement", "placement", c.root("placement")},
	}
	entries := make([]any, 0, len(services))
	for _, service := range services {
		endpoints := []any{}
		for _, region := range s.options.Seed.Regions {
			for _, face := range []string{"public", "internal", "admin"} {
				endpoints = append(endpoints, map[string]any{
					"id": stableHex(service.kind + region + face), "interface": face,
					"region": region, "region_id": region, "url": service.url,
				})
			}
		}
		entries = append(entries, map[string]any{
			"id": stableHex(service.kind), "type": service.kind, "name": service.name, "endpoints": endpoints,
		})
	}
	return entries
}

// AccessRule lets an application credential make one kind of call. Service is
// the type in the catalogue; in Path, as Nova and the others see it, * stands
// for part of a segment, ** for any rest, and {name} for one segment.
type AccessRule struct{ Service, Method, Path string }

func allowed(rules []AccessRule, c *call) bool {
	if rules == nil {
		return true
	}
	inService := strings.TrimPrefix(c.request.URL.Path, "/"+c.service)
	for _, rule := range rules {
		kind := rule.Service
		if kind == "volumev3" || kind == "block-storage" {
			kind = serviceVolume
		}
		if kind == c.service && rule.Method == c.request.Method && pathMatches(rule.Path, inService) {
			return true
		}
	}
	return false
}

func pathMatches(pattern, actual string) bool {
	want, got := split(pattern), split(actual)
	for i, segment := range want {
		if segment == "**" {
			return true
		}
		if i >= len(got) {
			return false
		}
		if strings.HasPrefix(segment, "{") {
			continue
		}
		if match, err := path.Match(segment, got[i]); err != nil || !match {
			return false
		}
	}
	return len(want) == len(got)
}

// The clouds in what [Simulator.CloudsYAML] gives.
const (
	CloudPassword   = "simulator"
	CloudCredential = "simulator-appcred"
	CloudTiny       = "simulator-tiny"
)

type cloudEntry struct {
	AuthType string         `yaml:"auth_type"`
	Auth     map[string]any `yaml:"auth"`
	Region   string         `yaml:"region_name"`
}

// CloudsYAML writes the clouds.yaml for a simulator that answers at url, such
// as http://127.0.0.1:5000: the first user's cloud by password
// ("simulator"), by application credential ("simulator-appcred") and in the
// second project ("simulator-tiny"), as far as the seed has them.
func (s *Simulator) CloudsYAML(url string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	user := s.users[0]
	authURL := strings.TrimSuffix(url, "/") + "/" + serviceIdentity + "/v3"
	clouds := map[string]cloudEntry{}
	byPassword := func(project string) cloudEntry {
		return cloudEntry{AuthType: "password", Region: s.options.Seed.Regions[0], Auth: map[string]any{
			"auth_url": authURL, "username": user.Name, "password": user.Password, "project_name": project,
			"user_domain_name": "Default", "project_domain_name": "Default",
		}}
	}
	for i, name := range []string{CloudPassword, CloudTiny} {
		if i < len(user.Projects) {
			clouds[name] = byPassword(user.Projects[i])
		}
	}
	if len(user.ApplicationCredentials) > 0 {
		credential := user.ApplicationCredentials[0]
		clouds[CloudCredential] = cloudEntry{AuthType: "v3applicationcredential", Region: s.options.Seed.Regions[0], Auth: map[string]any{
			"auth_url": authURL, "application_credential_id": credential.ID, "application_credential_secret": credential.Secret,
		}}
	}
	text, err := yaml.Marshal(map[string]any{"clouds": clouds})
	if err != nil {
		return []byte(fmt.Sprintf("# %v\n", err))
	}
	return text
}
