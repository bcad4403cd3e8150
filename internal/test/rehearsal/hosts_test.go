//go:build rehearsal

package rehearsal_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/interop/siglab"
)

// hosts stands for the hosts that a release speaks to, under their own names: what
// runs with [hosts.env] reaches these on loopback by a proxy, and no others but
// those that Go modules come from.
type hosts struct {
	proxy     string
	authority string
	passed    []string

	mutex  sync.Mutex
	tokens map[string]map[string]string
}

// newHosts serves handlers by the names of hosts.
func newHosts(t *testing.T, handlers map[string]http.Handler) *hosts {
	t.Helper()
	h := &hosts{tokens: map[string]map[string]string{}, passed: []string{"sum.golang.org"}}
	for _, proxy := range strings.FieldsFunc(goEnv(t, "GOPROXY"), func(r rune) bool { return r == ',' || r == '|' }) {
		if u, err := url.Parse(proxy); err == nil && u.Host != "" {
			h.passed = append(h.passed, u.Hostname())
		}
	}
	served := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers[r.Host].ServeHTTP(w, r)
	}))
	names := slices.Sorted(maps.Keys(handlers))
	certificate, authority := newCertificate(t, names)
	served.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	served.StartTLS()
	t.Cleanup(served.Close)
	// The authority of these hosts, beside those that there are.
	roots, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	if err != nil {
		t.Log(err)
	}
	h.authority = filepath.Join(t.TempDir(), "authorities.pem")
	write(t, h.authority, string(roots)+"\n"+string(authority))
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.Host)
		target := r.Host
		switch {
		case r.Method != http.MethodConnect:
			target = ""
		case slices.Contains(names, host):
			target = served.Listener.Addr().String()
		case !slices.Contains(h.passed, host):
			target = ""
		}
		if target == "" {
			t.Logf("the rehearsal knows no host %s", r.Host)
			http.Error(w, "the rehearsal knows no host "+r.Host, http.StatusBadGateway)
			return
		}
		tunnel(w, r, target)
	}))
	t.Cleanup(proxy.Close)
	h.proxy = proxy.URL
	return h
}

// tunnel connects a client with a server.
func tunnel(w http.ResponseWriter, r *http.Request, target string) {
	server, err := new(net.Dialer).DialContext(r.Context(), "tcp", target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer server.Close() //nolint:errcheck // what counts has been copied
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close() //nolint:errcheck // as above
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, buffered)
		if half, ok := server.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}()
	_, _ = io.Copy(client, server)
	_ = client.Close()
	<-done
}

func newCertificate(t *testing.T, names []string) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "rehearsal"}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// env leads programs to the hosts: Go, git and gh read these.
func (h *hosts) env() []string {
	return []string{
		"HTTPS_PROXY=" + h.proxy, "https_proxy=" + h.proxy, "HTTP_PROXY=" + h.proxy, "http_proxy=" + h.proxy,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost", "SSL_CERT_FILE=" + h.authority, "GIT_SSL_CAINFO=" + h.authority,
	}
}

// token issues the token of a job.
func (h *hosts) token(permissions map[string]string) string {
	token := "ghs_" + rand.Text()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.tokens[token] = permissions
	return token
}

// may says whether a token has a permission.
func (h *hosts) may(token, permission, level string) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.tokens[token][permission] == level
}

// registry is the lab's, as ghcr.io: who writes logs in with the token of a job
// that may. What is below "radome-io" lies below a folder of this rehearsal.
func (h *hosts) registry(folder string) http.Handler {
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: siglab.Registry})
		if path, ours := strings.CutPrefix(r.In.URL.Path, "/v2/radome-io/"); ours {
			r.Out.URL.Path = "/v2/" + folder + "/radome-io/" + path
		}
		r.Out.Host = r.In.Host
		r.Out.Header.Del("Authorization")
		r.SetXForwarded()
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, given := r.BasicAuth()
		reads := (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.URL.Path != "/v2/"
		if given && (user != actor || !h.may(password, "packages", "write")) || !given && !reads {
			w.Header().Set("Www-Authenticate", `Basic realm="ghcr.io"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
			return
		}
		forward.ServeHTTP(w, r)
	})
}

const actor = "octocat"

func forwardTo(t *testing.T, address string) http.Handler {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
}

// published returns the digest of every tag of repositories of the lab's registry.
// It has no referrers API, so that signatures and attestations are among the tags.
func published(t *testing.T, repositories ...string) map[string]string {
	t.Helper()
	client := http.Client{Timeout: time.Minute}
	get := func(path string) (header http.Header, body []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+siglab.Registry+"/v2/"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound {
			return nil, nil
		}
		if body, err = io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.Header, body
	}
	state := map[string]string{}
	for _, name := range repositories {
		var list struct {
			Tags []string `json:"tags"`
		}
		header, body := get(name + "/tags/list")
		if header == nil {
			continue
		}
		if err := json.Unmarshal(body, &list); err != nil {
			t.Fatal(err)
		}
		for _, tag := range list.Tags {
			header, _ := get(name + "/manifests/" + tag)
			state[name+":"+tag] = header.Get("Docker-Content-Digest")
		}
	}
	return state
}
