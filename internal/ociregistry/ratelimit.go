package ociregistry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry/remote/errcode"
)

// refusalLimit bounds how much of the text of a refusal is read, in bytes.
const refusalLimit = 16 << 10

// throttled is the answer of a registry that wants its client to wait.
type throttled struct {
	response errcode.ErrorResponse
	after    time.Duration
	account  string
	allows   string
}

func (e *throttled) Error() string {
	text := strings.TrimSpace(e.response.Error()) + " (asked " + e.account
	if e.after > 0 {
		text += fmt.Sprintf("; the registry asks to wait %s", e.after)
	}
	if e.allows != "" {
		text += "; " + e.allows
	}
	return text + ")"
}

// Unwrap gives the answer.
func (e *throttled) Unwrap() error { return &e.response }

// RetryAfter is how long the registry behind err asked to wait: by Retry-After,
// RFC 9110 section 10.2.3, else until its limit is reset; zero if it did not say.
func RetryAfter(err error) time.Duration {
	if t, ok := errors.AsType[*throttled](err); ok {
		return t.after
	}
	return 0
}

// throttleTransport turns the last answer of a registry that limits its clients
// into an error, while its header, and who asked, are still known.
type throttleTransport struct {
	base  http.RoundTripper
	creds CredentialFunc
}

func (t *throttleTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	after, asked := askedToWait(resp, time.Now())
	limited := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable && asked
	if !limited {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	refusal := &throttled{after: after, account: t.account(r), allows: allowance(resp.Header), response: errcode.ErrorResponse{
		Method: r.Method, URL: r.URL, StatusCode: resp.StatusCode,
	}}
	var body struct {
		Errors errcode.Errors `json:"errors"`
	}
	content, err := io.ReadAll(io.LimitReader(resp.Body, refusalLimit))
	if err == nil && json.Unmarshal(content, &body) == nil {
		refusal.response.Errors = body.Errors
	}
	return nil, refusal
}

// account says with which credential a request was made, without its secret.
func (t *throttleTransport) account(r *http.Request) string {
	if r.Header.Get("Authorization") == "" || t.creds == nil {
		return "without credentials"
	}
	c, err := t.creds(r.Context(), r.URL.Host)
	switch {
	case err != nil || c.IsZero():
		return "without credentials" // an anonymous token
	case c.Username != "":
		return "as " + c.Username
	}
	return "with a token"
}
