package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Secrets that the stage's credentials and requests carry.
const (
	stagePassword = "correct horse:battery"
	stageToken    = "gAAAAABtoken-of-the-stage"
	stageUserData = "#cloud-config\nusers:\n- name: runner\n  passwd: pa55 of the runner\n"
	stageMetadata = "metadata-that-is-private"
)

// stage answers a client's calls in memory, so that time may be a bubble's. The
// login and the version document are good unless a test plays something else.
type stage struct {
	clouds string
	play   func(*http.Request) (*http.Response, error) // nil result: as usual

	mu    sync.Mutex
	calls []string
	log   bytes.Buffer
	read  int64 // bytes of bodies that were read
}

func newStage(t *testing.T, play func(*http.Request) (*http.Response, error)) *stage {
	t.Helper()
	return &stage{play: play, clouds: filepath.Join(write(t, map[string]string{"clouds.yaml": `
clouds:
  c:
    auth: {auth_url: "https://keystone.example/v3", username: u, password: "` + stagePassword + `", project_name: p}
`}), "clouds.yaml")}
}

// RoundTrip implements http.RoundTripper.
func (s *stage) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	answer, err := s.play(r)
	if answer == nil && err == nil {
		answer = usual(r)
	}
	if err != nil {
		return nil, err
	}
	answer.Request, answer.Body = r, &counted{answer.Body, r.Context(), s}
	return answer, nil
}

// counted counts what is read, and ends with the request.
type counted struct {
	io.ReadCloser
	ctx   context.Context //nolint:containedctx // a body ends with its request
	stage *stage
}

func (c *counted) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.ReadCloser.Read(p)
	c.stage.mu.Lock()
	defer c.stage.mu.Unlock()
	c.stage.read += int64(n)
	return n, err
}

// Write takes what is logged.
func (s *stage) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *stage) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func (s *stage) count(call string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, made := range s.calls {
		if made == call {
			n++
		}
	}
	return n
}

func (s *stage) options() Options {
	return Options{
		Cloud: "c", CloudsFile: s.clouds, Transport: s, Hidden: []string{stageMetadata},
		Log: slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

func (s *stage) connect(t *testing.T) *Client {
	t.Helper()
	client, err := Connect(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// usual is what a good cloud answers to a login and to the question for the
// version, and a 404 of its own to the rest.
func usual(r *http.Request) *http.Response {
	switch {
	case r.URL.Host == "keystone.example":
		answer := reply(http.StatusCreated, stageLogin(time.Hour))
		answer.Header.Set("X-Subject-Token", stageToken)
		return answer
	case r.URL.Host == "nova.example" && r.URL.Path == "/v2.1/":
		return reply(http.StatusOK, `{"version": {"id": "v2.1", "version": "2.96", "min_version": "2.1", "status": "CURRENT"}}`)
	case r.URL.Host == "neutron.example":
		return reply(http.StatusNotFound, `{"NeutronError": {"message": "not there", "type": "NotFound"}}`)
	case r.URL.Host == "glance.example":
		return reply(http.StatusNotFound, `{"message": "No image found"}`)
	default:
		return reply(http.StatusNotFound, `{"itemNotFound": {"code": 404, "message": "not there"}}`)
	}
}

func stageLogin(life time.Duration) string {
	var services []map[string]any
	for kind, host := range map[string]string{compute: "nova", network: "neutron", image: "glance", "block-storage": "cinder"} {
		services = append(services, map[string]any{"type": kind, "endpoints": []any{
			map[string]any{"interface": "public", "region": "R1", "region_id": "R1", "url": "https://" + host + ".example"},
		}})
	}
	login, err := json.Marshal(map[string]any{"token": map[string]any{
		"issued_at": time.Now().UTC(), "expires_at": time.Now().UTC().Add(life),
		"project": map[string]any{"id": "p1", "name": "p"}, "catalog": services,
	}})
	if err != nil {
		return err.Error()
	}
	return string(login)
}

// reply is an answer of a service in JSON.
func reply(status int, body string) *http.Response {
	return respond(status, "application/json", strings.NewReader(body))
}

func respond(status int, kind string, body io.Reader) *http.Response {
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {kind}, "Openstack-Api-Version": {"compute 2.96"}}, Body: io.NopCloser(body), ContentLength: -1,
	}
}

// endless repeats a text.
type endless string

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

// drip hands out a blank a second, until nobody waits for the answer any more.
type drip struct{ done <-chan struct{} }

func (d drip) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Second):
		p[0] = ' '
		return 1, nil
	case <-d.done:
		return 0, errBroken
	}
}

var errBroken = errors.New("connection reset by peer")
