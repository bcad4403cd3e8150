package ociregistry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestCertificateFolders is INTEROP 16 and 17: an authority of one's own and a
// client certificate, by host, in docker's layout.
// https://github.com/opentofu/opentofu/issues/2308
// https://github.com/hashicorp/terraform/issues/28551
func TestCertificateFolders(t *testing.T) {
	t.Parallel()
	certificate, key := clientCertificate(t)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(certificate)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	host := server.Listener.Addr().String()

	for name, test := range map[string]struct {
		folder string
		files  map[string][]byte
		ok     bool
	}{
		"authority and client": {host, map[string][]byte{"ca.crt": authority, "client.cert": certificate, "client.key": key}, true},
		"byte order marks":     {host, map[string][]byte{"ca.crt": marked(authority), "client.cert": marked(certificate), "client.key": marked(key)}, true},
		"several, marked":      {host, map[string][]byte{"a.crt": marked(certificate), "b.crt": marked(authority), "client.cert": certificate, "client.key": key}, true},
		"in UTF-16":            {host, map[string][]byte{"ca.crt": append([]byte{0xff, 0xfe}, authority...), "client.cert": certificate, "client.key": key}, false},
		"authority only":       {host, map[string][]byte{"ca.crt": authority}, false},
		"client only":          {host, map[string][]byte{"client.cert": certificate, "client.key": key}, false},
		"of another port":      {"127.0.0.1:1", map[string][]byte{"ca.crt": authority, "client.cert": certificate, "client.key": key}, false},
		"no key":               {host, map[string][]byte{"ca.crt": authority, "client.cert": certificate}, false},
		"broken authority":     {host, map[string][]byte{"ca.crt": []byte("x"), "client.cert": certificate, "client.key": key}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			folder := test.folder
			if runtime.GOOS == "windows" {
				folder = strings.ReplaceAll(folder, ":", "") // which no name has there
			}
			if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
				t.Fatal(err)
			}
			for file, content := range test.files {
				if err := os.WriteFile(filepath.Join(dir, folder, file), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			transport, err := newTransport(nil, []string{t.TempDir(), dir})
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := transport.RoundTrip(request)
			if (err == nil) != test.ok {
				t.Errorf("%v; want success %v", err, test.ok)
			}
			if err == nil {
				_ = response.Body.Close()
			}
		})
	}
}

// marked is what editors of Windows make of a text.
func marked(text []byte) []byte { return append([]byte("\xef\xbb\xbf"), text...) }

func clientCertificate(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}
