package openstacksim

import (
	"net/http"
	"time"
)

// token is a grant of Keystone.
type token struct {
	id         string
	methods    []string
	user       *User
	project    *Project
	credential *ApplicationCredential
	issued     time.Time
	expires    time.Time
	audit      []string // with that of the token it came from
}

func (s *Simulator) keystoneRoutes() []route {
	return []route{
		{http.MethodGet, "/identity", OpIdentityInfo, true, s.keystoneVersions},
		{http.MethodGet, "/identity/v3", OpIdentityInfo, true, s.keystoneVersion},
		{http.MethodPost, "/identity/v3/auth/tokens", OpTokenCreate, true, s.createToken},
		{http.MethodGet, "/identity/v3/auth/tokens", OpTokenShow, false, s.showToken},
		{http.MethodDelete, "/identity/v3/auth/tokens", OpTokenRevoke, false, s.revokeToken},
		{http.MethodGet, "/identity/v3/auth/catalog", OpIdentityInfo, false, s.showCatalog},
		{http.MethodGet, "/identity/v3/auth/projects", OpIdentityInfo, false, s.listOwnProjects},
	}
}

func keystoneError(e *apiError) *answer {
	if e.kind == kindNoMethod {
		return &answer{status: e.status, body: map[string]any{"message": e.message}}
	}
	message := e.message
	if e.status == http.StatusUnauthorized && e.kind != kindExplained {
		message = "The request you have made requires authentication."
	}
	problem := map[string]any{"code": e.status, "message": message, "title": http.StatusText(e.status)}
	if e.kind == kindExplained {
		problem["identity"] = map[string]any{}
	}
	return &answer{status: e.status, body: map[string]any{"error": problem}}
}

func unauthorized() error { return refuse(http.StatusUnauthorized, "unauthorized") }

func keystoneDocument(c *call) map[string]any {
	return map[string]any{
		"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
		"links":       []any{map[string]any{"rel": "self", "href": c.root(serviceIdentity) + "/v3/"}},
		"media-types": []any{map[string]any{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}},
	}
}

func (s *Simulator) keystoneVersions(c *call) (*answer, error) {
	return &answer{
		status: http.StatusMultipleChoices,
		header: http.Header{"Location": {c.root(serviceIdentity) + "/v3/"}},
		body:   map[string]any{"versions": map[string]any{"values": []any{keystoneDocument(c)}}},
	}, nil
}

