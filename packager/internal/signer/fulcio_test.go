package signer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// authority is a certificate authority with Fulcio's API: it checks the proof
// of possession and the token before it signs.
type authority struct {
	tb     testing.TB
	key    *ecdsa.PrivateKey
	issued atomic.Int64
	now    time.Time
	token  string
	status int // if set, the answer
}

const tokenSubject = "release@example.invalid"

func idToken() string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"none"}`)) + "." + part(fmt.Appendf(nil, `{"iss":"x","sub":%q,"email":%q,"email_verified":true}`, tokenSubject, tokenSubject)) + "."
}

func tokenWith(payload string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + "."
}

func newAuthority(tb testing.TB) (*authority, string) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	a := &authority{tb: tb, key: key, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), token: idToken()}
	server := httptest.NewServer(a)
	tb.Cleanup(server.Close)
	return a, server.URL
}

// ServeHTTP implements http.Handler.
func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		PublicKeyRequest struct {
			PublicKey         struct{ Content string }
			ProofOfPossession []byte
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.URL.Path != "/api/v2/signingCert" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	if a.status != 0 || r.Header.Get("Authorization") != "Bearer "+a.token {
		http.Error(w, "go away", max(a.status, http.StatusUnauthorized))
		return
	}
	block, _ := pem.Decode([]byte(req.PublicKeyRequest.PublicKey.Content))
	pub, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	sum := sha256.Sum256([]byte(tokenSubject))
	if key, ok := pub.(*ecdsa.PublicKey); !ok || !ecdsa.VerifyASN1(key, sum[:], req.PublicKeyRequest.ProofOfPossession) {
		http.Error(w, "no proof of possession", http.StatusBadRequest)
		return
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.issued.Add(1)), NotBefore: a.now, NotAfter: a.now.Add(10 * time.Minute),
		EmailAddresses: []string{tokenSubject},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, pub, a.key)
	if err != nil {
		a.tb.Error(err)
	}
	chain := map[string]any{"certificates": []string{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}}
	if err := json.NewEncoder(w).Encode(map[string]any{"signedCertificateEmbeddedSct": map[string]any{"chain": chain}}); err != nil {
		a.tb.Error(err)
	}
}

// TestCertificateServesManySignatures: one certificate for a release, another
// one when it is about to end.
func TestCertificateServesManySignatures(t *testing.T) {
	t.Parallel()
	a, url := newAuthority(t)
	now := a.now
	asked := 0
	s, err := Keyless(KeylessOptions{
		FulcioURL: url, Now: func() time.Time { return now },
		Token:    func(context.Context) (string, error) { asked++; return a.token, nil },
		Services: Services{TSAURL: "https://unused.invalid"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.PublicKey() != nil {
		t.Error("a keyless signer shows a public key")
	}
	var first *x509.Certificate
	for _, step := range []struct {
		after  time.Duration
		issued int64
	}{{0, 1}, {7 * time.Minute, 1}, {8*time.Minute + time.Second, 2}, {9 * time.Minute, 2}} {
		now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(step.after)
		a.now = now
		got, err := s.certifier.certificate(t.Context(), s.keys)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		}
		if a.issued.Load() != step.issued || int64(asked) != step.issued || got.Equal(first) != (step.issued == 1) {
			t.Errorf("after %v: %d certificates, %d tokens", step.after, a.issued.Load(), asked)
		}
	}
}

func TestCertificateRefused(t *testing.T) {
	t.Parallel()
	a, url := newAuthority(t)
	services := Services{TSAURL: "https://unused.invalid", Retries: -1}
	for name, c := range map[string]struct {
		source func(context.Context) (string, error)
		want   error
		text   string
	}{
		"another token":  {func(context.Context) (string, error) { return idToken() + "x", nil }, ErrToken, `does not accept one of issuer "x" for audience nobody`},
		"not a token":    {func(context.Context) (string, error) { return "x", nil }, ErrToken, "no JSON web token"},
		"not base64":     {func(context.Context) (string, error) { return "a.!.c", nil }, ErrToken, "no JSON web token"},
		"not JSON":       {func(context.Context) (string, error) { return "a.YQ.c", nil }, ErrToken, "no JSON web token"},
		"expired":        {func(context.Context) (string, error) { return tokenWith(`{"exp":1700000000}`), nil }, ErrToken, "valid until 2023-11-14T22:13:20Z"},
		"other audience": {func(context.Context) (string, error) { return tokenWith(`{"iss":"y","sub":"s","aud":["shop"]}`), nil }, ErrToken, `of issuer "y" for audience ["shop"]`},
		"no token there": {func(context.Context) (string, error) { return "", errors.New("gone") }, ErrToken, "gone"},
	} {
		s, err := Keyless(KeylessOptions{FulcioURL: url, Token: c.source, Services: services})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.SignBlob(t.Context(), []byte("x")); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v, %q", name, err, c.want, c.text)
		}
	}
	if a.issued.Load() != 0 {
		t.Errorf("%d certificates", a.issued.Load())
	}
}

// TestCancelEndsRequest: what Fulcio does not answer ends with the context.
func TestCancelEndsRequest(t *testing.T) {
	t.Parallel()
	arrived, leave := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-leave
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(leave) })
	s, err := Keyless(KeylessOptions{FulcioURL: server.URL, Token: func(context.Context) (string, error) { return idToken(), nil }, Services: Services{TSAURL: "https://unused.invalid"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := s.SignBlob(ctx, []byte("x")); done <- err }()
	<-arrived
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestTimestampAuthorityFails: what does not answer properly fails the
// signature; nothing is signed without the proof that was asked for.
func TestTimestampAuthorityFails(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"refuses":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"breaks":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"rubbish":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) },
		"silence":  func(_ http.ResponseWriter, _ *http.Request) {},
		"hangs up": func(_ http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(answer)
			t.Cleanup(server.Close)
			keys, err := newEphemeral()
			if err != nil {
				t.Fatal(err)
			}
			s := &Signer{keys: keys, services: Services{TSAURL: server.URL, Retries: -1}}
			if _, err := s.SignBlob(t.Context(), []byte("x")); !errors.Is(err, ErrService) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestKeylessOptions(t *testing.T) {
	t.Parallel()
	source := func(context.Context) (string, error) { return "x", nil }
	for name, c := range map[string]struct {
		o    KeylessOptions
		want error
	}{
		"no Fulcio":        {KeylessOptions{Token: source, Services: Services{RekorURL: "https://r.test"}}, ErrOptions},
		"no token":         {KeylessOptions{FulcioURL: "https://f.test", Services: Services{RekorURL: "https://r.test"}}, ErrToken},
		"no proof of time": {KeylessOptions{FulcioURL: "https://f.test", Token: source}, ErrOptions},
		"Rekor 2 alone":    {KeylessOptions{FulcioURL: "https://f.test", Token: source, Services: Services{RekorURL: "https://r.test", RekorVersion: 2}}, ErrOptions},
		"Rekor 3":          {KeylessOptions{FulcioURL: "https://f.test", Token: source, Services: Services{RekorURL: "https://r.test", RekorVersion: 3}}, ErrOptions},
		"version, no URL":  {KeylessOptions{FulcioURL: "https://f.test", Token: source, Services: Services{TSAURL: "https://t.test", RekorVersion: 1}}, ErrOptions},
		"a broken root":    {KeylessOptions{FulcioURL: "https://f.test", Token: source, Services: Services{TSAURL: "https://t.test", TrustedRoot: []byte("x")}}, ErrOptions},
		"Fulcio in clear":  {KeylessOptions{FulcioURL: "http://f.test", Token: source, Services: Services{RekorURL: "https://r.test"}}, ErrOptions},
		"Rekor in clear":   {KeylessOptions{FulcioURL: "https://f.test", Token: source, Services: Services{RekorURL: "http://r.test"}}, ErrOptions},
		"stamp in clear":   {KeylessOptions{FulcioURL: "https://f.test", Token: source, Services: Services{RekorURL: "https://r.test", TSAURL: "http://t.test"}}, ErrOptions},
		"no scheme":        {KeylessOptions{FulcioURL: "f.test", Token: source, Services: Services{RekorURL: "https://r.test"}}, ErrOptions},
		"on loopback":      {KeylessOptions{FulcioURL: "http://127.0.0.1:1", Token: source, Services: Services{RekorURL: "http://localhost:2", TSAURL: "http://[::1]:3"}}, nil},
		"log":              {KeylessOptions{FulcioURL: "https://f.test", Token: source, Services: Services{RekorURL: "https://r.test"}}, nil},
		"Rekor 2, stamp":   {KeylessOptions{FulcioURL: "https://f.test", Token: source, Services: Services{RekorURL: "https://r.test", RekorVersion: 2, TSAURL: "https://t.test"}}, nil},
	} {
		if _, err := Keyless(c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

// TestServicesInClearTextAreRefused holds what the error names: which service,
// which address, and what is allowed.
func TestServicesInClearTextAreRefused(t *testing.T) {
	t.Parallel()
	token := func(context.Context) (string, error) { return "x", nil }
	_, err := Keyless(KeylessOptions{FulcioURL: "http://f.test/api?secret", Token: token, Services: Services{RekorURL: "https://r.test"}})
	want := `unusable signing options: the certificate authority: not an https address: "http://f.test/api"; http is for this machine's own addresses only`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	private, _, err := GenerateKeyPair(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := FromKey(private, nil, Services{TSAURL: "http://t.test"}); !errors.Is(err, ErrOptions) {
		t.Errorf("a key with a timestamp in clear text: %v", err)
	}
}

// TestTokenStaysWithFulcio: a certificate authority that sends its clients
// elsewhere does not send their identity token there.
func TestTokenStaysWithFulcio(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		var leaked atomic.Bool
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Store(true) }))
		t.Cleanup(other.Close)
		fulcio := httptest.NewServer(http.RedirectHandler(other.URL+"/api/v2/signingCert", status))
		t.Cleanup(fulcio.Close)
		s, err := Keyless(KeylessOptions{
			FulcioURL: fulcio.URL, Token: func(context.Context) (string, error) { return idToken(), nil },
			Services: Services{TSAURL: "https://unused.invalid", Retries: -1},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.SignBlob(t.Context(), []byte("x")); !errors.Is(err, ErrService) || leaked.Load() {
			t.Errorf("%d: %v; asked elsewhere: %v", status, err, leaked.Load())
		}
	}
}
