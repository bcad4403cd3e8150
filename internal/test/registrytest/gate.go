package registrytest

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"time"
)

// Gate stands in front of a registry: it records requests and breaks those
// that a fault matches. What it lets through goes on to how the registry behaves,
// see [Registry.Behave].
type Gate struct {
	next   http.Handler
	mu     sync.Mutex
	faults []*Fault
	seen   []Request
}

// Request is one request as it came in. Length is that of its body in bytes, -1
// if it was not announced.
type Request struct {
	Method, Path, Query string
	Length              int64
}

// Fault breaks matching requests. The zero value of each matcher matches all.
type Fault struct {
	// Method and Path (a regular expression on the URL path) choose requests.
	Method, Path string
	// Skip lets that many matching requests through first.
	Skip int
	// Times is how often the fault strikes; 0 means always.
	Times int

	// Status answers with that status, as JSON unless Header says otherwise.
	Status int
	Header map[string]string
	// Body replaces the error that is answered with Status.
	Body string
	// Reset cuts the connection without an answer.
	Reset bool
	// CutAfter cuts the connection after that many bytes of the answer's body.
	CutAfter int
	// CutUpload lets the registry have that many bytes of the request's body
	// and then cuts the connection without an answer.
	CutUpload int64
	// Stall sends the header and half of nothing: the answer never ends until
	// the client gives up.
	Stall bool
	// Before runs ahead of the request, for races: it may itself use the
	// registry.
	Before func()

	re   *regexp.Regexp
	hits int
}

// Break adds faults. The first that matches a request strikes.
func (g *Gate) Break(t testing.TB, faults ...Fault) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range faults {
		f.re = regexp.MustCompile(f.Path)
		g.faults = append(g.faults, &f)
	}
}

// Mend removes all faults.
func (g *Gate) Mend() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = nil
}

// Requests returns what came in since the start or the last Forget.
func (g *Gate) Requests() []Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Request(nil), g.seen...)
}

// Forget empties the record of requests.
func (g *Gate) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = nil
}

func (g *Gate) record(r *http.Request) (*Fault, http.Handler) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = append(g.seen, Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Length: r.ContentLength})
	for _, f := range g.faults {
		if f.Method != "" && f.Method != r.Method || !f.re.MatchString(r.URL.Path) {
			continue
		}
		f.hits++
		if f.hits <= f.Skip || f.Times > 0 && f.hits > f.Skip+f.Times {
			continue
		}
		return f, g.next
	}
	return nil, g.next
}

// ServeHTTP implements http.Handler.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, next := g.record(r)
	if f == nil {
		next.ServeHTTP(w, r)
		return
	}
	if f.Before != nil {
		f.Before()
	}
	switch {
	case f.Status != 0:
		w.Header().Set("Content-Type", "application/json")
		for k, v := range f.Header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, cmp.Or(f.Body, `{"errors":[{"code":"TEST_FAULT","message":"broken on purpose"}]}`))
	case f.Reset:
		panic(http.ErrAbortHandler)
	case f.CutAfter > 0:
		next.ServeHTTP(&cutWriter{ResponseWriter: w, left: f.CutAfter}, r)
	case f.CutUpload > 0:
		r.Body = &cutBody{ReadCloser: r.Body, left: f.CutUpload}
		next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case f.Stall:
		w.Header().Set("Content-Length", "1000000")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute): // a client without any time limit
		}
		panic(http.ErrAbortHandler)
	default:
		next.ServeHTTP(w, r)
	}
}

// cutBody loses the connection to the client after some bytes.
type cutBody struct {
	io.ReadCloser
	left int64
}

func (c *cutBody) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.ReadCloser.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// cutWriter cuts the connection after some bytes.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if len(p) < c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// Unwrap lets http.ResponseController reach the connection.
func (c *cutWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
