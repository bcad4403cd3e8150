package ociregistry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

// request is one call of the distribution specification.
type request struct {
	method string
	// path follows /v2/NAME/; url, if set, is the whole address instead.
	path, url string
	header    map[string]string
	body      io.Reader
	// length is that of a body whose length its type does not tell.
	length int64
	// push asks for the right to write.
	push bool
	// from is another repository that is read, for mounts.
	from string
}

// do sends a request and returns the answer, whose status is a success; any other
// is a [*refusal].
func (r *Repository) do(ctx context.Context, q request) (*http.Response, error) {
	plain, err := r.client.schemes.plainHTTP(ctx, r.ref.Registry)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTLSFiles, err)
	}
	actions := []string{auth.ActionPull}
	if q.push {
		actions = append(actions, auth.ActionPush)
	}
	ctx = auth.AppendRepositoryScope(ctx, r.ref, actions...)
	if q.from != "" {
		other := r.ref
		other.Repository = q.from
		ctx = auth.AppendRepositoryScope(ctx, other, auth.ActionPull)
	}
	if q.url == "" {
		q.url = "https://"
		if plain {
			q.url = "http://"
		}
		q.url += r.ref.Host() + "/v2/" + r.ref.Repository + "/" + q.path
	}
	req, err := http.NewRequestWithContext(ctx, q.method, q.url, q.body)
	if err != nil {
		return nil, err
	}
	if q.length > 0 {
		req.ContentLength = q.length
	}
	// Layers arrive compressed; nothing is to compress them again.
	req.Header.Set("Accept-Encoding", "identity")
	for name, value := range q.header {
		req.Header.Set(name, value)
	}
	resp, err := r.auth.Do(req)
	if err != nil {
		return nil, ofAuth(req, err)
	}
	r.warn(resp)
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusMultipleChoices {
		return nil, refused(resp)
	}
	return resp, nil
}

// ofAuth sorts what auth.Client says when there is no answer: an error of the
// token endpoint, or one of the transport.
func ofAuth(req *http.Request, err error) error {
	if response, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		return ofTokenEndpoint(req, response)
	}
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		return fmt.Errorf("%s %s: %w: 401, and there are no credentials for it", req.Method, shown(req.URL), ErrUnauthorized)
	}
	if busy, ok := errors.AsType[*throttled](err); ok {
		return busy // it names the request itself
	}
	if call, ok := errors.AsType[*url.Error](err); ok {
		return &noAnswerError{call}
	}
	return err
}

// noAnswerError is a call that no answer came to.
type noAnswerError struct{ call *url.Error }

func (e *noAnswerError) Error() string {
	return fmt.Sprintf("%s %s: %v", strings.ToUpper(e.call.Op), plaintext.Redact(e.call.URL), e.call.Err)
}

func (e *noAnswerError) Unwrap() error { return e.call }

// document sends a request for a JSON object of at most limit bytes. A connection
// that is lost while the answer comes is made again.
func (r *Repository) document(ctx context.Context, q request, limit int64) ([]byte, *http.Response, error) {
	for attempt := 0; ; attempt++ {
		resp, err := r.do(ctx, q)
		if err != nil {
			if statusOf(err) != http.StatusNotFound {
				err = ofStorage(r.ref.Host(), err)
			}
			return nil, nil, err
		}
		content, err := document(resp, limit)
		if err == nil || !brokeOff(err) || attempt >= r.client.retries.count || ctx.Err() != nil {
			return content, resp, err
		}
		wait := r.client.retries.wait(attempt)
		r.client.logger.Info("the answer of the registry broke off, asking again", "error", plaintext.Redact(err.Error()), "wait", wait)
		if err := sleep(ctx, wait); err != nil {
			return nil, nil, err
		}
	}
}

// left reports whether an answer is another server's, to which the registry
// redirected.
func left(resp *http.Response) bool { return first(resp.Request).URL.Host != resp.Request.URL.Host }

// first is the request that began a chain of redirects.
func first(r *http.Request) *http.Request {
	for r.Response != nil && r.Response.Request != nil {
		r = r.Response.Request
	}
	return r
}

// warningText is a warning as the specification allows it: 299 - "text".
var warningText = regexp.MustCompile(`^299 - "((?:[^"\\]|\\.)*)"$`)

// warn passes on, once, what the registry wants its users to know.
func (r *Repository) warn(resp *http.Response) {
	for _, value := range resp.Header.Values("Warning") {
		text := warningText.FindStringSubmatch(strings.TrimSpace(value))
		if text == nil {
			continue
		}
		if _, before := r.client.told.LoadOrStore(r.ref.Registry+" "+text[1], true); !before {
			r.client.logger.Warn("registry warning", "repository", r.name, "text", line(text[1]))
		}
	}
}

// pageTransport notices a web page where a registry or its token endpoint should
// have answered: the login page of a network, or another server altogether.
// Blobs may be anything.
type pageTransport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t pageTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK || r.Method == http.MethodHead || mediaType(resp.Header) != "text/html" {
		return resp, err
	}
	// A catch-all page in place of an API that is not there is no failure.
	asked, method := first(r).URL.Path, first(r).Method
	if method == http.MethodGet && (strings.Contains(asked, "/blobs/") || strings.Contains(asked, "/referrers/")) {
		return resp, nil
	}
	start := make([]byte, refusalLimit)
	n, err := io.ReadFull(resp.Body, start)
	start = start[:n]
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || !isPage(start) {
		resp.Body = rejoined{io.MultiReader(strings.NewReader(string(start)), resp.Body), resp.Body}
		return resp, nil
	}
	_ = resp.Body.Close()
	return nil, fmt.Errorf("%w, %s", ErrPage, page(start))
}

// rejoined is a body whose beginning was read.
type rejoined struct {
	io.Reader
	io.Closer
}
