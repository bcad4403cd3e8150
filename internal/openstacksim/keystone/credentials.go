package keystone

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
)

// ownCredentials refuses to touch another user's, and what Keystone keeps
// restricted credentials from: to make others.
func (s *Keystone) ownCredentials(c *cloud.Call, change bool) (*User, error) {
	action := "You are not authorized to perform the requested action: "
	switch granted := s.token(c); {
	case c.Arg("user") != c.Auth.UserID:
		return nil, cloud.Forbidden("%sidentity:list_application_credentials.", action)
	case change && granted.credential != nil:
		return nil, cloud.Forbidden("Could not perform the action: application credentials cannot manage application credentials.")
	default:
		return granted.user, nil
	}
}

func (s *Keystone) credentialView(c *cloud.Call, credential ApplicationCredential) map[string]any {
	view := map[string]any{
		"id": credential.ID, "name": credential.Name, "description": cloud.OrNil(credential.Description),
		"project_id": s.cloud.ProjectID(credential.Project), "roles": memberRoles(), "unrestricted": false, "expires_at": nil,
		"user_id": c.Auth.UserID, "system": nil,
		"links": map[string]any{"self": c.Root("identity") + "/v3/users/" + c.Auth.UserID + "/application_credentials/" + credential.ID},
	}
	if !credential.expires.IsZero() {
		view["expires_at"] = s.cloud.Stamp(credential.expires, cloud.Micros)
	}
	if credential.AccessRules != nil {
		rules := []any{}
		for _, r := range credential.AccessRules {
			rules = append(rules, map[string]any{"id": cloud.StableHex(r.Service + r.Method + r.Path), "service": r.Service, "method": r.Method, "path": r.Path})
		}
		view["access_rules"] = rules
	}
	return view
}

func (s *Keystone) createCredential(c *cloud.Call) (*cloud.Answer, error) {
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
	if err := c.Decode(&request); err != nil {
		return nil, err
	}
	user, err := s.ownCredentials(c, true)
	if err != nil {
		return nil, err
	}
	asked := request.Credential
	switch {
	case asked.Name == "":
		return nil, cloud.BadRequest("'name' is a required property")
	case slices.ContainsFunc(user.ApplicationCredentials, func(known ApplicationCredential) bool { return known.Name == asked.Name && !known.revoked }):
		return nil, cloud.Conflict("Conflict occurred attempting to store application_credential - Duplicate entry found with name %s.", asked.Name)
	case c.Auth.Project.ID == "":
		return nil, cloud.Forbidden("You are not authorized to perform the requested action: identity:create_application_credential.")
	}
	credential := ApplicationCredential{
		ID: s.cloud.NewHex(), Name: asked.Name, Description: asked.Description, Project: c.Auth.Project.Name,
		Secret: cmp.Or(asked.Secret, s.cloud.NewHex()+s.cloud.NewHex()),
	}
	if asked.Expires != nil {
		expires, valid := s.cloud.ParseTime(*asked.Expires)
		if !valid {
			return nil, cloud.BadRequest("Invalid input for field 'expires_at': '%s' is not a 'date-time'", *asked.Expires)
		}
		credential.expires = expires
	}
	for _, r := range asked.Rules {
		credential.AccessRules = append(credential.AccessRules, AccessRule{r.Service, r.Method, r.Path})
	}
	user.add(credential)
	view := s.credentialView(c, credential)
	view["secret"] = credential.Secret
	return cloud.Created(map[string]any{"application_credential": view})
}

func (s *Keystone) listCredentials(c *cloud.Call) (*cloud.Answer, error) {
	user, err := s.ownCredentials(c, false)
	if err != nil {
		return nil, err
	}
	views := []any{}
	for _, credential := range user.ApplicationCredentials {
		if name := c.Query.Get("name"); !credential.revoked && (name == "" || name == credential.Name) {
			views = append(views, s.credentialView(c, credential))
		}
	}
	return cloud.OK(map[string]any{
		"application_credentials": views,
		"links":                   map[string]any{"next": nil, "previous": nil, "self": c.Root("identity") + strings.TrimPrefix(c.Request.URL.RequestURI(), "/identity")},
	})
}

// credential is the one that the path of a call names.
func (s *Keystone) credential(c *cloud.Call) (*ApplicationCredential, error) {
	user, err := s.ownCredentials(c, c.Request.Method == http.MethodDelete)
	if err != nil {
		return nil, err
	}
	for i := range user.ApplicationCredentials {
		if credential := &user.ApplicationCredentials[i]; credential.ID == c.Arg("id") && !credential.revoked {
			return credential, nil
		}
	}
	return nil, cloud.NotFound("Could not find Application Credential: %s.", c.Arg("id"))
}

func (s *Keystone) showCredential(c *cloud.Call, credential *ApplicationCredential) (*cloud.Answer, error) {
	return cloud.One("application_credential", s.credentialView(c, *credential))
}

func (s *Keystone) deleteCredential(_ *cloud.Call, credential *ApplicationCredential) (*cloud.Answer, error) {
	s.revoke(credential)
	return cloud.NoContent()
}

// revoke ends an application credential, and its tokens. The lock is held.
func (s *Keystone) revoke(credential *ApplicationCredential) {
	credential.revoked = true
	for id, granted := range s.tokens {
		if granted.credential != nil && granted.credential.ID == credential.ID {
			delete(s.tokens, id)
		}
	}
}
