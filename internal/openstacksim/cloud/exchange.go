package cloud

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
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
func (c *Cloud) exchange(r *http.Request) (*outcome, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	found, legacy := c.find(r)
	call := &Call{
		Request: found.request, Legacy: legacy, Query: r.URL.Query(), Body: body,
		service: c.serviceOf(r.URL.Path), Base: baseOf(r),
	}
	what, index := c.arrive(call, found.route.op)
	if err := wait(r.Context(), what.Delay); err != nil {
		return nil, err
	}
	var truth *Answer
	if what.Commit || (what.Status == 0 && what.Drop == fault.DropNothing) {
		call.DropMarker = what.DropMarker
		truth = c.perform(call, found)
	}
	result, err := c.disturb(r.Context(), call, truth, what)
	c.settle(index, result, err)
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
func (c *Cloud) arrive(call *Call, op fault.Operation) (fault.Fault, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call.RequestID = "req-" + c.NewID()
	index := c.record(call, op)
	return c.rules.Call(op, call.Request, c.Identity.ProjectOf(call.Request.Header.Get("X-Auth-Token"))), index
}

// perform lets the call take effect.
func (c *Cloud) perform(call *Call, found match) *Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	result, err := c.dispatch(call, found)
	if err != nil {
		result = call.service.wrap(err)
	}
	if result.Body != nil {
		// Encoded under the lock: handlers may hand out what the cloud keeps.
		encoded, err := json.Marshal(result.Body)
		if err != nil {
			return call.service.wrap(err)
		}
		result.Body = json.RawMessage(encoded)
	}
	return result
}

func (c *Cloud) dispatch(call *Call, found match) (*Answer, error) {
	if found.route.do == nil {
		call.unrouted = true
		// Callers without a token do not learn which paths there are.
		if _, err := c.Identity.Authenticate(call); err != nil && call.Service() != "identity" {
			return nil, err
		}
		return nil, call.service.noRoute(call.Request.Method, found.status)
	}
	if len(call.Body) > maxBody {
		return nil, Refuse(http.StatusRequestEntityTooLarge, "Request is too large.")
	}
	if !found.route.open {
		auth, err := c.Identity.Authenticate(call)
		if err != nil {
			return nil, err
		}
		call.Auth = auth
	}
	if before := call.service.Before; before != nil {
		if err := before(call); err != nil {
			return nil, err
		}
	}
	return found.route.do(call)
}

// disturb turns a true answer, or the lack of one, into what the caller sees.
func (c *Cloud) disturb(ctx context.Context, call *Call, truth *Answer, what fault.Fault) (*outcome, error) {
	switch what.Drop {
	case fault.DropRefuse:
		return nil, errRefused
	case fault.DropReset:
		return nil, errReset
	case fault.DropHang:
		<-ctx.Done()
		return nil, ctx.Err()
	case fault.DropNothing, fault.DropTruncate:
	}
	if what.Status != 0 {
		truth = call.service.wrap(&Error{Status: what.Status, Message: what.Message})
	}
	result := &outcome{status: truth.Status, header: http.Header{}, cut: what.Drop == fault.DropTruncate}
	result.header.Set("Date", c.date())
	if what.Body == "" { // or else a proxy answers, and not the service
		call.headers(truth, result.header)
	}
	switch body := truth.Body.(type) {
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
	if what.Body != "" {
		result.body = []byte(what.Body)
		result.header.Set("Content-Type", cmp.Or(what.ContentType, "text/html"))
	}
	if what.RetryAfter != "" {
		result.header.Set("Retry-After", what.RetryAfter)
	}
	return result, nil
}

func (c *Call) headers(truth *Answer, header http.Header) {
	header.Set("Content-Type", "application/json")
	refused := truth.Status == http.StatusUnauthorized
	if !c.Plain && (!refused || !c.service.OwnUnauthorized) {
		header.Set("X-Openstack-Request-Id", c.RequestID)
	}
	if c.service.Headers != nil {
		c.service.Headers(c, !refused && !c.unrouted, header)
	}
	if refused {
		header.Set("Www-Authenticate", fmt.Sprintf("Keystone uri=%q", c.Root("identity")+"/v3"))
	}
	maps.Copy(header, truth.Header)
}

// date is the present by the cloud's clock, as HTTP writes it.
func (c *Cloud) date() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Stamp(c.clock(), http.TimeFormat)
}

// ServeHTTP answers one request.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	result, err := c.exchange(r)
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

// Transport reaches the simulator without a socket, for any host of the URL.
// It is the way in from a testing/synctest bubble, where a goroutine that
// waits for the network would stop the clock.
func (c *Cloud) Transport() http.RoundTripper { return transport{c} }

type transport struct{ cloud *Cloud }

// RoundTrip answers the request in the caller's goroutine.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	result, err := t.cloud.exchange(r)
	if errors.Is(err, errRefused) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	if err != nil {
		return nil, err
	}
	var body io.Reader = bytes.NewReader(result.body)
	if result.cut {
		body = io.MultiReader(bytes.NewReader(result.body[:len(result.body)/2]), cutReader{})
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", result.status, http.StatusText(result.status)),
		StatusCode:    result.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        result.header,
		Body:          io.NopCloser(body),
		ContentLength: int64(len(result.body)),
		Request:       r,
	}, nil
}

type cutReader struct{}

func (cutReader) Read([]byte) (int, error) {
	return 0, fmt.Errorf("%w: %w", errCut, io.ErrUnexpectedEOF)
}
