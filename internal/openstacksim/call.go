package openstacksim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// call is one request at work. Handlers get it with the simulator's lock held.
type call struct {
	request   *http.Request
	query     url.Values
	vars      map[string]string
	body      []byte
	service   string
	base      string // scheme://host as the caller knows it
	requestID string
	auth      *token
	micro     microversion // of Nova
	plain     bool         // answered without a request ID
	legacy    bool         // to the endpoint of Nova without microversions
	unrouted  bool         // for a path, or a method, that the service does not have
}

// arg gives a variable of the path.
func (c *call) arg(name string) string { return c.vars[name] }

// root gives the address of a service.
func (c *call) root(service string) string { return c.base + "/" + service }

// decode reads the body as JSON.
func (c *call) decode(into any) error {
	decoder := json.NewDecoder(bytes.NewReader(c.body))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return badRequest("Malformed request body")
	}
	return nil
}

// answer is what a call gets.
type answer struct {
	status int
	body   any // nil: none
	header http.Header
}

func ok(body any) (*answer, error) { return &answer{status: http.StatusOK, body: body}, nil }

func created(body any) (*answer, error) { return &answer{status: http.StatusCreated, body: body}, nil }

func accepted(body any) (*answer, error) {
	return &answer{status: http.StatusAccepted, body: body}, nil
}

func noContent() (*answer, error) { return &answer{status: http.StatusNoContent}, nil }

// apiError is a refusal; the service at work wraps it in its own way.
type apiError struct {
	status  int
	message string
	kind    string // the type in Neutron's wrapper
}

// Kinds of refusals that are written differently.
const (
	// kindNoRoute is for a path that the service does not have.
	kindNoRoute = "no route"
	// kindNoMethod is for a path that it has for other methods.
	kindNoMethod = "no method"
	// kindExplained is for a login whose refusal says why.
	kindExplained = "explained"
)

func (e *apiError) Error() string { return e.message }

func refuse(status int, format string, args ...any) error {
	return &apiError{status: status, message: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return refuse(http.StatusBadRequest, format, args...)
}

func forbidden(format string, args ...any) error {
	return refuse(http.StatusForbidden, format, args...)
}

func notFound(format string, args ...any) error {
	return refuse(http.StatusNotFound, format, args...)
}

func conflict(format string, args ...any) error {
	return refuse(http.StatusConflict, format, args...)
}

// wrapError turns a refusal into the answer of the service.
func wrapError(service string, err error) *answer {
	var refusal *apiError
	if !errors.As(err, &refusal) {
		refusal = &apiError{status: http.StatusInternalServerError, message: err.Error()}
	}
	switch {
	case service == serviceImage:
		return glanceError(refusal)
	case service == serviceNetwork && refusal.status != http.StatusUnauthorized:
		return neutronError(refusal)
	case service == serviceVolume && refusal.status != http.StatusUnauthorized:
		return cinderError(refusal)
	case service == serviceCompute && refusal.status != http.StatusUnauthorized:
		return novaError(refusal)
	default:
		return keystoneError(refusal)
	}
}
