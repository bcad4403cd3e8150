package registrytest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Behaviour is one way in which registries that people use differ from the
// distribution specification, or from what clients take for granted.
type Behaviour struct {
	// Name says what the registry does. It stands in the documentation.
	Name string
	// Met says in which registries, or where, people meet it.
	Met string

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
		_, _ = fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, message)
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

// immutable refuses to write a tag a second time, with the same manifest, too.
func immutable(tags *regexp.Regexp, status int, code, message string) func(testing.TB, http.Handler) http.Handler {
	return func(_ testing.TB, next http.Handler) http.Handler {
		var mu sync.Mutex
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m := manifestPath.FindStringSubmatch(r.URL.Path)
			if r.Method != http.MethodPut || m == nil || strings.Contains(m[2], ":") || !tags.MatchString(m[2]) {
				next.ServeHTTP(w, r)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if record(next, httptest.NewRequestWithContext(r.Context(), http.MethodHead, r.URL.Path, http.NoBody)).Code == http.StatusOK {
				fail(status, code, strings.ReplaceAll(message, "TAG", m[2]))(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func tagBehaviours() []Behaviour {
	all, noAPI := regexp.MustCompile(`.`), withoutAPI(http.StatusNotFound)
	const ecr, harbor = "The image tag 'TAG' already exists in the repository and cannot be overwritten because the repository is immutable.",
		"Failed to process request due to 'TAG' configured as immutable."
	both := func(tb testing.TB, next http.Handler) http.Handler {
		return noAPI(tb, immutable(all, http.StatusBadRequest, "TAG_INVALID", ecr)(tb, next))
	}
	return []Behaviour{
		{"no tag is ever written twice", "Amazon ECR with immutable tags", immutable(all, http.StatusBadRequest, "TAG_INVALID", ecr)},
		{"no tag is ever written twice, and there is no referrers API", "Artifactory, older Harbor", both},
		{"version tags are never written twice", "Harbor with a rule for tags", immutable(versionTag, http.StatusPreconditionFailed, "PRECONDITION", harbor)},
		{"only signatures may be written twice", "Amazon ECR with exclusions", immutable(regexp.MustCompile(`^[^s]`), http.StatusBadRequest, "TAG_INVALID", ecr)},
		{"writing a tag twice is forbidden", "Artifactory without the right to delete", immutable(all, http.StatusForbidden, "DENIED", "Not enough permissions to overwrite artifact 'TAG'")},
		{"writing a tag twice is a conflict", "Azure with locked tags", immutable(all, http.StatusConflict, "CONFLICT", "TAG is locked")},
		{"tags are not listed: 403", "registries with narrow permissions", when(path(tagsPath), fail(http.StatusForbidden, "DENIED", "denied"))},
		{"tags are not listed: 405", "proxies", when(path(tagsPath), fail(http.StatusMethodNotAllowed, "UNSUPPORTED", "unsupported"))},
	}
}

// withoutAPI has no referrers API, and answers so.
func withoutAPI(status int) func(testing.TB, http.Handler) http.Handler {
	answer := fail(status, "UNSUPPORTED", "the operation is unsupported")
	return func(tb testing.TB, next http.Handler) http.Handler {
		return silent(tb, when(path(referrerPath), answer)(tb, next))
	}
}

// silent does not say that it has seen the subject of a manifest.
func silent(_ testing.TB, next http.Handler) http.Handler {
	return rewrite(with(http.MethodPut, path(manifestPath)), func(_ *http.Request, rec *httptest.ResponseRecorder) {
		rec.Header().Del("Oci-Subject")
	})(nil, next)
}

func referrerBehaviours() []Behaviour {
	instead := func(answer http.HandlerFunc) func(testing.TB, http.Handler) http.Handler {
		return func(tb testing.TB, next http.Handler) http.Handler {
			return silent(tb, when(path(referrerPath), answer)(tb, next))
		}
	}
	empty := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
		_, _ = io.WriteString(w, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`)
	}
	subject := func(tb testing.TB, next http.Handler) http.Handler {
		plain := withoutAPI(http.StatusNotFound)(tb, next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m := manifestPath.FindStringSubmatch(r.URL.Path)
			if m == nil || !isRead(r) || !fallbackTag.MatchString(m[2]) {
				plain.ServeHTTP(w, r)
				return
			}
			if rec := record(plain, r); rec.Code == http.StatusOK {
				send(w, rec)
				return
			}
			plain.ServeHTTP(w, httptest.NewRequestWithContext(r.Context(), r.Method, strings.Replace(r.URL.Path, "sha256-", "sha256:", 1), http.NoBody))
		})
	}
	return []Behaviour{
		{"the referrers API is not there: 404", "distribution, GitHub, GitLab", withoutAPI(http.StatusNotFound)},
		{"the referrers API answers 400", "Quay", withoutAPI(http.StatusBadRequest)},
		{"the referrers API answers 405", "Artifactory", withoutAPI(http.StatusMethodNotAllowed)},
		{"the referrers API answers 406", "Quay", withoutAPI(http.StatusNotAcceptable)},
		{"the referrers API answers 501", "proxies", withoutAPI(http.StatusNotImplemented)},
		{"the referrers API is a web page", "a catch-all page in front of the registry", instead(webPage(http.StatusOK))},
		{"the referrers API lists nothing", "registries with half of it", instead(empty)},
		{"the referrers API works, and is not announced on a push", "go-containerregistry", silent},
		{"the referrers API answers application/json", "proxies", rewrite(path(referrerPath), func(_ *http.Request, rec *httptest.ResponseRecorder) {
			rec.Header().Set("Content-Type", "application/json; charset=utf-8")
		})},
		{"the tag for referrers answers the subject itself", "registries that take it for a digest", subject},
		{"the referrers API fails: 500", "a registry with a broken index", when(path(referrerPath), fail(http.StatusInternalServerError, "UNKNOWN", "broken"))},
		{"the referrers API is forbidden: 403", "narrow tokens", when(path(referrerPath), fail(http.StatusForbidden, "DENIED", "denied"))},
	}
}

func headerBehaviours() []Behaviour {
	head := with(http.MethodHead, path(manifestPath, blobPath))
	digestIs := func(value string) func(*http.Request, *httptest.ResponseRecorder) {
		return func(_ *http.Request, rec *httptest.ResponseRecorder) {
			rec.Header().Del("Docker-Content-Digest")
			if value != "" {
				rec.Header().Set("Docker-Content-Digest", value)
			}
		}
	}
	typeIs := func(value string) func(testing.TB, http.Handler) http.Handler {
		return rewrite(path(manifestPath), func(_ *http.Request, rec *httptest.ResponseRecorder) {
			if rec.Code != http.StatusOK {
				return
			}
			if value == "" {
				rec.Header()["Content-Type"] = nil
				return
			}
			rec.Header().Set("Content-Type", value)
		})
	}
	zip := func(r *http.Request, rec *httptest.ResponseRecorder) {
		if rec.Code != http.StatusOK || r.Method != http.MethodGet {
			return
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(rec.Body.Bytes())
		_ = z.Close()
		rec.Body = &b
		rec.Header().Set("Content-Encoding", "gzip")
		rec.Header().Del("Content-Length")
	}
	empty := "sha256:" + strings.Repeat("0", 64)
	return []Behaviour{
		{"HEAD answers 404", "Nexus", when(head, fail(http.StatusNotFound, "MANIFEST_UNKNOWN", "unknown"))},
		{"HEAD answers 405", "Nexus, proxies", when(head, fail(http.StatusMethodNotAllowed, "UNSUPPORTED", "unsupported"))},
		{"HEAD answers 403", "firewalls", when(head, fail(http.StatusForbidden, "DENIED", "denied"))},
		{"HEAD answers 501", "caches", when(head, fail(http.StatusNotImplemented, "UNSUPPORTED", "unsupported"))},
		{"no Docker-Content-Digest", "Nexus, proxies", rewrite(everything, digestIs(""))},
		{"the Docker-Content-Digest of something else", "registries that convert manifests", rewrite(everything, digestIs(empty))},
		{"a Docker-Content-Digest of another algorithm", "registries that prefer sha512", rewrite(everything, digestIs("sha512:"+strings.Repeat("0", 128)))},
		{"a Docker-Content-Digest that is none", "proxies", rewrite(everything, digestIs("yes"))},
		{"manifests without a Content-Type", "object storage as a registry", typeIs("")},
		{"manifests as application/json", "object storage as a registry", typeIs("application/json")},
		{"manifests as text/html", "misconfigured proxies", typeIs("text/html")},
		{"manifests and lists compressed with gzip", "nginx", rewrite(with(http.MethodGet, path(manifestPath, tagsPath, referrerPath)), zip)},
		{"blobs compressed with gzip once more", "nginx, object storage", rewrite(with(http.MethodGet, path(blobPath)), zip)},
		{"blobs labelled as compressed", "object storage", rewrite(with(http.MethodGet, path(blobPath)), func(_ *http.Request, rec *httptest.ResponseRecorder) {
			rec.Header().Set("Content-Encoding", "gzip")
		})},
		{"no Content-Length", "proxies", func(_ testing.TB, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rec := record(next, r)
				rec.Header().Del("Content-Length")
				maps.Copy(w.Header(), rec.Header())
				w.WriteHeader(rec.Code)
				_ = http.NewResponseController(w).Flush()
				_, _ = w.Write(rec.Body.Bytes())
			})
		}},
		{"warnings", "the specification", rewrite(everything, func(_ *http.Request, rec *httptest.ResponseRecorder) {
			rec.Header().Set("Warning", `299 - "this registry closes in May"`)
		})},
	}
}

func refusalBehaviours() []Behaviour {
	hidden := rewrite(isRead, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		if rec.Code == http.StatusNotFound {
			body := httptest.NewRecorder()
			fail(http.StatusForbidden, "DENIED", "access forbidden")(body, nil)
			*rec = *body
		}
	})
	okErrors := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"errors":[{"code":"UNKNOWN","message":"backend unavailable"}]}`)
	}
	htmlErrors := rewrite(isRead, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		if rec.Code == http.StatusNotFound {
			body := httptest.NewRecorder()
			webPage(http.StatusNotFound)(body, nil)
			*rec = *body
		}
	})
	created := rewrite(with(http.MethodPut, path(manifestPath)), func(_ *http.Request, rec *httptest.ResponseRecorder) {
		if rec.Code == http.StatusCreated {
			rec.Code = http.StatusOK
		}
	})
	return []Behaviour{
		{"403 for what does not exist", "Artifactory", hidden},
		{"web pages for what does not exist", "nginx", htmlErrors},
		{"web pages for everything", "a login portal, the wrong host", when(everything, webPage(http.StatusOK))},
		{"web pages with 404 for everything", "the wrong host", when(everything, webPage(http.StatusNotFound))},
		{"web pages with 503 for everything", "a proxy without a backend", when(everything, webPage(http.StatusServiceUnavailable))},
		{"an error with status 200", "gateways", when(func(r *http.Request) bool { return isRead(r) && r.URL.Path != "/v2/" }, okErrors)},
		{"200 for a manifest that was pushed", "older registries", created},
		{"everything is forbidden: 403", "wrong permissions", when(everything, fail(http.StatusForbidden, "DENIED", "denied"))},
		{"nothing can be pushed: 403", "read-only tokens", when(func(r *http.Request) bool { return !isRead(r) }, fail(http.StatusForbidden, "DENIED", "denied"))},
		{"nothing can be pushed: 405", "mirrors", when(func(r *http.Request) bool { return !isRead(r) }, fail(http.StatusMethodNotAllowed, "UNSUPPORTED", "this is a pull through cache"))},
	}
}

// User and Password are what registries of [Behaviours] ask for, if they ask.
const (
	User     = "user"
	Password = "secret"
	token    = "some-token"
	readOnly = "read-only-token"
)

// challenged asks for credentials with the given headers, in which HOST stands for
// the registry's own address, and answers tokens.
func challenged(tokens http.HandlerFunc, headers ...string) func(testing.TB, http.Handler) http.Handler {
	return func(_ testing.TB, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/token" {
				tokens(w, r)
				return
			}
			user, password, _ := r.BasicAuth()
			bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if user == User && password == Password && tokens == nil || bearer == token || bearer == readOnly && isRead(r) {
				next.ServeHTTP(w, r)
				return
			}
			for _, h := range headers {
				w.Header().Add("Www-Authenticate", strings.ReplaceAll(h, "HOST", r.Host))
			}
			fail(http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")(w, r)
		})
	}
}

// tokenAs answers a token in a JSON object, in which TOKEN stands for it.
func tokenAs(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != User || password != Password {
			fail(http.StatusUnauthorized, "UNAUTHORIZED", "wrong user or password")(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.ReplaceAll(text, "TOKEN", token))
	}
}

// first answers the first request, or the first few, in another way.
func first(times int, other, then http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		times--
		now := times >= 0
		mu.Unlock()
		if now {
			other(w, r)
			return
		}
		then(w, r)
	}
}

