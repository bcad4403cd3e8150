package cloud

import (
	"cmp"
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

const (
	// callTimeout bounds a call with all of its attempts and pauses.
	callTimeout = 3 * time.Minute
	// headSize is how much of an answer that cannot be read is kept to say what
	// came instead.
	headSize = 1 << 10
	// restLimit bounds what is read behind an answer, so that its connection can
	// be used again.
	restLimit = 64 << 10
)

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
	// once leaves repetitions to the caller, which has a queue for them; sparing,
	// those of a call that the cloud refused for its rate.
	once, sparing bool
	ok            []int
	decode        func(header http.Header, body io.Reader) error
}

// address is where the call goes, below the endpoint of its service.
func (c call) address(base string) string {
	if len(c.query) == 0 {
		return base + c.path
	}
	return base + c.path + "?" + c.query.Encode()
}

// do makes a call, with the retries that its kind allows.
func (c *Client) do(ctx context.Context, call call) error {
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, fmt.Errorf("gave up after %s: %w", callTimeout, context.DeadlineExceeded))
	defer cancel()
	for attempt := 0; ; attempt++ {
		header, err := c.attempt(ctx, call)
		if err == nil {
			c.limiter.passed()
			return nil
		}
		failed := failure(call.op, call.service, err, call.changes, &c.session.secrets)
		if ctx.Err() != nil {
			return failed
		}
		if call.service == compute && c.lower(ctx, failed) {
			continue
		}
		c.pace(failed, header)
		pause, again := retryDelay(failed, header, call.changes, attempt, time.Now())
		if !again || call.once || call.sparing && Throttled(failed) {
			return failed
		}
		c.log.DebugContext(ctx, "retrying", "call", call.op, "reason", failed.Error(), "pause", pause.String())
		c.retrying(failed)
		if sleep(ctx, spread(pause, c.session.opts.Random)) != nil {
			return failed
		}
	}
}

// pace has the limiter follow an answer that was not a success.
func (c *Client) pace(failed *Error, header http.Header) {
	asked, told := retryAfter(header, time.Now())
	switch {
	case told || failed.Status == http.StatusTooManyRequests || failed.Status == statusTokenRate:
		c.limiter.refused(min(max(asked, 0), longestWait))
	case failed.Status != 0:
		c.limiter.passed()
	}
}

// attempt makes a call once, within the time limit of an attempt. What may be done
// twice is sent again when its answer is overdue.
func (c *Client) attempt(ctx context.Context, call call) (http.Header, error) {
	if err := c.limiter.wait(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	asked, overdue := time.Now(), c.patience.overdue(call)
	first := func(ctx context.Context) (*http.Response, error) { return c.send(ctx, call) }
	limit, again := overdue, send(nil)
	if !call.changes {
		limit, again = attemptTimeout, func(ctx context.Context) (*http.Response, error) {
			if err := c.limiter.wait(ctx); err != nil {
				return nil, err
			}
			return c.send(ctx, call)
		}
	}
	sending, end := context.WithTimeout(ctx, limit)
	defer end()
	answer, cancel, err := hedge(sending, overdue, first, again)
	defer cancel()
	if err != nil {
		if timedOut(ctx, err) {
			err = fmt.Errorf("no answer within %s: %w", limit, err)
		}
		return headerOf(answer, err), err
	}
	c.patience.answered(call, time.Since(asked))
	defer answer.Body.Close() // read to its end below
	return answer.Header, c.receive(ctx, call, answer, asked)
}

// send sends the request of a call.
func (c *Client) send(ctx context.Context, call call) (*http.Response, error) {
	if err := c.session.freshen(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	base, err := c.session.endpoint(call.service)
	if err != nil {
		return nil, err
	}
	if call.changes {
		// What it drops, it says nothing of.
		if err := c.checkVersion(ctx, base, nil); err != nil {
			return nil, err
		}
	}
	var sent progress
	answer, err := c.session.provider.Request(sent.watch(ctx), call.method, call.address(base), &gophercloud.RequestOpts{
		JSONBody: call.body, OkCodes: call.ok, KeepResponseBody: true, MoreHeaders: c.headers(call.service),
	})
	if err != nil && sent.incomplete() {
		err = fmt.Errorf("%w: %w", errNotSent, err)
	}
	return answer, err
}

// receive reads the answer to a call that was a success.
func (c *Client) receive(ctx context.Context, call call, answer *http.Response, asked time.Time) error {
	if call.service == compute {
		c.session.clock.observe(answer.Header, asked, time.Now())
		c.session.clock.report(ctx, c.log)
	}
	base, err := c.session.endpoint(call.service)
	if err != nil {
		return err
	}
	if call.decode != nil {
		read := &head{Reader: answer.Body}
		if err := call.decode(answer.Header, read); err != nil {
			return &Error{
				Op: call.op, Kind: ErrTransient, Doubtful: call.changes, RequestID: requestID(answer.Header),
				Err: fmt.Errorf("reading the answer: %w: %s", err, pageOf(call.method, call.address(base), answer.Header, read.kept, &c.session.secrets)),
			}
		}
	}
	// The status has said already that it was done.
	_, _ = io.CopyN(io.Discard, answer.Body, restLimit)
	switch {
	case call.service != compute:
		return nil
	case call.changes:
		c.noteVersion(base, answer)
		return nil
	default:
		return c.checkVersion(ctx, base, answer)
	}
}

// head keeps the beginning of what is read.
type head struct {
	io.Reader
	kept []byte
}

// Read implements io.Reader.
func (h *head) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	h.kept = append(h.kept, p[:min(n, headSize-len(h.kept))]...)
	return n, err
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
	version := c.Microversion()
	if service != compute || version.IsZero() {
		return nil
	}
	return versionHeaders(version.String())
}

// get makes a GET and decodes its JSON answer.
func (c *Client) get(ctx context.Context, op, service, path string, into any) error {
	return c.do(ctx, call{
		op: op, method: http.MethodGet, service: service, path: path, ok: []int{http.StatusOK},
		decode: func(_ http.Header, body io.Reader) error { return decodeJSON(body, into) },
	})
}

// decodeJSON reads a whole answer as one JSON value. Its errors quote nothing.
func decodeJSON(body io.Reader, into any) error {
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	err = json.Unmarshal(raw, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s is not of the kind that the API has", cmp.Or(wrong.Field, "the value"))
	}
	if err != nil {
		return errNotJSON
	}
	return nil
}
