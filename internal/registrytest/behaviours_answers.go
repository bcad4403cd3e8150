package registrytest

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
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
		{"no tag is ever written twice", "Amazon ECR with immutable tags", immutable(all, http.StatusBadRequest, "TAG_INVALID", ecr)},
		{"no tag is ever written twice, and there is no referrers API", "Artifactory, older Harbor", both},
		{"version tags are never written twice", "Harbor with a rule for tags", immutable(versionTag, http.StatusPreconditionFailed, "PRECONDITION", harbor)},
		{"only signatures may be written twice", "Amazon ECR with exclusions", immutable(regexp.MustCompile(`^[^s]`), http.StatusBadRequest, "TAG_INVALID", ecr)},
		{"writing a tag twice is forbidden", "Artifactory without the right to delete", immutable(all, http.StatusForbidden, "DENIED", "Not enough permissions to overwrite artifact 'TAG'")},
		{"writing a tag twice is a conflict", "Azure with locked tags", immutable(all, http.StatusConflict, "CONFLICT", "TAG is locked")},
		{"a tag that is there is left alone, if asked to", "registries that honour If-None-Match", conditional},
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