func (s *Simulator) keystoneVersion(c *call) (*answer, error) {
	return ok(map[string]any{"version": keystoneDocument(c)})
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

func (s *Simulator) createToken(c *call) (*answer, error) {
	var request authRequest
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	methods := request.Auth.Identity.Methods
	if len(methods) != 1 {
		return nil, unauthorized()
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
		err = unauthorized()
	}
	if err != nil {
		return nil, err
	}
	granted.id, granted.audit = "sim-"+s.newHex()+s.newHex(), append([]string{s.newHex()[:22]}, granted.audit...)
	granted.issued = s.present
	granted.expires = s.present.Add(s.options.TokenLife)
	s.tokens[granted.id] = granted
	result, err := created(map[string]any{"token": s.tokenView(c, granted)})
	result.header = http.Header{"X-Subject-Token": {granted.id}}
	return result, err
}

func (s *Simulator) grantPassword(granted *token, request authRequest) error {
	asked := request.Auth.Identity.Password.User
	user := s.findUser(asked.ID, asked.Name)
	if user == nil || user.Password != asked.Password {
		return unauthorized()
	}
	granted.user = user
	return s.scope(granted, request)
}

func (s *Simulator) grantToken(granted *token, request authRequest) error {
	known := s.tokens[request.Auth.Identity.Token.ID]
	if known == nil || !s.present.Before(known.expires) {
		return unauthorized()
	}
	granted.user, granted.methods, granted.audit = known.user, append(known.methods, "token"), known.audit
	return s.scope(granted, request)
}

func (s *Simulator) scope(granted *token, request authRequest) error {
	scope := request.Auth.Scope
	if scope == nil || scope.Project == nil {
		return nil
	}
	for _, name := range granted.user.Projects {
		if name == scope.Project.Name || (scope.Project.ID != "" && s.projectID(name) == scope.Project.ID) {
			granted.project = s.project(s.projectID(name))
			return nil
		}
	}
	return unauthorized()
}

func (s *Simulator) grantCredential(granted *token, request authRequest) error {
	asked := request.Auth.Identity.Credential
	if request.Auth.Scope != nil {
		return &apiError{
			status: http.StatusUnauthorized, kind: kindExplained,
			message: "Error authenticating with application credential: Application credentials cannot request a scope.",
		}
	}
	for _, user := range s.users {
		for i := range user.ApplicationCredentials {
			credential := &user.ApplicationCredentials[i]
			byName := asked.Name != "" && credential.Name == asked.Name && s.findUser(asked.User.ID, asked.User.Name) == user
			if credential.revoked || (credential.ID != asked.ID && !byName) {
				continue
			}
			if credential.Secret != asked.Secret || !credential.expires.IsZero() && !s.present.Before(credential.expires) {
				return unauthorized()
			}
			granted.user, granted.credential = user, credential
			granted.project = s.project(s.projectID(credential.Project))
			return nil
		}
	}
	return notFound("Could not find Application Credential: %s.", orElse(asked.ID, func() string { return asked.Name }))
}

func (s *Simulator) findUser(id, name string) *User {
	for _, u := range s.users {
		if (id != "" && u.ID == id) || (id == "" && u.Name == name) {
			return u
		}
	}
	return nil
}

// authenticate checks the token of a call, and its access rules.
func (s *Simulator) authenticate(c *call) (*token, error) {
	granted := s.tokens[c.request.Header.Get("X-Auth-Token")]
	if granted == nil || !s.present.Before(granted.expires) {
		return nil, unauthorized()
	}
	if c.service == serviceIdentity {
		return granted, nil
	}
	if granted.project == nil {
		// Without a scope there is nothing to see, but that is no refusal.
		return &token{user: granted.user, project: &Project{}}, nil
	}
	if granted.credential != nil && !allowed(granted.credential.AccessRules, c) {
		return nil, unauthorized()
	}
	return granted, nil
}

func (s *Simulator) tokenView(c *call, granted *token) map[string]any {
	view := map[string]any{
		"methods":    granted.methods,
		"audit_ids":  granted.audit,
		"issued_at":  s.stamp(granted.issued, microseconds),
		"expires_at": s.stamp(granted.expires, microseconds),
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

func (s *Simulator) showToken(c *call) (*answer, error) {
	subject := s.tokens[c.request.Header.Get("X-Subject-Token")]
	if subject == nil || !s.present.Before(subject.expires) {
		return nil, notFound("Could not find token.")
	}
	result, err := ok(map[string]any{"token": s.tokenView(c, subject)})
	result.header = http.Header{"X-Subject-Token": {subject.id}}
	return result, err
}

func (s *Simulator) revokeToken(c *call) (*answer, error) {
	delete(s.tokens, c.request.Header.Get("X-Subject-Token"))
	return noContent()
}

func (s *Simulator) showCatalog(c *call) (*answer, error) {
	if c.auth.project == nil {
		return nil, forbidden("A project-scoped token is required to produce a service catalog.")
	}
	return ok(map[string]any{
		"catalog": s.catalogue(c, c.auth.project.ID),
		"links":   map[string]any{"self": c.root(serviceIdentity) + "/v3/auth/catalog"},
	})
}

func (s *Simulator) listOwnProjects(c *call) (*answer, error) {
	projects := []any{}
	for _, name := range c.auth.user.Projects {
		projects = append(projects, map[string]any{
			"id": s.projectID(name), "name": name, "domain_id": "default", "enabled": true, "is_domain": false,
		})
	}
	return ok(map[string]any{"projects": projects})
}
