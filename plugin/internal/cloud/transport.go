package cloud

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"
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
		pem, err := os.ReadFile(t.ca)
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
	if t.cert == "" || t.key == "" {
		return nil, errors.New("cert and key belong together, one of them is missing")
	}
	pair, err := tls.LoadX509KeyPair(t.cert, t.key)
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
	}, nil
}

// redirects is how many may follow each other.
const redirects = 3

// checkRedirect refuses to take a call to another host or back to plain HTTP.
// net/http removes its own credentials there, but knows nothing of X-Auth-Token
// and of the password in a request for one.
func checkRedirect(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch upgraded := to.URL.Scheme == "https"; {
	case len(via) > redirects:
		return fmt.Errorf("redirected more than %d times", redirects)
	case to.URL.Hostname() != from.Hostname(), !upgraded && (from.Scheme == "https" || port(to.URL) != port(from)):
		return fmt.Errorf("redirected from %s://%s to %s://%s, which does not get the credentials; correct the address in clouds.yaml or the catalogue",
			from.Scheme, from.Host, to.URL.Scheme, to.URL.Host)
	default:
		return nil
	}
}

func port(u *url.URL) string {
	standard := map[string]string{"http": "80", "https": "443"}
	return cmp.Or(u.Port(), standard[u.Scheme])
}
