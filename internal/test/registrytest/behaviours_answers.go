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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

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

// conditional honours If-None-Match: * when a tag is written (RFC 9110, section
// 13.1.2), and nothing is written between its look and its write.
func conditional(_ testing.TB, next http.Handler) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut || manifestPath.FindStringSubmatch(r.URL.Path) == nil {
			next.ServeHTTP(w, r)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("If-None-Match") == "*" &&
			record(next, httptest.NewRequestWithContext(r.Context(), http.MethodHead, r.URL.Path, http.NoBody)).Code == http.StatusOK {
			fail(http.StatusPreconditionFailed, "DENIED", "the tag exists")(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func tagBehaviours() []Behaviour {
	all, noAPI := regexp.MustCompile(`.`), withoutAPI(http.StatusNotFound)
	const ecr, harbor = "The image tag 'TAG' already exists in the repository and cannot be overwritten because the repository is immutable.",
		"Failed to process request due to 'TAG' configured as immutable."
	both := func(tb testing.TB, next http.Handler) http.Handler {
		return noAPI(tb, immutable(all, http.StatusBadRequest, "TAG_INVALID", ecr)(tb, next))
	}
	return []Behaviour{
		{Name: "no tag is ever written twice", Met: "Amazon ECR with immutable tags", wrap: immutable(all, http.StatusBadRequest, "TAG_INVALID", ecr)},
		{Name: "no tag is ever written twice, and there is no referrers API", Met: "Artifactory, older Harbor", ByTag: true, wrap: both},
		{Name: "version tags are never written twice", Met: "Harbor with a rule for tags", wrap: immutable(versionTag, http.StatusPreconditionFailed, "PRECONDITION", harbor)},
		{Name: "only signatures may be written twice", Met: "Amazon ECR with exclusions", wrap: immutable(regexp.MustCompile(`^[^s]`), http.StatusBadRequest, "TAG_INVALID", ecr)},
		{Name: "writing a tag twice is forbidden", Met: "Artifactory without the right to delete", wrap: immutable(all, http.StatusForbidden, "DENIED", "Not enough permissions to overwrite artifact 'TAG'")},
		{Name: "writing a tag twice is a conflict", Met: "Azure with locked tags", wrap: immutable(all, http.StatusConflict, "CONFLICT", "TAG is locked")},
		{Name: "a tag that is there is left alone, if asked to", Met: "registries that honour If-None-Match", wrap: conditional},
		{Name: "tags are not listed: 403", Met: "registries with narrow permissions", wrap: when(path(tagsPath), fail(http.StatusForbidden, "DENIED", "denied"))},
		{Name: "tags are not listed: 405", Met: "proxies", wrap: when(path(tagsPath), fail(http.StatusMethodNotAllowed, "UNSUPPORTED", "unsupported"))},
		{Name: "the list of tags is null", Met: "pull-through caches", wrap: when(path(tagsPath), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"name":"x","tags":null}`)
		})},
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
		{Name: "the referrers API is not there: 404", Met: "distribution, GitHub, GitLab", ByTag: true, wrap: withoutAPI(http.StatusNotFound)},
		{Name: "the referrers API answers 400", Met: "Quay", ByTag: true, wrap: withoutAPI(http.StatusBadRequest)},
		{Name: "the referrers API answers 405", Met: "Artifactory", ByTag: true, wrap: withoutAPI(http.StatusMethodNotAllowed)},
		{Name: "the referrers API answers 406", Met: "Quay", ByTag: true, wrap: withoutAPI(http.StatusNotAcceptable)},
		{Name: "the referrers API answers 501", Met: "proxies", ByTag: true, wrap: withoutAPI(http.StatusNotImplemented)},
		{Name: "the referrers API is a web page", Met: "a catch-all page in front of the registry", ByTag: true, wrap: instead(webPage(http.StatusOK))},
		{Name: "the referrers API lists nothing", Met: "registries with half of it", ByTag: true, wrap: instead(empty)},
		{Name: "the referrers API works, and is not announced on a push", Met: "go-containerregistry", wrap: silent},
		{Name: "the referrers API answers application/json", Met: "proxies", wrap: rewrite(path(referrerPath), func(_ *http.Request, rec *httptest.ResponseRecorder) {
			rec.Header().Set("Content-Type", "application/json; charset=utf-8")
		})},
		{Name: "the tag for referrers answers the subject itself", Met: "registries that take it for a digest", ByTag: true, wrap: subject},
		{Name: "the referrers API in pages of one", Met: "the specification", wrap: pagedReferrers},
		{Name: "the referrers API breaks off in its JSON", Met: "broken gateways", wrap: rewrite(path(referrerPath), func(_ *http.Request, rec *httptest.ResponseRecorder) {
			rec.Body.Truncate(rec.Body.Len() / 2)
			rec.Header().Del("Content-Length")
		})},
		{Name: "the referrers API fails: 500", Met: "a registry with a broken index", wrap: when(path(referrerPath), fail(http.StatusInternalServerError, "UNKNOWN", "broken"))},
		{Name: "the referrers API is forbidden: 403", Met: "narrow tokens", wrap: when(path(referrerPath), fail(http.StatusForbidden, "DENIED", "denied"))},
	}
}

// pagedReferrers lists one referrer a page.
func pagedReferrers(_ testing.TB, next http.Handler) http.Handler {
	return rewrite(path(referrerPath), func(r *http.Request, rec *httptest.ResponseRecorder) {
		var list map[string]json.RawMessage
		var all []json.RawMessage
		if json.Unmarshal(rec.Body.Bytes(), &list) != nil || json.Unmarshal(list["manifests"], &all) != nil {
			return
		}
		slices.SortFunc(all, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
		n, _ := strconv.Atoi(r.URL.Query().Get("page"))
		if n >= len(all) {
			return
		}
		if n+1 < len(all) {
			rec.Header().Set("Link", fmt.Sprintf(`<%s?page=%d>; rel="next"`, r.URL.Path, n+1))
		}
		list["manifests"], _ = json.Marshal(all[n : n+1])
		rec.Body.Reset()
		_ = json.NewEncoder(rec.Body).Encode(list)
		rec.Header().Del("Content-Length")
	})(nil, next)
}

// zip compresses what was read.
func zip(r *http.Request, rec *httptest.ResponseRecorder) {
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
	byDigest := func(r *http.Request) bool {
		return r.Method == http.MethodGet && manifestPath.MatchString(r.URL.Path) && strings.Contains(r.URL.Path, "sha256:")
	}
	empty := "sha256:" + strings.Repeat("0", 64)
	return []Behaviour{
		{Name: "HEAD answers 404", Met: "Nexus", wrap: when(head, fail(http.StatusNotFound, "MANIFEST_UNKNOWN", "unknown"))},
		{Name: "HEAD answers 405", Met: "Nexus, proxies", wrap: when(head, fail(http.StatusMethodNotAllowed, "UNSUPPORTED", "unsupported"))},
		{Name: "HEAD answers 403", Met: "firewalls", wrap: when(head, fail(http.StatusForbidden, "DENIED", "denied"))},
		{Name: "HEAD answers 501", Met: "caches", wrap: when(head, fail(http.StatusNotImplemented, "UNSUPPORTED", "unsupported"))},
		{Name: "no Docker-Content-Digest", Met: "Nexus, proxies", wrap: rewrite(everything, digestIs(""))},
		{Name: "the Docker-Content-Digest of something else", Met: "registries that convert manifests", wrap: rewrite(everything, digestIs(empty))},
		{Name: "a Docker-Content-Digest of another algorithm", Met: "registries that prefer sha512", wrap: rewrite(everything, digestIs("sha512:"+strings.Repeat("0", 128)))},
		{Name: "a Docker-Content-Digest that is none", Met: "proxies", wrap: rewrite(everything, digestIs("yes"))},
		{Name: "manifests without a Content-Type", Met: "object storage as a registry", wrap: typeIs("")},
		{Name: "manifests as application/json", Met: "object storage as a registry", wrap: typeIs("application/json")},
		{Name: "manifests as text/html", Met: "misconfigured proxies", wrap: typeIs("text/html")},
		{Name: "manifests that are asked for by digest are altered", Met: "a hostile registry", wrap: rewrite(byDigest, func(_ *http.Request, rec *httptest.ResponseRecorder) {
			if rec.Code == http.StatusOK {
				rec.Body.WriteByte('\n')
				rec.Header().Del("Content-Length")
			}
		})},
		{Name: "manifests and lists compressed with gzip", Met: "nginx", wrap: rewrite(with(http.MethodGet, path(manifestPath, tagsPath, referrerPath)), zip)},
		{Name: "blobs compressed with gzip once more", Met: "nginx, object storage", wrap: rewrite(with(http.MethodGet, path(blobPath)), zip)},
		{Name: "blobs labelled as compressed", Met: "object storage", wrap: rewrite(with(http.MethodGet, path(blobPath)), func(_ *http.Request, rec *httptest.ResponseRecorder) {
			rec.Header().Set("Content-Encoding", "gzip")
		})},
		{Name: "no Content-Length", Met: "proxies", wrap: func(_ testing.TB, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rec := record(next, r)
				rec.Header().Del("Content-Length")
				maps.Copy(w.Header(), rec.Header())
				w.WriteHeader(rec.Code)
				_ = http.NewResponseController(w).Flush()
				_, _ = w.Write(rec.Body.Bytes())
			})
		}},
		{Name: "warnings", Met: "the specification", wrap: rewrite(everything, func(_ *http.Request, rec *httptest.ResponseRecorder) {
			rec.Header().Set("Warning", `299 - "this registry closes in May"`)
		})},
	}
}

// toLogin sends every request to a page for people at another server.
func toLogin(tb testing.TB, _ http.Handler) http.Handler {
	server := httptest.NewServer(webPage(http.StatusOK))
	tb.Cleanup(server.Close)
	return http.RedirectHandler(server.URL+"/login?return=secret", http.StatusFound)
}

func refusalBehaviours() []Behaviour {
	insteadOf404 := func(answer http.HandlerFunc) func(testing.TB, http.Handler) http.Handler {
		return rewrite(isRead, func(r *http.Request, rec *httptest.ResponseRecorder) {
			if rec.Code == http.StatusNotFound {
				other := httptest.NewRecorder()
				answer(other, r)
				*rec = *other
			}
		})
	}
	okErrors := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"errors":[{"code":"UNKNOWN","message":"backend unavailable"}]}`)
	}
	created := rewrite(with(http.MethodPut, path(manifestPath)), func(_ *http.Request, rec *httptest.ResponseRecorder) {
		if rec.Code == http.StatusCreated {
			rec.Code = http.StatusOK
		}
	})
	return []Behaviour{
		{Name: "403 for what does not exist", Met: "Artifactory", wrap: insteadOf404(fail(http.StatusForbidden, "DENIED", "access forbidden"))},
		{Name: "401 for what does not exist", Met: "Docker Hub, GitHub", wrap: insteadOf404(fail(http.StatusUnauthorized, "UNAUTHORIZED", "authentication required"))},
		{Name: "web pages for what does not exist", Met: "nginx", wrap: insteadOf404(webPage(http.StatusNotFound))},
		{Name: "an empty answer for what does not exist", Met: "object storage as a registry", wrap: insteadOf404(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })},
		{Name: "web pages for everything", Met: "a login portal, the wrong host", wrap: when(everything, webPage(http.StatusOK))},
		{Name: "web pages with 404 for everything", Met: "the wrong host", wrap: when(everything, webPage(http.StatusNotFound))},
		{Name: "web pages with 503 for everything", Met: "a proxy without a backend", wrap: when(everything, webPage(http.StatusServiceUnavailable))},
		{Name: "everything leads to a login page", Met: "single sign-on in front of the registry", wrap: toLogin},
		{Name: "redirects without end", Met: "misconfigured proxies", wrap: when(everything, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect) //nolint:gosec // to itself
		})},
		{Name: "an error with status 200", Met: "gateways", wrap: when(func(r *http.Request) bool { return isRead(r) && r.URL.Path != "/v2/" }, okErrors)},
		{Name: "200 for a manifest that was pushed", Met: "older registries", wrap: created},
		{Name: "everything is forbidden: 403", Met: "wrong permissions", wrap: when(everything, fail(http.StatusForbidden, "DENIED", "denied"))},
		{Name: "nothing can be pushed: 403", Met: "read-only tokens", wrap: when(func(r *http.Request) bool { return !isRead(r) }, fail(http.StatusForbidden, "DENIED", "denied"))},
		{Name: "nothing can be pushed: 405", Met: "mirrors", wrap: when(func(r *http.Request) bool { return !isRead(r) }, fail(http.StatusMethodNotAllowed, "UNSUPPORTED", "this is a pull through cache"))},
	}
}
