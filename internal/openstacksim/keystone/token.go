package keystone

import (
	"cmp"
	"net/http"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
)

// token is a grant of Keystone.
type token struct {
	id         string
	methods    []string
	user       *User
	project    *cloud.Project
	credential *ApplicationCredential
	issued     time.Time
	expires    time.Time
	audit      []string // with that of the token it came from
}

type domainRef struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type userRef struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Domain   domainRef `json:"domain"`
	Password string    `json:"password"`
}

type authRequest struct {
	Auth struct {
		Identity struct {
			Methods  []string `json:"methods"`
			Password struct {
				User userRef `json:"user"`
			} `json:"password"`
			Credential struct {
				ID     string  `json:"id"`
				Name   string  `json:"name"`
				Secret string  `json:"secret"`
				User   userRef `json:"user"`
			} `json:"application_credential"`
			Token struct {
				ID string `json:"id"`
			} `json:"token"`
		} `json:"identity"`
		Scope *struct {
			Project *struct {
				ID   string `json:"id"`
				Name string `json:"name"`
			} `json:"project"`
		} `json:"scope"`
	} `json:"auth"`
}

func (s *Keystone) createToken(c *cloud.Call) (*cloud.Answer, error) {
	var request authRequest
	if err := c.Decode(&request); err != nil {
		return nil, err
	}
	methods := request.Auth.Identity.Methods
	if len(methods) != 1 {
		return nil, cloud.Unauthorized()
	}
	granted := &token{methods: methods}
	var err error
	switch methods[0] {
	case "password":
		err = s.grantPassword(granted, request)
	case "application_credential":
		err = s.grantCredential(granted, request)
	case "token":
		err = s.grantToken(granted, request)
	default:
		err = cloud.Unauthorized()
	}
	if err != nil {
		return nil, err
	}
	granted.id, granted.audit = "sim-"+s.cloud.NewHex()+s.cloud.NewHex(), append([]string{s.cloud.NewHex()[:22]}, granted.audit...)
	granted.issued = s.cloud.Now()
	granted.expires = s.cloud.Now().Add(s.life)
	s.tokens[granted.id] = granted
	result, err := cloud.Created(map[string]any{"token": s.tokenView(c, granted)})
	result.Header = http.Header{"X-Subject-Token": {granted.id}}
	return result, err
}

func (s *Keystone) grantPassword(granted *token, request authRequest) error {
	asked := request.Auth.Identity.Password.User
	user := s.findUser(asked.ID, asked.Name)
	if user == nil || user.Password != asked.Password {
		return cloud.Unauthorized()
	}
	granted.user = user
	return s.scope(granted, request)
}

func (s *Keystone) grantToken(granted *token, request authRequest) error {
	known := s.good(request.Auth.Identity.Token.ID)
	if known == nil {
		return cloud.Unauthorized()
	}
	granted.user, granted.methods, granted.audit = known.user, append(known.methods, "token"), known.audit
	return s.scope(granted, request)
}

func (s *Keystone) scope(granted *token, request authRequest) error {
	scope := request.Auth.Scope
	if scope == nil || scope.Project == nil {
		return nil
	}
	for _, name := range granted.user.Projects {
		if name == scope.Project.Name || (scope.Project.ID != "" && s.cloud.ProjectID(name) == scope.Project.ID) {
			granted.project = s.cloud.Project(s.cloud.ProjectID(name))
			return nil
		}
	}
	return cloud.Unauthorized()
}

func (s *Keystone) grantCredential(granted *token, request authRequest) error {
	asked := request.Auth.Identity.Credential
	if request.Auth.Scope != nil {
		return &cloud.Error{
			Status: http.StatusUnauthorized, Kind: cloud.Explained,
			Message: "Error authenticating with application credential: Application credentials cannot request a scope.",
		}
	}
	for _, user := range s.users {
		for i := range user.ApplicationCredentials {
			credential := &user.ApplicationCredentials[i]
			byName := asked.Name != "" && credential.Name == asked.Name && s.findUser(asked.User.ID, asked.User.Name) == user
			if credential.revoked || (credential.ID != asked.ID && !byName) {
				continue
			}
			if credential.Secret != asked.Secret || !credential.expires.IsZero() && !s.cloud.Now().Before(credential.expires) {
				return cloud.Unauthorized()
			}
			granted.user, granted.credential = user, credential
			granted.project = s.cloud.Project(s.cloud.ProjectID(credential.Project))
			return nil
		}
	}
	return cloud.NotFound("Could not find Application Credential: %s.", cmp.Or(asked.ID, asked.Name))
}

