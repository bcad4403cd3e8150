package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// bodyLimit bounds what is read of one answer. A page of 1,000 servers with
// long metadata stays below a tenth of it.
const bodyLimit = 64 << 20

// call is one request to a service.
type call struct {
	op      string // for errors: "list servers"
	method  string
	service string // compute, network, image
	path    string // below the service's endpoint
	query   url.Values
	body    any
	// changes is true when a repetition could do something twice.
	changes bool
	ok      []int
	decode  func(header http.Header, body io.Reader) error
	again   func() // told of each repetition; nil for nobody
}

// do makes a call, with the retries that its kind allows.
func (c *Client) do(ctx context.Context, call call) error {
	for attempt := 0; ; attempt++ {
		header, err := c.attempt(ctx, call)
		if err == nil {
			return nil
		}
		failed := failure(call.op, call.service, err, call.changes)
		if ctx.Err() != nil {
			return failed
		}
		pause, again := retryDelay(failed, header, call.changes, attempt, time.Now())
		if !again {
			return failed
		}
		if _, asked := retryAfter(header, time.Now()); asked {
			c.limiter.hold(pause)
		}
		c.log.DebugContext(ctx, "retrying", "call", call.op, "reason", failed.Error(), "pause", pause.String())
		c.retrying(failed)
		if call.again != nil {
			call.again()
		}
		if sleep(ctx, pause) != nil {
			return failed
		}
	}
}

// attempt makes a call once, within the time limit of an attempt.
func (c *Client) attempt(ctx context.Context, call call) (http.Header, error) {
	if err := c.limiter.wait(ctx); err != nil {
		return nil, errors.Join(errNotSent, err)
	}
	if err := c.session.freshen(ctx); err != nil {
		return nil, errors.Join(errNotSent, err)
	}
	base, err := c.session.endpoint(call.service)
	if err != nil {
		return nil, err
	}
	attemptCtx, cancel := context.WithTimeout(ctx, c.attemptTimeout)
	defer cancel()
	target := base + call.path
	if len(call.query) > 0 {
		target += "?" + call.query.Encode()
	}
	answer, err := c.session.provider.Request(attemptCtx, call.method, target, &gophercloud.RequestOpts{
		JSONBody: call.body, OkCodes: call.ok, KeepResponseBody: true, MoreHeaders: c.headers(call.service),
	})
	if err != nil {
		if timedOut(ctx, err) {
			err = fmt.Errorf("no answer within %s: %w", c.attemptTimeout, err)
		}
		return headerOf(answer, err), err
	}
	defer answer.Body.Close() // read to its end below
	body := io.LimitReader(answer.Body, bodyLimit)
	if call.decode != nil {
		if err := call.decode(answer.Header, body); err != nil {
			return answer.Header, &Error{
				Op: call.op, Kind: ErrTransient, Doubtful: call.changes, RequestID: requestID(answer.Header),
				Err: fmt.Errorf("reading the answer: %w", err),
			}
		}
	}
	// Read to the end, the connection is used again. The status has said already
	// that it was done.
	_, _ = io.Copy(io.Discard, body)
	return answer.Header, nil
}

// headerOf finds the header of an answer that was not a success.
func headerOf(answer *http.Response, err error) http.Header {
	if answer != nil {
		return answer.Header
	}
	if refused, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err); ok {
		return refused.ResponseHeader
	}
	return nil
}

// headers asks Nova for the negotiated microversion.
func (c *Client) headers(service string) map[string]string {
	if service != compute || c.microversion.IsZero() {
		return nil
	}
	v := c.microversion.String()
	return map[string]string{"X-OpenStack-Nova-API-Version": v, "OpenStack-API-Version": "compute " + v}
}

// get makes a GET and decodes its JSON answer.
func (c *Client) get(ctx context.Context, op, service, path string, query url.Values, into any) error {
	return c.do(ctx, call{
		op: op, method: http.MethodGet, service: service, path: path, query: query, ok: []int{http.StatusOK},
		decode: func(_ http.Header, body io.Reader) error { return json.NewDecoder(body).Decode(into) },
	})
}
