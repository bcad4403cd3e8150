package contract

func identityCases() []Case {
	return []Case{
		{"identity-discovery", func(s *Session) {
			s.Bare("versions", get, "identity", "root", nil)
			s.Bare("version 3", get, "identity", "", nil)
		}},
		{"identity-password", func(s *Session) {
			main := s.cloud.main
			s.Bare("right password", post, "identity", "/auth/tokens", passwordRequest(main, main.Auth.Password))
			s.Bare("wrong password", post, "identity", "/auth/tokens", passwordRequest(main, "wrong"))
			stranger := main
			stranger.Auth.Username = "nobody"
			s.Bare("unknown user", post, "identity", "/auth/tokens", passwordRequest(stranger, "wrong"))
			elsewhere := main
			elsewhere.Auth.Project = "nowhere"
			s.Bare("unknown project", post, "identity", "/auth/tokens", passwordRequest(elsewhere, main.Auth.Password))
		}},
		{"identity-credential", func(s *Session) {
			auth := s.cloud.credential.Auth
			s.Bare("right secret", post, "identity", "/auth/tokens", credentialRequest(auth.CredentialID, auth.CredentialSecret))
			s.Bare("wrong secret", post, "identity", "/auth/tokens", credentialRequest(auth.CredentialID, "wrong"))
			s.Bare("unknown credential", post, "identity", "/auth/tokens", credentialRequest("00000000000000000000000000000000", "wrong"))
		}},
		{"identity-bad-token", func(s *Session) {
			for _, call := range [][2]string{
				{"compute", "/servers"}, {"image", "/v2/images"}, {"network", "/v2.0/networks"}, {"volume", "/volumes"},
			} {
				s.Bare("no token for "+call[0], get, call[0], call[1], nil)
				s.as("bad token for "+call[0], "bad", get, call[0], call[1], nil)
			}
		}},
	}
}
