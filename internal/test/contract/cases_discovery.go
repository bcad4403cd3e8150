package contract

func discoveryCases() []Case {
	return []Case{
		{"discovery", func(s *Session) {
			for _, service := range []string{"image", "network", "volume"} {
				s.Bare("root of "+service, get, service, "root", nil)
			}
			s.Bare("image v2", get, "image", "/v2/", nil)
		}},
		{"unknown-methods", func(s *Session) {
			for _, known := range []struct{ service, path string }{
				{"identity", "/auth/tokens"}, {"identity", "/auth/projects"}, {"compute", "/servers"}, {"image", "/v2/images"}, {"volume", "/types"},
			} {
				s.Call("PUT of "+known.path+" of "+known.service, put, known.service, known.path, object{})
				s.Bare("the same without a token", put, known.service, known.path, object{})
			}
		}},
		{"identity-tokens", func(s *Session) {
			main := s.cloud.main
			password := passwordRequest(main, main.Auth.Password)
			token := s.Quiet(post, "identity", "/auth/tokens", password).Header.Get("X-Subject-Token")
			s.as("catalogue", token, get, "identity", "/auth/catalog", nil)
			projects := s.Quiet(get, "identity", "/auth/projects", nil).List("projects")
			for _, project := range projects {
				if project["name"] == main.Auth.Project {
					delete(project, "links")
					s.Note("own project", object{"name": project["name"], "enabled": project["enabled"], "domain_id": project["domain_id"], "is_domain": project["is_domain"]})
				}
			}
			unscoped := passwordRequest(main, main.Auth.Password)
			inner, ok := unscoped["auth"].(map[string]any)
			if !ok {
				s.fail("no auth in %v", unscoped)
				return
			}
			delete(inner, "scope")
			plain := s.Bare("without a scope", post, "identity", "/auth/tokens", unscoped)
			s.as("servers, with that token", plain.Header.Get("X-Subject-Token"), get, "compute", "/servers", nil)
			s.Bare("a token for it", post, "identity", "/auth/tokens", object{"auth": object{
				"identity": object{"methods": []any{"token"}, "token": object{"id": plain.Header.Get("X-Subject-Token")}},
				"scope":    object{"project": object{"name": main.Auth.Project, "domain": object{"name": "Default"}}},
			}})
			s.Bare("no methods", post, "identity", "/auth/tokens", object{"auth": object{"identity": object{"methods": []any{}}}})
			s.Bare("credential with a scope", post, "identity", "/auth/tokens", scopedCredential(s))
			s.Bare("no token", get, "identity", "/auth/catalog", nil)
		}},
	}
}

func scopedCredential(s *Session) object {
	auth := s.cloud.credential.Auth
	request := credentialRequest(auth.CredentialID, auth.CredentialSecret)
	if inner, ok := request["auth"].(map[string]any); ok {
		inner["scope"] = object{"project": object{"name": s.cloud.main.Auth.Project, "domain": object{"name": "Default"}}}
	}
	return request
}