func challengeBehaviours() []Behaviour {
	const bearer = `Bearer realm="http://HOST/token",service="HOST",scope="repository:x:pull"`
	plain := tokenAs(`{"token":"TOKEN","expires_in":300}`)
	return []Behaviour{
		{"Basic", "distribution with a password file", challenged(nil, `Basic realm="registry"`)},
		{"401 without a challenge", "proxies", challenged(nil)},
		{"Negotiate before Basic", "Windows domains", challenged(nil, "Negotiate", `Basic realm="registry"`)},
		{"Negotiate and Basic in one header", "Windows domains", challenged(nil, `Negotiate, NTLM, basic realm="registry, internal"`)},
		{"Bearer", "most", challenged(plain, bearer)},
		{"Bearer and Basic", "Artifactory", challenged(plain, `Basic realm="Artifactory Realm"`, bearer)},
		{"Bearer without quotes", "small registries", challenged(plain, `Bearer realm=http://HOST/token,service=HOST`)},
		{"Bearer with single quotes and no commas", "small registries", challenged(plain, `bearer Realm='http://HOST/token' Service='HOST'`)},
		{"tokens without an expiry", "the specification", challenged(tokenAs(`{"token":"TOKEN"}`), bearer)},
		{"tokens as access_token", "Azure, OAuth 2", challenged(tokenAs(`{"access_token":"TOKEN"}`), bearer)},
		{"tokens that may only read", "narrow permissions", challenged(tokenAs(strings.ReplaceAll(`{"token":"TOKEN"}`, "TOKEN", readOnly)), bearer)},
		{"the token endpoint is busy once: 429", "Docker Hub", challenged(first(1, retryLater("0"), plain), bearer)},
		{"the token endpoint fails once: 503", "any", challenged(first(1, fail(http.StatusServiceUnavailable, "UNAVAILABLE", "try again"), plain), bearer)},
		{"the token endpoint always fails: 500", "any", challenged(fail(http.StatusInternalServerError, "UNKNOWN", "broken"), bearer)},
		{"the token endpoint answers 404", "a moved service", challenged(fail(http.StatusNotFound, "UNKNOWN", "no such endpoint"), bearer)},
		{"the token endpoint is a web page", "a login portal", challenged(webPage(http.StatusOK), bearer)},
		{"the token endpoint answers no token", "proxies", challenged(tokenAs(`{}`), bearer)},
		{"credentials are wrong", "any", challenged(fail(http.StatusUnauthorized, "UNAUTHORIZED", "wrong user or password"), bearer)},
	}
}

