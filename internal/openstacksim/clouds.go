package openstacksim

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

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
	var user User
	s.Do(func() { user = *s.FirstUser() })
	authURL := strings.TrimSuffix(url, "/") + "/identity/v3"
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
