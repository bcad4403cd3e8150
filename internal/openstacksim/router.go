package openstacksim

import (
	"net/http"
	"strings"
)

// route ties a call to the code that answers it.
type route struct {
	method  string
	pattern string // segments, {name} for a variable one
	op      Operation
	open    bool // answered without a token
	handle  func(*call) (*answer, error)
}

type router struct{ routes []compiledRoute }

type compiledRoute struct {
	route
	segments []string
}

func newRouter(routes []route) *router {
	compiled := make([]compiledRoute, 0, len(routes))
	for _, r := range routes {
		compiled = append(compiled, compiledRoute{route: r, segments: split(r.pattern)})
	}
	return &router{routes: compiled}
}

// find gives the first route for a request. Without one, the answer's status
// is 405 when the path is known with another method, else 404.
func (rt *router) find(method, path string) (found route, vars map[string]string, status int) {
	segments := split(path)
	status = http.StatusNotFound
	for _, candidate := range rt.routes {
		values, ok := candidate.match(segments)
		if !ok {
			continue
		}
		if candidate.method == method {
			return candidate.route, values, http.StatusOK
		}
		status = http.StatusMethodNotAllowed
	}
	return route{op: OpUnknown}, nil, status
}

func (c compiledRoute) match(segments []string) (map[string]string, bool) {
	if len(segments) != len(c.segments) {
		return nil, false
	}
	var values map[string]string
	for i, want := range c.segments {
		if strings.HasPrefix(want, "{") {
			if values == nil {
				values = map[string]string{}
			}
			values[strings.Trim(want, "{}")] = segments[i]
			continue
		}
		if want != segments[i] {
			return nil, false
		}
	}
	return values, true
}

func split(path string) []string {
	path = strings.Trim(path, "/")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

// routes lists every call that the cloud knows, by service.
func (s *Simulator) routes() []route {
	var all []route
	all = append(all, s.keystoneRoutes()...)
	all = append(all, s.credentialRoutes()...)
	all = append(all, s.novaRoutes()...)
	all = append(all, s.glanceRoutes()...)
	all = append(all, s.neutronRoutes()...)
	all = append(all, s.cinderRoutes()...)
	all = append(all, s.quotaRoutes()...)
	return all
}
