package openstacksim

import (
	"net/http"
	"slices"
	"time"
)

func (s *Simulator) credentialRoutes() []route {
	const root = "/identity/v3/users/{user}/application_credentials"
	return []route{
		{http.MethodGet, root, OpCredentials, false, s.listCredentials},
		{http.MethodPost, root, OpCredentials, false, s.createCredential},
		{http.MethodGet, root + "/{id}", OpCredentials, false, s.showCredential},
		{http.MethodDelete, root + "/{id}", OpCredentials, false, s.deleteCredential},
	}
}

// ownCredentials refuses to touch another user's, and what Keystone keeps
// restricted credentials from: to make others.
func ownCredentials(c *call, change bool) (*User, error) {
	action := "You are not authorized to perform the requested action: "
	switch {
	case c.arg("user") != c.auth.user.ID:
		return nil, forbidden("%sidentity:list_application_credentials.", action)
	case change && c.auth.credential != nil:
		return nil, forbidden("Could not perform the action: application credentials cannot manage application credentials.")
	default:
		return c.auth.user, nil
	}
}

func (s *Simulator) credentialView(c *call, user *User, credential ApplicationCredential) map[string]any {
	view := map[string]any{
		"id": credential.ID, "name": credential.Name, "description": orNil(credential.Description),
		"project_id": s.projectID(credential.Project), "roles": memberRoles(), "unrestricted": false, "expires_at": nil,
		"user_id": user.ID, "system": nil,
		"links": map[string]any{"self": c.root(serviceIdentity) + "/v3/users/" + user.ID + "/application_credentials/" + credential.ID},
	}
	if !credential.expires.IsZero() {
		view["expires_at"] = s.stamp(credential.expires, "2006-01-02T15:04:05.000000")
	}
	if credential.AccessRules != nil {
		rules := []any{}
		for _, r := range credential.AccessRules {
			rules = append(rules, map[string]any{"id": stableHex(r.Service + r.Method + r.Path), "service": r.Service, "method": r.Method, "path": r.Path})
		}
		view["access_rules"] = rules
	}
	return view
}

func (s *Simulator) createCredential(c *call) (*answer, error) {
	var request struct {
		Credential struct {
			Name        string  `json:"name"`
			Description string  `json:"description"`
			Secret      string  `json:"secret"`
			Expires     *string `json:"expires_at"`
			Rules       []struct {
				Service string `json:"service"`
				Method  string `json:"method"`
				Path    string `json:"path"`
			} `json:"access_rules"`
		} `json:"application_credential"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	user, err := ownCredentials(c, true)
	if err != nil {
		return nil, err
	}
	asked := request.Credential
	switch {
	case asked.Name == "":
		return nil, badRequest("'name' is a required property")
	case slices.ContainsFunc(user.ApplicationCredentials, func(known ApplicationCredential) bool { return known.Name == asked.Name && !known.revoked }):
		return nil, conflict("Conflict occurred attempting to store application_credential - Duplicate entry found with name %s.", asked.Name)
	case c.auth.project == nil:
		return nil, forbidden("You are not authorized to perform the requested action: identity:create_application_credential.")
	}
	credential := ApplicationCredential{
		ID: s.newHex(), Name: asked.Name, Description: asked.Description, Project: c.auth.project.Name,
		Secret: orElse(asked.Secret, func() string { return s.newHex() + s.newHex() }),
	}
	if asked.Expires != nil {
		if credential.expires, err = s.parseExpiry(*asked.Expires); err != nil {
			return nil, err
		}
	}
	for _, r := range asked.Rules {
		credential.AccessRules = append(credential.AccessRules, AccessRule{r.Service, r.Method, r.Path})
	}
	// A new slice: tokens point into the old one.
	user.ApplicationCredentials = append(slices.Clone(user.ApplicationCredentials), credential)
	view := s.credentialView(c, user, credential)
	view["secret"] = credential.Secret
	return created(map[string]any{"application_credential": view})
}

func (s *Simulator) parseExpiry(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Add(-s.weather.Clock), nil
		}
	}
	return time.Time{}, badRequest("Invalid input for field 'expires_at': '%s' is not a 'date-time'", text)
}

func (s *Simulator) listCredentials(c *call) (*answer, error) {
	user, err := ownCredentials(c, false)
	if err != nil {
		return nil, err
	}
	views := []any{}
	for _, credential := range user.ApplicationCredentials {
		if name := c.query.Get("name"); !credential.revoked && (name == "" || name == credential.Name) {
			views = append(views, s.credentialView(c, user, credential))
		}
	}
	return ok(map[string]any{
		"application_credentials": views,
		"links":                   map[string]any{"next": nil, "previous": nil, "self": c.root(serviceIdentity) + c.request.URL.RequestURI()[len("/"+serviceIdentity):]},
	})
}

func (s *Simulator) showCredential(c *call) (*answer, error) {
	user, err := ownCredentials(c, false)
	if err != nil {
		return nil, err
	}
	for _, credential := range user.ApplicationCredentials {
		if credential.ID == c.arg("id") && !credential.revoked {
			return ok(map[string]any{"application_credential": s.credentialView(c, user, credential)})
		}
	}
	return nil, notFound("Could not find Application Credential: %s.", c.arg("id"))
}

func (s *Simulator) deleteCredential(c *call) (*answer, error) {
	user, err := ownCredentials(c, true)
	if err != nil {
		return nil, err
	}
	for i := range user.ApplicationCredentials {
		if credential := &user.ApplicationCredentials[i]; credential.ID == c.arg("id") && !credential.revoked {
			s.revoke(credential)
			return noContent()
		}
	}
	return nil, notFound("Could not find Application Credential: %s.", c.arg("id"))
}

// revoke ends an application credential, and its tokens. The lock is held.
func (s *Simulator) revoke(credential *ApplicationCredential) {
	credential.revoked = true
	for id, granted := range s.tokens {
		if granted.credential != nil && granted.credential.ID == credential.ID {
			delete(s.tokens, id)
		}
	}
}
