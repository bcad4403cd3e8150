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

// shortLived takes a token three times, and then asks for another.
func shortLived(wrap func(testing.TB, http.Handler) http.Handler) func(testing.TB, http.Handler) http.Handler {
	return func(tb testing.TB, next http.Handler) http.Handler {
		inner := wrap(tb, next)
		var mu sync.Mutex
		used := 0
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			switch {
			case r.URL.Path == "/token":
				used = 0
			case strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "):
				used++
			}
			if used > 3 {
				r.Header.Del("Authorization")
			}
			mu.Unlock()
			inner.ServeHTTP(w, r)
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
	const bearer = `Bearer realm="http://HOST/token",service="HOST",scope="repository:x:pull"` //nolint:gosec // a challenge, no secret
	plain := tokenAs(`{"token":"TOKEN","expires_in":300}`)
	return []Behaviour{
		{Name: "Basic", Met: "distribution with a password file", wrap: challenged(nil, `Basic realm="registry"`)},
		{Name: "401 without a challenge", Met: "proxies", wrap: challenged(nil)},
		{Name: "Negotiate before Basic", Met: "Windows domains", wrap: challenged(nil, "Negotiate", `Basic realm="registry"`)},
		{Name: "Negotiate and Basic in one header", Met: "Windows domains", wrap: challenged(nil, `Negotiate, NTLM, basic realm="registry, internal"`)},
		{Name: "Negotiate only", Met: "Windows domains", wrap: challenged(nil, "Negotiate")},
		{Name: "Bearer without a realm", Met: "broken proxies", wrap: challenged(plain, `Bearer service="HOST"`)},
		{Name: "Bearer", Met: "most", wrap: challenged(plain, bearer)},
		{Name: "Bearer and Basic", Met: "Artifactory", wrap: challenged(plain, `Basic realm="Artifactory Realm"`, bearer)},
		{Name: "Bearer without quotes", Met: "small registries", wrap: challenged(plain, `Bearer realm=http://HOST/token,service=HOST`)},
		{Name: "Bearer with single quotes and no commas", Met: "small registries", wrap: challenged(plain, `bearer Realm='http://HOST/token' Service='HOST'`)},
		{Name: "tokens without an expiry", Met: "the specification", wrap: challenged(tokenAs(`{"token":"TOKEN"}`), bearer)},
		{Name: "tokens as access_token", Met: "Azure, OAuth 2", wrap: challenged(tokenAs(`{"access_token":"TOKEN"}`), bearer)},
		{Name: "tokens that are good for three requests", Met: "registries under load", wrap: shortLived(challenged(plain, bearer))},
		{Name: "tokens that may only read", Met: "narrow permissions", wrap: challenged(tokenAs(strings.ReplaceAll(`{"token":"TOKEN"}`, "TOKEN", readOnly)), bearer)},
		{Name: "the token endpoint is busy once: 429", Met: "Docker Hub", wrap: challenged(first(1, retryLater("0"), plain), bearer)},
		{Name: "the token endpoint fails once: 503", Met: "any", wrap: challenged(first(1, fail(http.StatusServiceUnavailable, "UNAVAILABLE", "try again"), plain), bearer)},
		{Name: "the token endpoint always fails: 500", Met: "any", wrap: challenged(fail(http.StatusInternalServerError, "UNKNOWN", "broken"), bearer)},
		{Name: "the token endpoint answers 404", Met: "a moved service", wrap: challenged(fail(http.StatusNotFound, "UNKNOWN", "no such endpoint"), bearer)},
		{Name: "the token endpoint is a web page", Met: "a login portal", wrap: challenged(webPage(http.StatusOK), bearer)},
		{Name: "the token endpoint answers no token", Met: "proxies", wrap: challenged(tokenAs(`{}`), bearer)},
		{Name: "credentials are wrong", Met: "any", wrap: challenged(fail(http.StatusUnauthorized, "UNAUTHORIZED", "wrong user or password"), bearer)},
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
	// The connection is lost when half of a blob has arrived.
	broken := each(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !hasBody(r) {
			next.ServeHTTP(w, r)
			return
		}
		r.Method, r.URL.RawQuery, r.Body = http.MethodPatch, "", io.NopCloser(io.LimitReader(r.Body, r.ContentLength/2))
		next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
	inOnePiece := when(func(r *http.Request) bool {
		return uploadPath.MatchString(r.URL.Path) && r.Header.Get("Content-Range") != ""
	},
		fail(http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID", "no ranges"))
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
		{Name: "uploads go on at an absolute address", Met: "most", wrap: session(func(r *http.Request, to string) string { return "http://" + r.Host + to })},
		{Name: "uploads go on at an address of another scheme", Met: "a proxy that ends TLS", wrap: session(func(r *http.Request, to string) string { return "https://" + r.Host + to })},
		{Name: "uploads go on at an address without scheme", Met: "small registries", wrap: session(func(r *http.Request, to string) string { return r.Host + to })},
		{Name: "uploads go on at an address without scheme, with slashes", Met: "small registries", wrap: session(func(r *http.Request, to string) string { return "//" + r.Host + to })},
		{Name: "uploads go on at an address relative to the last", Met: "small registries", wrap: session(func(_ *http.Request, to string) string { return to[strings.LastIndexByte(to, '/')+1:] })},
		{Name: "uploads go on at an address with a query", Met: "distribution", wrap: session(func(_ *http.Request, to string) string { return to + "?_state=a%2Fb%3D&x=1" })},
		{Name: "uploads go on under another path", Met: "a proxy with a path of its own", wrap: prefixed},
		{Name: "uploads go on at another host", Met: "a registry that does not know its name", wrap: session(func(_ *http.Request, to string) string { return "http://registry.invalid" + to })},
		{Name: "uploads go on at no address", Met: "broken proxies", wrap: session(func(*http.Request, string) string { return "" })},
		{Name: "uploads are kept on one node by a cookie", Met: "balancers", wrap: sticky},
		{Name: "no PATCH", Met: "small registries", wrap: when(patch, fail(http.StatusMethodNotAllowed, "UNSUPPORTED", "unsupported"))},
		{Name: "no blob in one piece", Met: "small registries", wrap: when(hasBody, fail(http.StatusMethodNotAllowed, "UNSUPPORTED", "unsupported"))},
		{Name: "a blob in one piece is taken as a part", Met: "small registries", wrap: note},
		{Name: "no question how much has arrived", Met: "many", wrap: when(with(http.MethodGet, path(uploadPath)), fail(http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", "unknown"))},
		{Name: "uploads break off once", Met: "any", wrap: broken},
		{Name: "uploads break off once, and are taken whole only", Met: "registries without ranges", wrap: func(tb testing.TB, next http.Handler) http.Handler {
			return broken(tb, inOnePiece(tb, next))
		}},
		{Name: "mounting is unauthorized: 401", Met: "Docker Hub, Google", wrap: when(mount, fail(http.StatusUnauthorized, "UNAUTHORIZED", "authentication required"))},
		{Name: "mounting is an error: 404", Met: "GitLab", wrap: when(mount, fail(http.StatusNotFound, "NAME_UNKNOWN", "unknown"))},
	}
}
