package cloud

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"net/url"
	"slices"
)

// Call is one request at work. Handlers get it with the cloud's lock held.
type Call struct {
	Request   *http.Request
	Query     url.Values
	Body      []byte
	Base      string // scheme://host as the caller knows it
	RequestID string
	Auth      *Auth // nil for a call that needs no token
	// Microversion of Nova, as the answer's headers say it, and its number N of
	// 2.N; of other services, none.
	Microversion string
	Minor        int
	// Plain answers have no request ID.
	Plain bool
	// Legacy is for calls to the endpoint of Nova without microversions.
	Legacy bool
	// DropMarker asks the service to purge what the marker names, first.
	DropMarker bool

	service  *Service
	unrouted bool // for a path, or a method, that the service does not have
}

// Arg gives a variable of the path.
func (c *Call) Arg(name string) string { return c.Request.PathValue(name) }

// AtLeast reports whether the call asked for at least 2.minor.
func (c *Call) AtLeast(minor int) bool { return c.Minor >= minor }

// Root gives the address of a service.
func (c *Call) Root(service string) string { return c.Base + "/" + service }

// Service is the name of the service that is called.
func (c *Call) Service() string { return c.service.Name }

// Decode reads the body as JSON.
func (c *Call) Decode(into any) error {
	decoder := json.NewDecoder(bytes.NewReader(c.Body))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return BadRequest("Malformed request body")
	}
	return nil
}

// Answer is what a call gets.
type Answer struct {
	Status int
	Body   any // nil: none
	Header http.Header
}

// OK is an answer with 200 and a body.
func OK(body any) (*Answer, error) { return &Answer{Status: http.StatusOK, Body: body}, nil }

// One is OK with an object of one field.
func One(name string, value any) (*Answer, error) { return OK(map[string]any{name: value}) }

// Created is an answer with 201.
func Created(body any) (*Answer, error) { return &Answer{Status: http.StatusCreated, Body: body}, nil }

// Accepted is an answer with 202.
func Accepted(body any) (*Answer, error) {
	return &Answer{Status: http.StatusAccepted, Body: body}, nil
}

// NoContent is an answer with 204 and no body.
func NoContent() (*Answer, error) { return &Answer{Status: http.StatusNoContent}, nil }

// Error is a refusal; the service at work wraps it in its own way.
type Error struct {
	Status  int
	Message string
	Kind    string // one of those below, or the type in Neutron's wrapper
}

// Kinds of refusals that are written differently.
const (
	// NoRoute is for a path that the service does not have.
	NoRoute = "no route"
	// NoMethod is for a path that it has for other methods.
	NoMethod = "no method"
	// Explained is for a login whose refusal says why.
	Explained = "explained"
)

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Refuse is a refusal with a status of HTTP.
func Refuse(status int, format string, args ...any) error {
	return &Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

// BadRequest is a refusal with 400.
func BadRequest(format string, args ...any) error {
	return Refuse(http.StatusBadRequest, format, args...)
}

// Unauthorized is a refusal with 401.
func Unauthorized() error { return Refuse(http.StatusUnauthorized, "unauthorized") }

// Forbidden is a refusal with 403.
func Forbidden(format string, args ...any) error {
	return Refuse(http.StatusForbidden, format, args...)
}

// Policy is the refusal of a call that only others may make.
func Policy(rule string) error { return Forbidden("Policy doesn't allow %s to be performed.", rule) }

// NotFound is a refusal with 404.
func NotFound(format string, args ...any) error {
	return Refuse(http.StatusNotFound, format, args...)
}

// Conflict is a refusal with 409.
func Conflict(format string, args ...any) error {
	return Refuse(http.StatusConflict, format, args...)
}

// wrap turns a refusal into the answer of the service.
func (s *Service) wrap(err error) *Answer {
	var refusal *Error
	if !errors.As(err, &refusal) {
		refusal = &Error{Status: http.StatusInternalServerError, Message: err.Error()}
	}
	if s.Wrap == nil || refusal.Status == http.StatusUnauthorized && !s.OwnUnauthorized {
		return KeystoneError(refusal)
	}
	return s.Wrap(refusal)
}

// KeystoneError wraps a refusal as Keystone does, and its middleware in front
// of the other services.
func KeystoneError(e *Error) *Answer {
	if e.Kind == NoMethod {
		return &Answer{Status: e.Status, Body: map[string]any{"message": e.Message}}
	}
	message := e.Message
	if e.Status == http.StatusUnauthorized && e.Kind != Explained {
		message = "The request you have made requires authentication."
	}
	problem := map[string]any{"code": e.Status, "message": message, "title": http.StatusText(e.Status)}
	if e.Kind == Explained {
		problem["identity"] = map[string]any{}
	}
	return &Answer{Status: e.Status, Body: map[string]any{"error": problem}}
}

// PlainError is what the web framework below Glance and Nova answers where
// the service itself has no say.
func PlainError(e *Error) *Answer {
	end := "\n\n\n"
	if e.Kind == NoMethod {
		end = "\n"
	}
	return &Answer{Status: e.Status, Body: map[string]any{
		"message": e.Message + "<br /><br />" + end,
		"code":    fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)),
		"title":   http.StatusText(e.Status),
	}}
}

// NovaError wraps a refusal as Nova and Cinder do (nova/api/openstack/wsgi.py,
// Fault). A client tells by serviceUnavailable that nothing was done.
func NovaError(e *Error) *Answer {
	if e.Kind == NoRoute {
		return PlainError(e)
	}
	wrappers := map[int]string{
		http.StatusBadRequest: "badRequest", http.StatusForbidden: "forbidden", http.StatusNotFound: "itemNotFound",
		http.StatusConflict: "conflictingRequest", http.StatusMethodNotAllowed: "badMethod",
		http.StatusRequestEntityTooLarge: "overLimit", http.StatusTooManyRequests: "overLimit",
		http.StatusUnauthorized: "unauthorized", http.StatusUnsupportedMediaType: "badMediaType",
		http.StatusNotImplemented: "notImplemented", http.StatusServiceUnavailable: "serviceUnavailable",
	}
	wrapper, known := wrappers[e.Status]
	if !known {
		wrapper = "computeFault"
	}
	return &Answer{Status: e.Status, Body: map[string]any{wrapper: map[string]any{"code": e.Status, "message": e.Message}}}
}

// Link is a link to a thing, or to the next page of a listing.
type Link struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

// OrNil is a text for JSON in which an empty one is null.
func OrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Sorted are the values of a map that a function keeps, in the order of their keys.
func Sorted[V any](all map[string]V, keep func(V) bool) []V {
	kept := []V{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if keep == nil || keep(all[key]) {
			kept = append(kept, all[key])
		}
	}
	return kept
}

// StableHex gives 32 hexadecimal digits that depend on the text only.
func StableHex(text string) string {
	h := fnv.New128a()
	_, _ = h.Write([]byte(text))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// StableUUID is StableHex in the form of a UUID.
func StableUUID(text string) string {
	h := StableHex(text)
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}
