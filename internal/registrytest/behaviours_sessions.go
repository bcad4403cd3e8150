package registrytest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

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
			http.SetCookie(w, &http.Cookie{Name: "node", Value: "7", Path: "/", HttpOnly: true}) //nolint:gosec // plain HTTP, in a test
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
