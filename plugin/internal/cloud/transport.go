package cloud

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

// tlsFiles are the TLS settings of an entry of clouds.yaml.
type tlsFiles struct {
	ca, cert, key string
	insecure      bool
}

// config reads the files.
func (t tlsFiles) config() (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: t.insecure, //nolint:gosec // only on "verify: false" in clouds.yaml
	}
	if t.ca != "" {
		pem, err := readText(t.ca, textfile.Unmarked) // a bundle may have comments in a code page
		if err != nil {
			return nil, fmt.Errorf("cacert: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cacert: %s holds no certificate", t.ca)
		}
	}
	if t.cert == "" && t.key == "" {
		return config, nil
	}
	if t.cert == "" {
		return nil, errors.New("key belongs to cert, which is missing")
	}
	pair, err := textfile.KeyPair(t.cert, cmp.Or(t.key, t.cert)) // one file may hold both
	if err != nil {
		return nil, fmt.Errorf("cert: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// idlePerHost keeps a connection per worker open: net/http's default of two
// would make each round of creations shake hands again.
const idlePerHost = 32

// swapTransport lets the certificates change under a client in use.
type swapTransport struct {
	current atomic.Pointer[http.RoundTripper]
}

// RoundTrip implements http.RoundTripper.
func (t *swapTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	return (*t.current.Load()).RoundTrip(request)
}

// use replaces the transport.
func (t *swapTransport) use(fresh http.RoundTripper) {
	if old := t.current.Swap(&fresh); old != nil {
		closeIdle(*old)
	}
}

func (t *swapTransport) close() {
	if current := t.current.Load(); current != nil {
		closeIdle(*current)
	}
}

func closeIdle(transport http.RoundTripper) {
	if closer, ok := transport.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// newTransport makes a transport with these TLS settings; fixed, if not nil,
// wins.
func newTransport(files tlsFiles, fixed http.RoundTripper) (http.RoundTripper, error) {
	if fixed != nil {
		return fixed, nil
	}
	config, err := files.config()
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: idlePerHost,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,

		MaxResponseHeaderBytes: headerLimit,
	}, nil
}

// proxySecrets are what the addresses of proxies have between the scheme and the
// host, which the errors of net/http show.
func proxySecrets(lookupEnv func(string) (string, bool)) []string {
	var secrets []string
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		address := env(lookupEnv, name)
		if at := strings.LastIndexByte(address, '@'); at >= 0 {
			user := strings.TrimPrefix(address[:at], "https://")
			user = strings.TrimPrefix(user, "http://")
			_, password, _ := strings.Cut(user, ":")
			secrets = append(secrets, cmp.Or(password, user))
		}
	}
	return secrets
}

// redirects is how many may follow each other.
const redirects = 3

// errRedirected marks a redirect that is not followed.
var errRedirected = errors.New("redirect not followed")

// checkCall lets a call with a token be redirected within the same scheme, host
// and port: net/http removes its own credentials elsewhere, but knows nothing of
// X-Auth-Token.
func checkCall(to *http.Request, via []*http.Request) error {
	if origin(to.URL) != origin(via[0].URL) {
		return refuseRedirect(to, via, "the token does not go there; correct the address in the catalogue, or set its _endpoint_override in clouds.yaml")
	}
	return checkRedirect(to, via)
}

// checkLogin also lets a login be redirected from HTTP to HTTPS on the same host.
func checkLogin(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	upgraded := from.Scheme == "http" && to.URL.Scheme == "https" && strings.EqualFold(to.URL.Hostname(), from.Hostname())
	if origin(to.URL) != origin(from) && !upgraded {
		return refuseRedirect(to, via, "the credentials do not go there; if the address is right, write it into auth_url")
	}
	return checkRedirect(to, via)
}

// checkRedirect holds for all redirects. After 301, 302 and 303, net/http makes
// a GET of everything, which asks for something else.
func checkRedirect(to *http.Request, via []*http.Request) error {
	switch {
	case len(via) > redirects:
		return fmt.Errorf("%w: redirected more than %d times", errRedirected, redirects)
	case to.Method != via[0].Method:
		return refuseRedirect(to, via, fmt.Sprintf("a redirected %s becomes a %s; write the new address into auth_url, or into the catalogue", via[0].Method, to.Method))
	default:
		return nil
	}
}

func refuseRedirect(to *http.Request, via []*http.Request, why string) error {
	return fmt.Errorf("%w: redirected from %s to %s; %s", errRedirected, withoutQuery(via[0].URL.String()), withoutQuery(to.URL.String()), why)
}

// origin is the scheme, host and port of an address.
func origin(u *url.URL) string {
	standard := map[string]string{"http": "80", "https": "443"}
	return strings.ToLower(u.Scheme + "://" + u.Hostname() + ":" + cmp.Or(u.Port(), standard[u.Scheme]))
}

const (
	// answerLimit bounds what is read of one answer. A page of 1,000 servers with
	// long metadata stays below a fifth of it.
	answerLimit = 32 << 20
	// tokenLimit bounds the answer to a login. The catalogue of a large cloud has
	// some hundred kilobytes.
	tokenLimit = 4 << 20
	// refusalLimit bounds what is read of an answer that is not a success.
	refusalLimit = 64 << 10
	// headerLimit bounds the headers of an answer.
	headerLimit = 256 << 10
)

// errTooLong reports an answer that does not end where it should.
var errTooLong = errors.New("the answer is too long")

// bounded lets no answer be longer than it may be, whoever reads it.
type bounded struct {
	http.RoundTripper
	most int64 // of a success
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(request)
	if err != nil || answer.Body == nil {
		return answer, err
	}
	body := &boundedBody{ReadCloser: answer.Body, left: b.most, err: fmt.Errorf("%w: more than %d bytes", errTooLong, b.most)}
	if answer.StatusCode >= http.StatusMultipleChoices {
		body.left, body.err = refusalLimit, io.EOF // the beginning says why
	}
	answer.Body = body
	return answer, nil
}

// boundedBody ends with an error after so many bytes.
type boundedBody struct {
	io.ReadCloser
	left int64
	err  error
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
