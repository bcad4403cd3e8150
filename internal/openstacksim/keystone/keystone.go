// Package keystone is the identity service of the simulator: users, tokens,
// application credentials with access rules, and the catalogue.
//
// Projects are the cloud's, since quotas hang on them. Every user is a member
// of its projects: there are no roles to assign, no domains and no groups.
package keystone

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
)

// User may act in some projects, as a member.
type User struct {
	// ID is chosen when empty.
	ID, Name, Password string
	// Projects are names.
	Projects []string
	// ApplicationCredentials act in their project without the password.
	ApplicationCredentials []ApplicationCredential
}

// ApplicationCredential stands for a user in one project.
type ApplicationCredential struct {
	// ID is chosen when empty.
	ID, Name, Secret, Project string
	Description               string
	// AccessRules restrict what it may call; nil does not.
	AccessRules []AccessRule
	revoked     bool
	expires     time.Time
}

// Keystone is the service of one cloud.
type Keystone struct {
	cloud   *cloud.Cloud
	regions []string
	life    time.Duration // of tokens
	users   []*User
	tokens  map[string]*token
}

// New adds Keystone to a cloud, which it then answers to for tokens.
func New(c *cloud.Cloud, regions []string, life time.Duration, users []User) *Keystone {
	s := &Keystone{cloud: c, regions: regions, life: life, tokens: map[string]*token{}}
	for _, u := range users {
		u.ID = c.OrHex(u.ID)
		u.ApplicationCredentials = slices.Clone(u.ApplicationCredentials)
		for i := range u.ApplicationCredentials {
			u.ApplicationCredentials[i].ID = c.OrHex(u.ApplicationCredentials[i].ID)
		}
		s.users = append(s.users, &u)
	}
	c.Identity = s
	api := c.Serve(cloud.Service{
		Name: "identity", Wrap: cloud.KeystoneError,
		NoMethod: func(string) string { return "The method is not allowed for the requested URL." },
		Headers:  func(_ *cloud.Call, _ bool, header http.Header) { header.Set("Vary", "X-Auth-Token") },
	})
	api.Open("GET ", fault.OpIdentityInfo, s.versions)
	api.Open("GET /v3", fault.OpIdentityInfo, s.version)
	api.Open("POST /v3/auth/tokens", fault.OpTokenCreate, s.createToken)
	api.Handle("GET /v3/auth/catalog", fault.OpIdentityInfo, s.showCatalog)
	api.Handle("GET /v3/auth/projects", fault.OpIdentityInfo, s.listOwnProjects)
	const credentials = "/v3/users/{user}/application_credentials"
	api.Handle("GET "+credentials, fault.OpCredentials, s.listCredentials)
	api.Handle("POST "+credentials, fault.OpCredentials, s.createCredential)
	api.Handle("GET "+credentials+"/{id}", fault.OpCredentials, cloud.With(s.credential, s.showCredential))
	api.Handle("DELETE "+credentials+"/{id}", fault.OpCredentials, cloud.With(s.credential, s.deleteCredential))
	return s
}

// FirstUser is the first one of the seed.
func (s *Keystone) FirstUser() *User { return s.users[0] }

func document(c *cloud.Call) map[string]any {
	return map[string]any{
		"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
		"links":       []cloud.Link{{Rel: "self", Href: c.Root("identity") + "/v3/"}},
		"media-types": []any{map[string]any{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}},
	}
}

func (s *Keystone) versions(c *cloud.Call) (*cloud.Answer, error) {
	return &cloud.Answer{
		Status: http.StatusMultipleChoices,
		Header: http.Header{"Location": {c.Root("identity") + "/v3/"}},
		Body:   map[string]any{"versions": map[string]any{"values": []any{document(c)}}},
	}, nil
}

func (s *Keystone) version(c *cloud.Call) (*cloud.Answer, error) {
	return cloud.One("version", document(c))
}

// RevokeTokens makes every token bad.
func (s *Keystone) RevokeTokens() { s.cloud.Do(func() { clear(s.tokens) }) }

// RevokeCredential takes an application credential, by name, away from every
// user, with its tokens.
func (s *Keystone) RevokeCredential(name string) {
	s.cloud.Do(func() {
		for _, u := range s.users {
			for i := range u.ApplicationCredentials {
				if u.ApplicationCredentials[i].Name == name {
					s.revoke(&u.ApplicationCredentials[i])
				}
			}
		}
	})
}

// AddCredential gives the first user another application credential; its ID
// is chosen when empty, and returned.
func (s *Keystone) AddCredential(credential ApplicationCredential) (id string) {
	s.cloud.Do(func() {
		credential.ID = s.cloud.OrHex(credential.ID)
		s.users[0].add(credential)
	})
	return credential.ID
}

// add makes a new slice: tokens point into the old one.
func (u *User) add(credential ApplicationCredential) {
	u.ApplicationCredentials = append(slices.Clone(u.ApplicationCredentials), credential)
}

// SetPassword changes the password of a user; tokens stay good.
func (s *Keystone) SetPassword(user, password string) (err error) {
	s.cloud.Do(func() {
		u := s.findUser("", user)
		if u == nil {
			err = fmt.Errorf("openstacksim: no user %q", user)
			return
		}
		u.Password = password
	})
	return err
}

// catalogue lists the services, each in every region and for every interface.
func (s *Keystone) catalogue(c *cloud.Call, projectID string) []any {
	compute := c.Root("compute") + "/v2.1"
	if s.cloud.Condition.LegacyEndpoint {
		compute = c.Root("compute") + "/v2/" + projectID
	}
	services := []struct{ kind, name, url string }{
		{"identity", "keystone", c.Root("identity") + "/v3"},
		{"compute", "nova", compute},
		{"image", "glance", c.Root("image")},
		{"network", "neutron", c.Root("network")},
		{"volumev3", "cinder", c.Root("volume") + "/v3/" + projectID},
		{"placement", "placement", c.Root("placement")},
	}
	entries := make([]any, 0, len(services))
	for _, service := range services {
		endpoints := []any{}
		for _, region := range s.regions {
			for _, face := range []string{"public", "internal", "admin"} {
				endpoints = append(endpoints, map[string]any{
					"id": cloud.StableHex(service.kind + region + face), "interface": face,
					"region": region, "region_id": region, "url": service.url,
				})
			}
		}
		entries = append(entries, map[string]any{
			"id": cloud.StableHex(service.kind), "type": service.kind, "name": service.name, "endpoints": endpoints,
		})
	}
	return entries
}

// AccessRule lets an application credential make one kind of call. Service is
// the type in the catalogue; in Path, as Nova and the others see it, * stands
// for part of a segment, ** for any rest, and {name} for one segment.
type AccessRule struct{ Service, Method, Path string }

func allowed(rules []AccessRule, c *cloud.Call) bool {
	if rules == nil {
		return true
	}
	inService := strings.TrimPrefix(c.Request.URL.Path, "/"+c.Service())
	for _, rule := range rules {
		kind := rule.Service
		if kind == "volumev3" || kind == "block-storage" {
			kind = "volume"
		}
		if kind == c.Service() && rule.Method == c.Request.Method && pathMatches(rule.Path, inService) {
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

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}
