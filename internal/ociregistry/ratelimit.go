package ociregistry

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// throttled is the answer of a registry that wants its client to wait.
type throttled struct {
	answer  *refusal
	after   time.Duration
	account string
	allows  string
}

func (e *throttled) Error() string {
	text := e.answer.Error() + " (asked " + e.account
	if e.after > 0 {
		text += fmt.Sprintf("; the registry asks to wait %s", e.after)
	}
	if e.allows != "" {
		text += "; " + e.allows
	}
	return text + ")"
}

// Unwrap gives the answer.
func (e *throttled) Unwrap() error { return e.answer }

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
	return nil, &throttled{answer: refused(resp), after: after, account: t.account(r), allows: allowance(resp.Header)}
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
