package registrytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// redirected sends requests to another server, as to the storage behind the
// registry.
func redirected(match func(*http.Request) bool, storage func(next http.Handler) http.HandlerFunc) func(testing.TB, http.Handler) http.Handler {
	return func(tb testing.TB, next http.Handler) http.Handler {
		server := httptest.NewServer(storage(next))
		tb.Cleanup(server.Close)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !match(r) {
				next.ServeHTTP(w, r)
				return
			}
			if rec := record(next, httptest.NewRequestWithContext(r.Context(), http.MethodHead, r.URL.Path, http.NoBody)); rec.Code != http.StatusOK {
				send(w, rec)
				return
			}
			to := server.URL + r.URL.Path + "?X-Amz-Signature=" + url.QueryEscape("signed+away")
			http.Redirect(w, r, to, http.StatusTemporaryRedirect) //nolint:gosec // to the test's own server
		})
	}
}

func redirectBehaviours() []Behaviour {
	manifests, blobs := func(r *http.Request) bool { return isRead(r) && manifestPath.MatchString(r.URL.Path) },
		func(r *http.Request) bool { return isRead(r) && blobPath.MatchString(r.URL.Path) }
	through := func(next http.Handler) http.HandlerFunc { return next.ServeHTTP }
	noCredentials := func(next http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				w.WriteHeader(http.StatusBadRequest) // as S3, which wants only one way of authentication
				return
			}
			next.ServeHTTP(w, r)
		}
	}
	expired := func(http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>`)
		}
	}
	withoutRange := func(next http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Range")
			next.ServeHTTP(w, r)
		}
	}
	onlyGet := func(next http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				expired(nil)(w, r)
				return
			}
			next.ServeHTTP(w, r)
		}
	}
	return []Behaviour{
		{Name: "manifests are elsewhere", Met: "registry.k8s.io", wrap: redirected(manifests, through)},
		{Name: "manifests are elsewhere, and their address has expired", Met: "S3 with a wrong clock", wrap: redirected(manifests, expired)},
		{Name: "blobs are elsewhere", Met: "S3, Azure and Google behind the registry", wrap: redirected(blobs, noCredentials)},
		{Name: "blobs are elsewhere, and only for GET", Met: "S3 behind the registry", wrap: redirected(blobs, onlyGet)},
		{Name: "blobs are elsewhere, without ranges", Met: "caches", wrap: redirected(blobs, withoutRange)},
		{Name: "blobs are elsewhere, and their address has expired", Met: "S3 with a wrong clock", wrap: redirected(blobs, expired)},
	}
}

// paged lists one tag a page; link writes how the next page is named.
func paged(link func(r *http.Request, next string) string) func(testing.TB, http.Handler) http.Handler {
	return func(_ testing.TB, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m := tagsPath.FindStringSubmatch(strings.TrimPrefix(r.URL.Path, "/behind"))
			if m == nil {
				next.ServeHTTP(w, r)
				return
			}
			rec := record(next, httptest.NewRequestWithContext(r.Context(), r.Method, m[0], http.NoBody))
			var list struct {
				Tags []string `json:"tags"`
			}
			if json.Unmarshal(rec.Body.Bytes(), &list) != nil {
				send(w, rec)
				return
			}
			if n, found := slices.BinarySearch(list.Tags, r.URL.Query().Get("last")); found {
				list.Tags = list.Tags[n+1:]
			}
			if len(list.Tags) > 1 {
				list.Tags = list.Tags[:1]
				r.URL.Path = m[0]
				w.Header().Set("Link", link(r, "n=1&last="+list.Tags[0]))
			}
			_ = json.NewEncoder(w).Encode(list)
		})
	}
}

func pageBehaviours() []Behaviour {
	at := func(r *http.Request) string { return r.URL.Path }
	endless := func(_ testing.TB, next http.Handler) http.Handler {
		var mu sync.Mutex
		n := 0
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if tagsPath.MatchString(r.URL.Path) {
				mu.Lock()
				n++
				w.Header().Set("Link", fmt.Sprintf(`<%s?page=%d>; rel="next"`, r.URL.Path, n))
				mu.Unlock()
			}
			next.ServeHTTP(w, r)
		})
	}
	same := func(_ testing.TB, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if tagsPath.MatchString(r.URL.Path) {
				w.Header().Set("Link", fmt.Sprintf(`<%s?page=1>; rel="next"`, r.URL.Path))
			}
			next.ServeHTTP(w, r)
		})
	}
	return []Behaviour{
		{Name: "pages of one tag", Met: "the specification", wrap: paged(func(r *http.Request, q string) string { return "<" + at(r) + "?" + q + `>; rel="next"` })},
		{Name: "the next page by an absolute address", Met: "Quay, Harbor", wrap: paged(func(r *http.Request, q string) string { return "<http://" + r.Host + at(r) + "?" + q + `>; rel="next"` })},
		{Name: "the next page by an address of another scheme", Met: "a proxy that ends TLS", wrap: paged(func(r *http.Request, q string) string {
			return "<https://" + r.Host + at(r) + "?" + q + `>; rel="next"`
		})},
		{Name: "the next page by its query", Met: "small registries", wrap: paged(func(_ *http.Request, q string) string { return "<?" + q + `>; rel="next"` })},
		{Name: "the next page without quotes", Met: "small registries", wrap: paged(func(r *http.Request, q string) string { return "<" + at(r) + "?" + q + ">; rel=next" })},
		{Name: "the next page without rel", Met: "small registries", wrap: paged(func(r *http.Request, q string) string { return "<" + at(r) + "?" + q + ">" })},
		{Name: "the next page among other links", Met: "gateways", wrap: paged(func(r *http.Request, q string) string {
			return "<" + at(r) + `>; rel="first", <` + at(r) + "?" + q + `>; title="more"; rel="last next"`
		})},
		{Name: "the next page under another path", Met: "a proxy with a path of its own", wrap: paged(func(r *http.Request, q string) string { return "</behind" + at(r) + "?" + q + `>; rel="next"` })},
		{Name: "the next page at another host", Met: "a registry that does not know its name", wrap: paged(func(r *http.Request, q string) string {
			return "<http://registry.invalid" + at(r) + "?" + q + `>; rel="next"`
		})},
		{Name: "pages without end", Met: "a hostile registry", wrap: endless},
		{Name: "the next page is always the same", Met: "broken proxies", wrap: same},
	}
}

// each does something to the first request for each path and method.
func each(do func(w http.ResponseWriter, r *http.Request, next http.Handler)) func(testing.TB, http.Handler) http.Handler {
	return func(_ testing.TB, next http.Handler) http.Handler {
		var seen sync.Map
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// Every upload has an address of its own.
			what, _, _ := strings.Cut(r.URL.Path, "/uploads/")
			if _, again := seen.LoadOrStore(r.Method+" "+what, true); again {
				next.ServeHTTP(w, r)
				return
			}
			do(w, r, next)
		})
	}
}

func once(answer http.HandlerFunc) func(testing.TB, http.Handler) http.Handler {
	return each(func(w http.ResponseWriter, r *http.Request, _ http.Handler) { answer(w, r) })
}

// short ends the body of an answer early.
func short(w http.ResponseWriter, r *http.Request, next http.Handler) {
	rec := record(next, r)
	if r.Method != http.MethodGet || rec.Code != http.StatusOK || rec.Body.Len() < 2 {
		send(w, rec)
		return
	}
	maps.Copy(w.Header(), rec.Header())
	w.Header().Set("Content-Length", strconv.Itoa(rec.Body.Len()))
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func faultBehaviours() []Behaviour {
	blobs := with(http.MethodGet, path(blobPath))
	change := func(f func([]byte) []byte) func(testing.TB, http.Handler) http.Handler {
		return rewrite(blobs, func(_ *http.Request, rec *httptest.ResponseRecorder) {
			if rec.Code == http.StatusOK {
				body := f(bytes.Clone(rec.Body.Bytes()))
				rec.Body = bytes.NewBuffer(body)
				rec.Header().Set("Content-Length", strconv.Itoa(len(body)))
			}
		})
	}
	drip := func(_ testing.TB, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := record(next, r)
			if r.Method != http.MethodGet || rec.Body.Len() == 0 {
				send(w, rec)
				return
			}
			maps.Copy(w.Header(), rec.Header())
			w.WriteHeader(rec.Code)
			for _, b := range rec.Body.Bytes() {
				select {
				case <-r.Context().Done():
					return
				case <-time.After(20 * time.Millisecond):
				}
				_, _ = w.Write([]byte{b})
				_ = http.NewResponseController(w).Flush()
			}
		})
	}
	return []Behaviour{
		{Name: "429 once, with Retry-After", Met: "Docker Hub", wrap: once(retryLater("0"))},
		{Name: "429 once, with a date in Retry-After", Met: "RFC 9110", wrap: once(func(w http.ResponseWriter, r *http.Request) {
			retryLater(time.Now().UTC().Format(http.TimeFormat))(w, r)
		})},
		{Name: "429 once, with a Retry-After that is none", Met: "proxies", wrap: once(retryLater("soon"))},
		{Name: "429 once, without Retry-After", Met: "GitLab", wrap: once(retryLater(""))},
		{Name: "429 always, with a long Retry-After", Met: "Docker Hub", wrap: when(everything, retryLater("3600"))},
		{Name: "500 once", Met: "any", wrap: once(fail(http.StatusInternalServerError, "UNKNOWN", "broken"))},
		{Name: "503 once", Met: "any", wrap: once(fail(http.StatusServiceUnavailable, "UNAVAILABLE", "try again"))},
		{Name: "504 once, with a web page", Met: "a proxy without a backend", wrap: once(webPage(http.StatusGatewayTimeout))},
		{Name: "503 always", Met: "any", wrap: when(everything, fail(http.StatusServiceUnavailable, "UNAVAILABLE", "down"))},
		{Name: "the connection is lost once", Met: "any", wrap: each(func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) })},
		{Name: "the connection is always lost", Met: "any", wrap: when(everything, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })},
		{Name: "answers end early once", Met: "any", wrap: each(short)},
		{Name: "answers end early once, and ranges are others", Met: "broken caches", wrap: func(tb testing.TB, next http.Handler) http.Handler {
			return each(short)(tb, when(func(r *http.Request) bool { return blobs(r) && r.Header.Get("Range") != "" }, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Range", "bytes 0-0/1")
				w.WriteHeader(http.StatusPartialContent)
				_, _ = io.WriteString(w, "x")
			})(tb, next))
		}},
		{Name: "answers always end early", Met: "any", wrap: func(_ testing.TB, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { short(w, r, next) })
		}},
		{Name: "answers come a byte at a time", Met: "a hostile registry", wrap: drip},
		{Name: "blobs are longer than announced", Met: "a hostile registry", wrap: change(func(b []byte) []byte { return append(b, 'x') })},
		{Name: "blobs are shorter than announced", Met: "a hostile registry", wrap: change(func(b []byte) []byte { return b[:len(b)-1] })},
		{Name: "blobs are altered", Met: "a hostile registry", wrap: change(func(b []byte) []byte { b[len(b)/2] ^= 1; return b })},
	}
}
