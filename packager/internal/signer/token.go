package signer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// claims are what is read of an identity token before it is sent. Nothing here
// is verified: that is the certificate authority's task.
type claims struct {
	Issuer   string          `json:"iss"`
	Subject  string          `json:"sub"`
	Email    string          `json:"email"`
	Audience json.RawMessage `json:"aud"`
	Expires  *float64        `json:"exp"`
	// Workflow is GitHub's name for the workflow of a job, Pipeline GitLab's for the
	// configuration of a pipeline. Fulcio makes the identity of them.
	Workflow string `json:"job_workflow_ref"`
	Pipeline string `json:"ci_config_ref_uri"`
}

// readToken refuses what no certificate authority could accept: no JSON web
// token (RFC 7519, section 7.2), or one whose time is over.
func readToken(token string, now time.Time) (claims, error) {
	var c claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, fmt.Errorf("%w: it is no JSON web token", ErrToken)
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return c, fmt.Errorf("%w: it is no JSON web token: %w", ErrToken, err)
	}
	if c.Expires != nil {
		if expired := time.Unix(int64(*c.Expires), 0).UTC(); !now.Before(expired) {
			return c, fmt.Errorf("%w: it was valid until %s", ErrToken, expired.Format(time.RFC3339))
		}
	}
	return c, nil
}

// proven is what the key signs to prove that its owner has the token: Fulcio
// names users by their e-mail address and everything else by its subject.
func (c claims) proven() string {
	if c.Email != "" {
		return c.Email
	}
	return c.Subject
}

// audience is whom the token is for, as it was written.
func (c claims) audience() string {
	if len(c.Audience) == 0 {
		return "nobody"
	}
	return string(c.Audience)
}
