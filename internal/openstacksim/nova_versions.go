package openstacksim

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// microversion is one of Nova's 2.minor; its zero value is none.
type microversion struct {
	minor int
	asked string // when it is none that there is
}

func (m microversion) String() string {
	switch {
	case m.asked != "":
		return m.asked
	case m.minor == 0:
		return ""
	default:
		return "2." + strconv.Itoa(m.minor)
	}
}

// least tells whether the call asked for at least 2.minor.
func (m microversion) least(minor int) bool { return m.minor >= minor }

func parseMicroversion(text string) (microversion, bool) {
	minor, found := strings.CutPrefix(text, "2.")
	n, err := strconv.Atoi(minor)
	if !found || err != nil || n < 1 {
		return microversion{}, false
	}
	return microversion{minor: n}, true
}

// negotiate finds the microversion of a call.
func (s *Simulator) negotiate(c *call) (microversion, error) {
	if c.legacy {
		return microversion{minor: 1}, nil
	}
	header := c.request.Header
	greatest, _ := parseMicroversion(s.options.MaxMicroversion)
	switch asked := askedMicroversion(header); asked {
	case "":
		return microversion{minor: 1}, nil
	case "latest":
		return greatest, nil
	default:
		if !regexp.MustCompile(`^[1-9]\d*\.(?:0|[1-9]\d*)$`).MatchString(asked) {
			return microversion{}, badRequest("API Version String %s is of invalid format. Must be of format MajorNum.MinorNum.", asked)
		}
		version, valid := parseMicroversion(asked)
		if !valid || version.minor > greatest.minor {
			return microversion{asked: asked}, refuse(http.StatusNotAcceptable,
				"Version %s is not supported by the API. Minimum is 2.1 and maximum is %s.", asked, greatest)
		}
		return version, nil
	}
}

// plainError is what the web framework below Glance and Nova answers where
// the service itself has no say.
func plainError(e *apiError) *answer {
	end := "\n\n\n"
	if e.kind == kindNoMethod {
		end = "\n"
	}
	return &answer{status: e.status, body: map[string]any{
		"message": e.message + "<br /><br />" + end,
		"code":    fmt.Sprintf("%d %s", e.status, http.StatusText(e.status)),
		"title":   http.StatusText(e.status),
	}}
}

// novaError wraps a refusal as Nova and Cinder do (nova/api/openstack/wsgi.py,
// Fault). A client tells by serviceUnavailable that nothing was done.
func novaError(e *apiError) *answer {
	if e.kind == kindNoRoute {
		return plainError(e)
	}
	wrappers := map[int]string{
		http.StatusBadRequest: "badRequest", http.StatusForbidden: "forbidden", http.StatusNotFound: "itemNotFound",
		http.StatusConflict: "conflictingRequest", http.StatusMethodNotAllowed: "badMethod",
		http.StatusRequestEntityTooLarge: "overLimit", http.StatusTooManyRequests: "overLimit",
		http.StatusUnauthorized: "unauthorized", http.StatusUnsupportedMediaType: "badMediaType",
		http.StatusNotImplemented: "notImplemented", http.StatusServiceUnavailable: "serviceUnavailable",
	}
	wrapper, known := wrappers[e.status]
	if !known {
		wrapper = "computeFault"
	}
	header := http.Header{"Content-Type": {"application/json; charset=UTF-8"}}
	return &answer{status: e.status, header: header, body: map[string]any{wrapper: map[string]any{"code": e.status, "message": e.message}}}
}

func (s *Simulator) computeVersions(c *call) (*answer, error) {
	if s.options.NoVersions {
		return nil, notFound("The resource could not be found.")
	}
	old := map[string]any{
		"id": "v2.0", "status": "SUPPORTED", "version": "", "min_version": "", "updated": "2011-01-21T11:33:21Z",
		"links": []any{map[string]any{"rel": "self", "href": c.root(serviceCompute) + "/v2/"}},
	}
	current := s.computeDocument(c)
	delete(current, "media-types")
	current["links"] = []any{map[string]any{"rel": "self", "href": c.root(serviceCompute) + "/v2.1/"}}
	c.micro, c.plain = microversion{}, true
	return ok(map[string]any{"versions": []any{old, current}})
}

func (s *Simulator) computeVersion(c *call) (*answer, error) {
	if s.options.NoVersions {
		return nil, notFound("The resource could not be found.")
	}
	return ok(map[string]any{"version": s.computeDocument(c)})
}

func (s *Simulator) computeDocument(c *call) map[string]any {
	return map[string]any{
		"id": "v2.1", "status": "CURRENT", "version": s.options.MaxMicroversion, "min_version": "2.1",
		"updated": "2013-07-23T11:33:21Z",
		"links": []any{
			map[string]any{"rel": "self", "href": c.root(serviceCompute) + "/v2.1/"},
			map[string]any{"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"},
		},
		"media-types": []any{map[string]any{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}},
	}
}

// novaLinks are the two links of a thing of Nova.
func novaLinks(c *call, kind, id string) []link {
	self, rest := c.root(serviceCompute)+"/v2.1", c.root(serviceCompute)
	if c.legacy {
		self, rest = rest+"/v2/"+c.auth.project.ID, rest+"/"+c.auth.project.ID
	}
	return []link{
		{Rel: "self", Href: fmt.Sprintf("%s/%s/%s", self, kind, id)},
		{Rel: "bookmark", Href: fmt.Sprintf("%s/%s/%s", rest, kind, id)},
	}
}

type link struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

func bookmark(c *call, kind, id string) []link { return novaLinks(c, kind, id)[1:] }
