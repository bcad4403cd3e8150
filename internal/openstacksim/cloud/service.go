package cloud

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
)

// Service is one of OpenStack's, below the path of its name.
type Service struct {
	// Name is that of its type in short: identity, compute, image, network, volume.
	Name string
	// Wrap writes a refusal. One of a bad token is written by Keystone's
	// middleware in front of the service, unless OwnUnauthorized.
	Wrap            func(*Error) *Answer
	OwnUnauthorized bool
	// NoMethod says that a path is there for other methods only; nil for a
	// service that does not tell this from a path that is not there.
	NoMethod func(method string) string
	// Before runs before each call that has a handler; optional.
	Before func(*Call) error
	// Headers adds to those of an answer; optional. Own says whether the
	// service itself answers, and not what stands in front of it.
	Headers func(c *Call, own bool, header http.Header)

	cloud *Cloud
}

// Handler answers a call with the lock held, or returns a refusal.
type Handler func(*Call) (*Answer, error)

// With finds the thing that a call is about, and answers the call with it.
func With[T any](find func(*Call) (T, error), do func(*Call, T) (*Answer, error)) Handler {
	return func(c *Call) (*Answer, error) {
		thing, err := find(c)
		if err != nil {
			return nil, err
		}
		return do(c, thing)
	}
}

// Serve adds a service, which then gets its calls with Handle and Open.
func (c *Cloud) Serve(s Service) *Service {
	s.cloud = c
	c.names[s.Name] = &s
	return &s
}

// Handle adds a call. The pattern is that of [net/http.ServeMux] with the path
// below the service's name, such as "GET /v3/auth/tokens".
func (s *Service) Handle(pattern string, op fault.Operation, do Handler) {
	s.route(pattern, route{op: op, do: do})
}

// Open adds a call that needs no token.
func (s *Service) Open(pattern string, op fault.Operation, do Handler) {
	s.route(pattern, route{op: op, do: do, open: true})
}

func (s *Service) route(pattern string, r route) {
	method, path, _ := strings.Cut(pattern, " ")
	s.cloud.mux.Handle(method+" /"+s.Name+path, r)
}

// route is a call as the mux knows it.
type route struct {
	op   fault.Operation
	do   Handler
	open bool
}

// ServeHTTP only notes the route, and the request with the variables of its path.
func (r route) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if found, ok := w.(*match); ok {
		found.route, found.request = r, request
	}
}

// match is a writer in which the mux leaves what it found.
type match struct {
	route   route
	request *http.Request
	status  int // of the mux, where it found nothing
}

// Header is of no use.
func (m *match) Header() http.Header { return http.Header{} }

// Write drops what the mux would say.
func (m *match) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader notes how the mux refuses a request.
func (m *match) WriteHeader(status int) { m.status = status }

// find returns the route of a request. Paths may end in a slash. A path with
// no route has the operation unknown.
func (c *Cloud) find(r *http.Request) (found match, legacy bool) {
	path, legacy := legacyPath(strings.TrimRight(r.URL.Path, "/"))
	plain := *r
	plain.URL = &url.URL{Path: path}
	found = match{request: r, route: route{op: fault.OpUnknown}}
	c.mux.ServeHTTP(&found, &plain)
	found.request.URL = r.URL
	return found, legacy
}

// legacyPath rewrites the path of a call to the legacy endpoint of Nova, which
// answers as 2.1 does without the header.
func legacyPath(path string) (string, bool) {
	rest, found := strings.CutPrefix(path, "/compute/v2/")
	if !found {
		return path, false
	}
	_, rest, _ = strings.Cut(rest, "/") // the project
	return strings.TrimSuffix("/compute/v2.1/"+rest, "/"), true
}

// serviceOf returns the service of a path; one without a name for others.
func (c *Cloud) serviceOf(path string) *Service {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if known := c.names[first]; known != nil {
		return known
	}
	return &Service{NoMethod: func(string) string {
		return "The server could not comply with the request since it is either malformed or otherwise incorrect."
	}}
}

// noRoute is what a service answers for a path that it does not have, or not
// with this method.
func (s *Service) noRoute(method string, status int) error {
	if status != http.StatusMethodNotAllowed || s.NoMethod == nil {
		return &Error{Status: http.StatusNotFound, Kind: NoRoute, Message: "The resource could not be found."}
	}
	return &Error{Status: status, Kind: NoMethod, Message: s.NoMethod(method)}
}