func (s *Keystone) findUser(id, name string) *User {
	for _, u := range s.users {
		if (id != "" && u.ID == id) || (id == "" && u.Name == name) {
			return u
		}
	}
	return nil
}

// token returns the token of a call; nil for one that is unknown or over.
func (s *Keystone) token(c *cloud.Call) *token { return s.good(c.Request.Header.Get("X-Auth-Token")) }

func (s *Keystone) good(id string) *token {
	if known := s.tokens[id]; known != nil && s.cloud.Now().Before(known.expires) {
		return known
	}
	return nil
}

// Authenticate checks the token of a call, and its access rules. Without a
// scope there is nothing to see, but that is no refusal.
func (s *Keystone) Authenticate(c *cloud.Call) (*cloud.Auth, error) {
	granted := s.token(c)
	if granted == nil {
		return nil, cloud.Unauthorized()
	}
	auth := &cloud.Auth{UserID: granted.user.ID, Project: granted.project}
	if auth.Project == nil {
		auth.Project = &cloud.Project{}
	} else if c.Service() != "identity" && granted.credential != nil && !allowed(granted.credential.AccessRules, c) {
		return nil, cloud.Unauthorized()
	}
	return auth, nil
}

// ProjectOf returns the name of the project of a token; empty without one.
func (s *Keystone) ProjectOf(id string) string {
	if known := s.tokens[id]; known != nil && known.project != nil {
		return known.project.Name
	}
	return ""
}

func (s *Keystone) tokenView(c *cloud.Call, granted *token) map[string]any {
	view := map[string]any{
		"methods":    granted.methods,
		"audit_ids":  granted.audit,
		"issued_at":  s.cloud.Stamp(granted.issued, microseconds),
		"expires_at": s.cloud.Stamp(granted.expires, microseconds),
		"user": map[string]any{
			"id": granted.user.ID, "name": granted.user.Name, "domain": defaultDomain(), "password_expires_at": nil,
		},
	}
	if granted.project != nil {
		view["project"] = map[string]any{"id": granted.project.ID, "name": granted.project.Name, "domain": defaultDomain()}
		view["is_domain"] = false
		view["roles"] = memberRoles()
		view["catalog"] = s.catalogue(c, granted.project.ID)
	}
	if granted.credential != nil {
		view["application_credential"] = map[string]any{
			"id": granted.credential.ID, "name": granted.credential.Name, "restricted": true,
		}
	}
	return view
}

// memberRoles are those that every user has in its projects.
func memberRoles() []any {
	return []any{
		map[string]any{"id": "45685fb8211845de9128205412d62d93", "name": "member"},
		map[string]any{"id": "eabb99f763824c08bc3e07a802e630f9", "name": "reader"},
	}
}

const microseconds = "2006-01-02T15:04:05.000000Z"

func defaultDomain() map[string]any { return map[string]any{"id": "default", "name": "Default"} }

func (s *Keystone) showCatalog(c *cloud.Call) (*cloud.Answer, error) {
	if s.token(c).project == nil {
		return nil, cloud.Forbidden("A project-scoped token is required to produce a service catalog.")
	}
	return cloud.OK(map[string]any{
		"catalog": s.catalogue(c, c.Auth.Project.ID),
		"links":   map[string]any{"self": c.Root("identity") + "/v3/auth/catalog"},
	})
}

func (s *Keystone) listOwnProjects(c *cloud.Call) (*cloud.Answer, error) {
	projects := []any{}
	for _, name := range s.token(c).user.Projects {
		projects = append(projects, map[string]any{
			"id": s.cloud.ProjectID(name), "name": name, "domain_id": "default", "enabled": true, "is_domain": false,
		})
	}
	return cloud.OK(map[string]any{"projects": projects})
}