func retryLater(after string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		fail(http.StatusTooManyRequests, "TOOMANYREQUESTS", "too many requests")(w, r)
	}
}

// session rewrites where an upload goes on.
func session(location func(r *http.Request, to string) string) func(testing.TB, http.Handler) http.Handler {
	return rewrite(path(uploadPath), func(r *http.Request, rec *httptest.ResponseRecorder) {
		if to := rec.Header().Get("Location"); to != "" && rec.Code == http.StatusAccepted {
			rec.Header().Del("Location")
			if to = location(r, to); to != "" {
				rec.Header().Set("Location", to)
			}
		}
	})
}

func uploadBehaviours() []Behaviour {
	put, patch := with(http.MethodPut, path(uploadPath)), with(http.MethodPatch, path(uploadPath))
	hasBody := func(r *http.Request) bool { return put(r) && r.ContentLength > 0 }
	mount := func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("mount") }
	// A blob in one piece is taken as a first piece.
	note := func(_ testing.TB, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if hasBody(r) {
				r.Method = http.MethodPatch
				r.URL.RawQuery = ""
			}
			next.ServeHTTP(w, r)
		})
	}
	sticky := func(_ testing.TB, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !uploadPath.MatchString(r.URL.Path) {
				next.ServeHTTP(w, r)
				return
			}
			if cookie, err := r.Cookie("node"); r.Method != http.MethodPost && (err != nil || cookie.Value != "7") {
				fail(http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", "another node has this upload")(w, r)
				return
			}
			http.SetCookie(w, &http.Cookie{Name: "node", Value: "7", Path: "/", HttpOnly: true})
			next.ServeHTTP(w, r)
		})
	}
	prefixed := func(tb testing.TB, next http.Handler) http.Handler {
		inner := session(func(_ *http.Request, to string) string { return "/behind" + to })(tb, next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.URL.Path = strings.TrimPrefix(r.URL.Path, "/behind")
			inner.ServeHTTP(w, r)
		})
	}
	return []Behaviour{
		{"uploads go on at an absolute address", "most", session(func(r *http.Request, to string) string { return "http://" + r.Host + to })},
		{"uploads go on at an address of another scheme", "a proxy that ends TLS", session(func(r *http.Request, to string) string { return "https://" + r.Host + to })},
		{"uploads go on at an address without scheme", "small registries", session(func(r *http.Request, to string) string { return r.Host + to })},
		{"uploads go on at an address without scheme, with slashes", "small registries", session(func(r *http.Request, to string) string { return "//" + r.Host + to })},
		{"uploads go on at an address relative to the last", "small registries", session(func(_ *http.Request, to string) string { return to[strings.LastIndexByte(to, '/')+1:] })},
		{"uploads go on at an address with a query", "distribution", session(func(_ *http.Request, to string) string { return to + "?_state=a%2Fb%3D&x=1" })},
		{"uploads go on under another path", "a proxy with a path of its own", prefixed},
		{"uploads go on at another host", "a registry that does not know its name", session(func(_ *http.Request, to string) string { return "http://registry.invalid" + to })},
		{"uploads go on at no address", "broken proxies", session(func(*http.Request, string) string { return "" })},
		{"uploads are kept on one node by a cookie", "balancers", sticky},
		{"no PATCH", "small registries", when(patch, fail(http.StatusMethodNotAllowed, "UNSUPPORTED", "unsupported"))},
		{"no blob in one piece", "small registries", when(hasBody, fail(http.StatusMethodNotAllowed, "UNSUPPORTED", "unsupported"))},
		{"a blob in one piece is taken as a part", "small registries", note},
		{"no question how much has arrived", "many", when(with(http.MethodGet, path(uploadPath)), fail(http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", "unknown"))},
		{"mounting is unauthorized: 401", "Docker Hub, Google", when(mount, fail(http.StatusUnauthorized, "UNAUTHORIZED", "authentication required"))},
		{"mounting is an error: 404", "GitLab", when(mount, fail(http.StatusNotFound, "NAME_UNKNOWN", "unknown"))},
	}
}

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
			http.Redirect(w, r, server.URL+r.URL.Path+"?X-Amz-Signature="+url.QueryEscape("signed+away"), http.StatusTemporaryRedirect)
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

// paged lists a few entries a page; link writes how the next page is named.
func paged(size int, link func(r *http.Request, next string) string) func(testing.TB, http.Handler) http.Handler {
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
			if len(list.Tags) > size {
				list.Tags = list.Tags[:size]
				r.URL.Path = m[0]
				w.Header().Set("Link", link(r, "last="+list.Tags[size-1]+"&n="+strconv.Itoa(size)))
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
		{"pages of one tag", "the specification", paged(1, func(r *http.Request, q string) string { return "<" + at(r) + "?" + q + `>; rel="next"` })},
		{"the next page by an absolute address", "Quay, Harbor", paged(1, func(r *http.Request, q string) string { return "<http://" + r.Host + at(r) + "?" + q + `>; rel="next"` })},
		{"the next page by an address of another scheme", "a proxy that ends TLS", paged(1, func(r *http.Request, q string) string {
			return "<https://" + r.Host + at(r) + "?" + q + `>; rel="next"`
		})},
		{"the next page by its query", "small registries", paged(1, func(_ *http.Request, q string) string { return "<?" + q + `>; rel="next"` })},
		{"the next page without quotes", "small registries", paged(1, func(r *http.Request, q string) string { return "<" + at(r) + "?" + q + ">; rel=next" })},
		{"the next page without rel", "small registries", paged(1, func(r *http.Request, q string) string { return "<" + at(r) + "?" + q + ">" })},
		{"the next page among other links", "gateways", paged(1, func(r *http.Request, q string) string {
			return "<" + at(r) + `>; rel="first", <` + at(r) + "?" + q + `>; title="more"; rel="last next"`
		})},
		{"the next page under another path", "a proxy with a path of its own", paged(1, func(r *http.Request, q string) string { return "</behind" + at(r) + "?" + q + `>; rel="next"` })},
		{"the next page at another host", "a registry that does not know its name", paged(1, func(r *http.Request, q string) string {
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
