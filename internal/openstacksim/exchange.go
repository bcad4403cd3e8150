package openstacksim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxBody bounds the body of a request; Nova's own limit is of this size.
const maxBody = 1 << 20

var (
	errRefused = errors.New("openstacksim: connection refused by the cloud")
	errReset   = errors.New("openstacksim: connection reset by the cloud")
	errCut     = errors.New("openstacksim: answer cut short")
)

// outcome is an exchange before it goes over a wire.
type outcome struct {
	status int
	header http.Header
	body   []byte
	cut    bool // the body is announced whole and ends in the middle
}

// exchange answers one request, faults included. Its error means that there
// is no answer: the connection breaks, or ctx of the request ended.
func (s *Simulator) exchange(r *http.Request) (*outcome, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	path, legacy := legacyPath(r.URL.Path)
	found, vars, status := s.router.find(r.Method, path)
	c := &call{
		request: r, legacy: legacy, query: r.URL.Query(), vars: vars, body: body,
		service: serviceOf(r.URL.Path), base: baseOf(r),
	}
	fault, index := s.arrive(c, found.op)

	if err := wait(r.Context(), fault.Delay); err != nil {
		return nil, err
	}
	var truth *answer
	if fault.Commit || (fault.Status == 0 && fault.Drop == DropNothing) {
		truth = s.perform(c, found, status, fault)
	}
	result, err := s.disturb(r.Context(), c, truth, fault)
	s.settle(index, result, err)
	return result, err
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	return body, nil
}

// arrive records the call and chooses its fault.
func (s *Simulator) arrive(c *call, op Operation) (Fault, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.requestID = "req-" + s.newID()
	index := s.record(c, op)
	return s.faultFor(op, c.request), index
}

// perform lets the call take effect.
func (s *Simulator) perform(c *call, found route, status int, fault Fault) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	if fault.DropMarker {
		if marker := s.servers[c.query.Get("marker")]; marker != nil {
			s.purge(marker)
		}
	}
	result, err := s.dispatch(c, found, status)
	if err != nil {
		result = wrapError(c.service, err)
	}
	if result.body != nil {
		// Encoded under the lock: handlers may hand out what the cloud keeps.
		encoded, err := json.Marshal(result.body)
		if err != nil {
			return wrapError(c.service, err)
		}
		result.body = json.RawMessage(encoded)
	}
	return result
}

func (s *Simulator) dispatch(c *call, found route, status int) (*answer, error) {
	if found.handle == nil {
		// Who is nobody does not learn which paths there are.
		if _, err := s.authenticate(c); err != nil && c.service != serviceIdentity {
			return nil, err
		}
		return nil, noRoute(c, status)
	}
	if len(c.body) > maxBody {
		return nil, refuse(http.StatusRequestEntityTooLarge, "Request is too large.")
	}
	if !found.open {
		auth, err := s.authenticate(c)
		if err != nil {
			return nil, err
		}
		c.auth = auth
	}
	if c.service == serviceCompute {
		micro, err := s.negotiate(c)
		c.micro = micro
		if err != nil {
			return nil, err
		}
	}
	if project, given := c.vars["project"]; given && project != c.auth.project.ID {
		return nil, badRequest("Malformed request url")
	}
	return found.handle(c)
}

// noRoute is what a service answers for a path that it does not have, or not
// with this method: Nova and Cinder do not tell the two apart, the others have
// words of their own.
func noRoute(c *call, status int) error {
	c.unrouted = true
	e := &apiError{status: http.StatusNotFound, kind: kindNoRoute, message: "The resource could not be found."}
	if status != http.StatusMethodNotAllowed || c.service == serviceCompute || c.service == serviceVolume {
		return e
	}
	e.status, e.kind = status, kindNoMethod
	switch c.service {
	case serviceIdentity:
		e.message = "The method is not allowed for the requested URL."
	case serviceImage:
		e.message = "The method " + c.request.Method + " is not allowed for this resource. "
	default:
		e.message = "The server could not comply with the request since it is either malformed or otherwise incorrect."
	}
	return e
}

// disturb turns a true answer, or the lack of one, into what the caller sees.
func (s *Simulator) disturb(ctx context.Context, c *call, truth *answer, fault Fault) (*outcome, error) {
	switch fault.Drop {
	case DropRefuse:
		return nil, errRefused
	case DropReset:
		return nil, errReset
	case DropHang:
		<-ctx.Done()
		return nil, ctx.Err()
	case DropNothing, DropTruncate:
	}
	if fault.Status != 0 {
		truth = wrapError(c.service, &apiError{status: fault.Status, message: fault.Message})
	}
	result := &outcome{status: truth.status, header: http.Header{}, cut: fault.Drop == DropTruncate}
	result.header.Set("Date", s.date())
	if fault.Body == "" { // or else a proxy answers, and not the service
		s.headers(c, truth, result.header)
	}
	switch body := truth.body.(type) {
	case nil:
	case json.RawMessage:
		result.body = body
	default:
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encoding the answer: %w", err)
		}
		result.body = encoded
	}
	if fault.Body != "" {
		result.body = []byte(fault.Body)
		result.header.Set("Content-Type", "text/html")
		if fault.ContentType != "" {
			result.header.Set("Content-Type", fault.ContentType)
		}
	}
	if fault.RetryAfter != "" {
		result.header.Set("Retry-After", fault.RetryAfter)
	}
	return result, nil
}

func (s *Simulator) headers(c *call, truth *answer, header http.Header) {
	header.Set("Content-Type", "application/json")
	refused := truth.status == http.StatusUnauthorized
	byCinder := c.service == serviceVolume && !refused && !c.unrouted // and not by what stands in front of it
	if !c.plain && (!refused || c.service != serviceImage) {
		header.Set("X-Openstack-Request-Id", c.requestID)
		if c.service == serviceCompute || byCinder {
			header.Set("X-Compute-Request-Id", c.requestID)
		}
	}
	if byCinder && !c.plain {
		header.Set("Openstack-Api-Version", "volume 3.0")
		header.Set("Vary", "OpenStack-API-Version")
	}
	if c.service == serviceIdentity {
		header.Set("Vary", "X-Auth-Token")
	}
	if c.service == serviceCompute && c.micro.String() != "" && !c.legacy {
		header.Set("Openstack-Api-Version", "compute "+c.micro.String())
		header.Set("X-Openstack-Nova-Api-Version", c.micro.String())
		header["Vary"] = []string{"OpenStack-API-Version", "X-OpenStack-Nova-API-Version"}
	}
	if refused {
		header.Set("Www-Authenticate", fmt.Sprintf("Keystone uri=%q", c.root(serviceIdentity)+"/v3"))
	}
	maps.Copy(header, truth.header)
}

// date is the present by the cloud's clock, as HTTP writes it.
func (s *Simulator) date() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stamp(s.options.Now(), http.TimeFormat)
}

// ServeHTTP answers one request.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	result, err := s.exchange(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), result.header)
	if result.status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(len(result.body)))
	}
	w.WriteHeader(result.status)
	body := result.body
	if result.cut {
		body = body[:len(body)/2]
	}
	// Who hung up does not want to know.
	_, _ = w.Write(body)
	if result.cut {
		panic(http.ErrAbortHandler)
	}
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func serviceOf(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}

func baseOf(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil || r.URL.Scheme == "https" {
		scheme = "https"
	}
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	return scheme + "://" + host
}
