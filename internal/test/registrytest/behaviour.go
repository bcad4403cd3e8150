package registrytest

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"
)

// Behaviour is one way in which registries that people use differ from the
// distribution specification, or from what clients take for granted.
type Behaviour struct {
	// Name says what the registry does. It stands in the documentation.
	Name string
	// Met says in which registries, or where, people meet it.
	Met string
	// ByTag says that there is no referrers API at all, so that clients list
	// referrers under tags.
	ByTag bool

	wrap func(tb testing.TB, next http.Handler) http.Handler
}

// Behave makes the registry behave so from now on, in place of how it behaved
// before. Without an argument it follows the specification again.
func (r *Registry) Behave(tb testing.TB, all ...Behaviour) {
	tb.Helper()
	handler := r.plain
	for _, b := range all {
		handler = b.wrap(tb, handler)
	}
	r.Gate.mu.Lock()
	defer r.Gate.mu.Unlock()
	r.Gate.next = handler
}

// Named finds a behaviour by its name.
func Named(tb testing.TB, name string) Behaviour {
	tb.Helper()
	all := Behaviours()
	i := slices.IndexFunc(all, func(b Behaviour) bool { return b.Name == name })
	if i < 0 {
		tb.Fatalf("no behaviour is called %q", name)
	}
	return all[i]
}

// Behaviours returns all of them, in the order of the documentation.
func Behaviours() []Behaviour {
	return slices.Concat(tagBehaviours(), referrerBehaviours(), headerBehaviours(), refusalBehaviours(),
		challengeBehaviours(), uploadBehaviours(), redirectBehaviours(), pageBehaviours(), faultBehaviours())
}

var (
	manifestPath = regexp.MustCompile(`^/v2/(.+)/manifests/([^/]+)$`)
	blobPath     = regexp.MustCompile(`^/v2/(.+)/blobs/(sha256:[0-9a-f]+)$`)
	uploadPath   = regexp.MustCompile(`^/v2/(.+)/blobs/uploads/`)
	tagsPath     = regexp.MustCompile(`^/v2/(.+)/tags/list$`)
	referrerPath = regexp.MustCompile(`^/v2/(.+)/referrers/([^/]+)$`)
	fallbackTag  = regexp.MustCompile(`^sha256-([0-9a-f]{64})$`)
	versionTag   = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+`)
)

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// when answers the requests that match in another way.
func when(match func(*http.Request) bool, answer http.HandlerFunc) func(testing.TB, http.Handler) http.Handler {
	return func(_ testing.TB, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if match(r) {
				answer(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// rewrite changes the answers to the requests that match.
func rewrite(match func(*http.Request) bool, change func(*http.Request, *httptest.ResponseRecorder)) func(testing.TB, http.Handler) http.Handler {
	return func(_ testing.TB, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !match(r) {
				next.ServeHTTP(w, r)
				return
			}
			rec := record(next, r)
			change(r, rec)
			send(w, rec)
		})
	}
}

func record(next http.Handler, r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	next.ServeHTTP(rec, r)
	return rec
}

func send(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

func path(patterns ...*regexp.Regexp) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(r.URL.Path) })
	}
}

func with(method string, match func(*http.Request) bool) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == method && match(r) }
}

func everything(*http.Request) bool { return true }

// fail answers with an error as the specification has it.
func fail(status int, code, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, message) //nolint:gosec // JSON, of constants
	}
}

// webPage answers as a server for people does.
func webPage(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<!DOCTYPE html>\n<html><head><title>Welcome to the portal</title></head><body>Sign in</body></html>\n")
	}
}
