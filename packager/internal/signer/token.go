package signer

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// claims are what is read of an identity token before it is sent. Nothing here
// is verified: that is the certificate authority's task.
type claims struct {
	Issuer   string          `json:"iss"`
	Audience json.RawMessage `json:"aud"`
	Expires  *float64        `json:"exp"`
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

// audience is whom the token is for, as it was written.
func (c claims) audience() string {
	if len(c.Audience) == 0 {
		return "nobody"
	}
	return string(c.Audience)
}

// refusal remembers whether a certificate authority refused a request, as it
// does with a token that it does not accept.
type refusal struct {
	next    http.RoundTripper
	refused bool
}

// RoundTrip implements http.RoundTripper.
func (r *refusal) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err == nil {
		switch resp.StatusCode {
		case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
			r.refused = true
		}
	}
	return resp, err
}

// explain says what came of asking for a certificate.
func (r *refusal) explain(err error, authority string, c claims) error {
	if r.refused {
		return fmt.Errorf("%w: %s does not accept one of issuer %q for audience %s: %w", ErrToken, authority, c.Issuer, c.audience(), err)
	}
	return fmt.Errorf("certificate from %s: %w", authority, err)
}

// asSigned names the error of making a signature.
func asSigned(err error, verifying bool) error {
	switch {
	case verifying:
		return fmt.Errorf("%w: %w", ErrTrustedRoot, err)
	case errors.Is(err, ErrToken):
		return err
	}
	return fmt.Errorf("%w: %w", ErrService, err)
}
