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
		{"manifests are elsewhere", "registry.k8s.io", redirected(manifests, through)},
		{"blobs are elsewhere", "S3, Azure and Google behind the registry", redirected(blobs, noCredentials)},
		{"blobs are elsewhere, and only for GET", "S3 behind the registry", redirected(blobs, onlyGet)},
		{"blobs are elsewhere, without ranges", "caches", redirected(blobs, withoutRange)},
		{"blobs are elsewhere, and their address has expired", "S3 with a wrong clock", redirected(blobs, expired)},
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
		{"pages of one tag", "the specification", paged(func(r *http.Request, q string) string { return "<" + at(r) + "?" + q + `>; rel="next"` })},
		{"the next page by an absolute address", "Quay, Harbor", paged(func(r *http.Request, q string) string { return "<http://" + r.Host + at(r) + "?" + q + `>; rel="next"` })},
		{"the next page by an address of another scheme", "a proxy that ends TLS", paged(func(r *http.Request, q string) string {
			return "<https://" + r.Host + at(r) + "?" + q + `>; rel="next"`
		})},
		{"the next page by its query", "small registries", paged(func(_ *http.Request, q string) string { return "<?" + q + `>; rel="next"` })},
		{"the next page without quotes", "small registries", paged(func(r *http.Request, q string) string { return "<" + at(r) + "?" + q + ">; rel=next" })},
		{"the next page without rel", "small registries", paged(func(r *http.Request, q string) string { return "<" + at(r) + "?" + q + ">" })},
		{"the next page among other links", "gateways", paged(func(r *http.Request, q string) string {
			return "<" + at(r) + `>; rel="first", <` + at(r) + "?" + q + `>; title="more"; rel="last next"`
		})},
		{"the next page under another path", "a proxy with a path of its own", paged(func(r *http.Request, q string) string { return "</behind" + at(r) + "?" + q + `>; rel="next"` })},
		{"the next page at another host", "a registry that does not know its name", paged(func(r *http.Request, q string) string {
			return "<http://registry.invalid" + at(r) + "?" + q + `>; rel="next"`
		})},
		{"pages without end", "a hostile registry", endless},
		{"the next page is always the same", "broken proxies", same},
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
		{"429 once, with Retry-After", "Docker Hub", once(retryLater("0"))},
		{"429 once, without Retry-After", "GitLab", once(retryLater(""))},
		{"429 always, with a long Retry-After", "Docker Hub", when(everything, retryLater("3600"))},
		{"500 once", "any", once(fail(http.StatusInternalServerError, "UNKNOWN", "broken"))},
		{"503 once", "any", once(fail(http.StatusServiceUnavailable, "UNAVAILABLE", "try again"))},
		{"504 once, with a web page", "a proxy without a backend", once(webPage(http.StatusGatewayTimeout))},
		{"503 always", "any", when(everything, fail(http.StatusServiceUnavailable, "UNAVAILABLE", "down"))},
		{"the connection is lost once", "any", each(func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) })},
		{"the connection is always lost", "any", when(everything, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })},
		{"answers end early once", "any", each(short)},
		{"answers always end early", "any", func(_ testing.TB, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { short(w, r, next) })
		}},
		{"answers come a byte at a time", "a hostile registry", drip},
		{"blobs are longer than announced", "a hostile registry", change(func(b []byte) []byte { return append(b, 'x') })},
		{"blobs are shorter than announced", "a hostile registry", change(func(b []byte) []byte { return b[:len(b)-1] })},
		{"blobs are altered", "a hostile registry", change(func(b []byte) []byte { b[len(b)/2] ^= 1; return b })},
	}
}
