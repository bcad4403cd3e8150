//go:build interop

package interop_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/interop/siglab"
)

// proxy stands in front of a service of the lab and returns its address.
// Requests go through fault, which may pass them on.
func proxy(tb testing.TB, service string, fault func(http.ResponseWriter, *http.Request, http.Handler)) string {
	tb.Helper()
	target, err := url.Parse(service)
	if err != nil {
		tb.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fault(w, r, through) }))
	tb.Cleanup(server.Close)
	return server.URL
}

func answers(status int) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		http.Error(w, `{"code":1,"message":"broken on purpose"}`, status)
	}
}

// conflict lets the log take an entry, and answers that it had it before.
func conflict(w http.ResponseWriter, r *http.Request, through http.Handler) {
	if r.Method != http.MethodPost {
		through.ServeHTTP(w, r)
		return
	}
	taken := httptest.NewRecorder()
	through.ServeHTTP(taken, r)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", taken.Header().Get("Location"))
	w.WriteHeader(http.StatusConflict)
	_, _ = w.Write([]byte(`{"code":409,"message":"an equivalent entry already exists"}`))
}

// fault is what goes wrong with a keyless release, and how it ends.
type fault struct {
	name  string
	flags []string // these win over those of a release that works
	code  int
	text  string
	next  string
}

func faults(t *testing.T, lab *siglab.Lab, token string) []fault {
	t.Helper()
	const nobody = "http://127.0.0.1:9" // discard, where nothing listens
	claims := func(text string) string {
		parts := strings.Split(token, ".")
		return parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + parts[2]
	}
	others := changedRoot(t, lab, func(root map[string]any) error {
		raw, err := os.ReadFile(lab.Path("keys", "untrusted-ca.pem"))
		if err != nil {
			return err
		}
		block, _ := pem.Decode(raw)
		root["certificateAuthorities"] = []any{map[string]any{
			"uri": siglab.Fulcio, "certChain": map[string]any{"certificates": []any{map[string]any{"rawBytes": block.Bytes}}},
			"validFor": map[string]any{"start": "2026-01-01T00:00:00Z"},
		}}
		return nil
	})
	nobodys := changedRoot(t, lab, func(root map[string]any) error {
		delete(root, "certificateAuthorities")
		return nil
	})
	fresh, address := "the token must be for the audience sigstore, and fresh", "check the service's address"
	tsa := func(base string) []string { return []string{"--tsa-url", base + "/api/v1/timestamp"} }
	return []fault{
		{"token malformed", []string{"--identity-token", "no.token"}, 1, "no JSON web token", fresh},
		{"token expired", []string{"--identity-token", claims(`{"iss":"x","exp":1700000000}`)}, 1, "it was valid until 2023-11-14", fresh},
		{"token forged", []string{"--identity-token", claims(`{"iss":"` + siglab.Issuer + `","sub":"x","aud":"sigstore"}`)}, 1, "does not accept", fresh},
		{"token for another audience", []string{"--identity-token", claims(`{"iss":"` + siglab.Issuer + `","sub":"x","aud":"shop"}`)}, 1, `for audience "shop"`, fresh},
		{"Fulcio down", []string{"--fulcio-url", nobody}, 5, "certificate from " + nobody, address},
		{"Fulcio breaks", []string{"--fulcio-url", proxy(t, siglab.Fulcio, answers(http.StatusNotImplemented))}, 5, "certificate from", address},
		{"Rekor down", []string{"--rekor-url", nobody}, 5, "sigstore service failed", address},
		{"Rekor breaks", []string{"--rekor-url", proxy(t, siglab.Rekor1, answers(http.StatusInternalServerError))}, 5, "sigstore service failed", address},
		{"Rekor has the entry", []string{"--rekor-url", proxy(t, siglab.Rekor1, conflict)}, 0, "", ""},
		{"Rekor claims an entry that it has not", []string{"--rekor-url", proxy(t, siglab.Rekor1, answers(http.StatusConflict))}, 5, "sigstore service failed", address},
		{"timestamp authority down", tsa(nobody), 5, "sigstore service failed", address},
		{"timestamp authority refuses", tsa(proxy(t, siglab.TSA, answers(http.StatusForbidden))), 5, "sigstore service failed", address},
		{"trusted root of others", []string{"--trusted-root", others}, 1, "does not verify with the trusted root", "--trusted-root"},
		{"trusted root without an authority", []string{"--trusted-root", nobodys}, 2, nobodys + ": the trusted root has no certificate authority", "name a trusted root"},
	}
}

// changedRoot writes the lab's trusted root with a change, and returns the file.
func changedRoot(t *testing.T, lab *siglab.Lab, change func(map[string]any) error) string {
	t.Helper()
	var root map[string]any
	raw, err := os.ReadFile(lab.Path("trust", "trusted_root.json"))
	if err == nil {
		err = json.Unmarshal(raw, &root)
	}
	if err == nil {
		err = change(root)
	}
	if err == nil {
		raw, err = json.Marshal(root)
	}
	path := filepath.Join(t.TempDir(), "root.json")
	if err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// keylessRelease is what the cases have in common.
type keylessRelease struct {
	lab        *siglab.Lab
	tool, dist string
}

func newKeylessRelease(t *testing.T) keylessRelease {
	t.Helper()
	lab, err := siglab.Open(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	tool, dist := executables(t)
	return keylessRelease{lab, tool, dist}
}

func (k keylessRelease) args(t *testing.T, at string, more ...string) []string {
	t.Helper()
	token, err := k.lab.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat([]string{
		"release", k.dist, at, "--no-run", "--no-checksums", "--quiet", "--keyless", "--identity-token", token,
		"--fulcio-url", siglab.Fulcio, "--rekor-url", siglab.Rekor1, "--trusted-root", k.lab.Path("trust", "trusted_root.json"),
	}, more)
}

// completes runs the release without the fault and has cosign verify it.
func (k keylessRelease) completes(t *testing.T, at string) {
	t.Helper()
	if r := run(t, k.tool, k.args(t, at)...); r.code != exitOK {
		t.Fatalf("run again: %d\n%s", r.code, r.text)
	}
	who := []string{"--trusted-root", k.lab.Path("trust", "trusted_root.json"), "--certificate-identity", siglab.Subject, "--certificate-oidc-issuer", siglab.Issuer, "--insecure-ignore-sct"}
	for version, form := range map[int]string{2: "--new-bundle-format=false", 3: "--new-bundle-format=true"} {
		if _, err := k.lab.Cosign(t.Context(), version, slices.Concat([]string{"verify", form}, who, []string{at})...); err != nil {
			t.Error(err)
		}
		if _, err := k.lab.Cosign(t.Context(), version, slices.Concat([]string{"verify-attestation", "--type", "spdxjson", form}, who, []string{at})...); err != nil {
			t.Error(err)
		}
	}
}

// published says whether the repository has the version's tag.
func published(t *testing.T, repository string) bool {
	t.Helper()
	client, err := ociregistry.NewClient(ociregistry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := client.Repository(repository)
	if err != nil {
		t.Fatal(err)
	}
	_, err = repo.Resolve(t.Context(), "1.2.3")
	if err != nil && !errors.Is(err, ociregistry.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// TestKeylessFaults breaks one part of a keyless release after the other: what
// is wrong is said, no tag is moved, and the same release completes afterwards.
func TestKeylessFaults(t *testing.T) {
	t.Parallel()
	k := newKeylessRelease(t)
	token, err := k.lab.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range faults(t, k.lab, token) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			repository := siglab.Registry + "/interop/fault-" + strings.ToLower(rand.Text()[:8])
			at := repository + ":1.2.3"
			r := run(t, k.tool, k.args(t, at, f.flags...)...)
			if r.code != f.code || !strings.Contains(r.text, f.text) || !strings.Contains(r.text, f.next) {
				t.Errorf("exit code %d, want %d, %q, %q:\n%s", r.code, f.code, f.text, f.next, r.text)
			}
			if got := published(t, repository); got != (f.code == exitOK) {
				t.Errorf("published: %t", got)
			}
			// Each takes seconds; those that fail before anything is signed leave
			// nothing that a further release could stumble over.
			if f.code == exitOK || i%4 == 0 {
				k.completes(t, at)
			}
		})
	}
}

// TestKeylessInterrupted ends a release in the middle: at a service that never
// answers, and between a signature and its way into the registry.
func TestKeylessInterrupted(t *testing.T) {
	t.Parallel()
	k := newKeylessRelease(t)
	for name, c := range map[string]struct {
		service string
		at      func(*http.Request) bool
		flag    string // empty for the registry
		end     os.Signal
	}{
		"Rekor stalls":  {siglab.Rekor1, func(r *http.Request) bool { return r.Method == http.MethodPost }, "--rekor-url", os.Interrupt},
		"Fulcio stalls": {siglab.Fulcio, func(*http.Request) bool { return true }, "--fulcio-url", os.Interrupt},
		"killed after a signature": {"http://" + siglab.Registry, func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/sha256-")
		}, "", os.Kill},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reached := make(chan struct{})
			var once sync.Once
			ended, end := context.WithCancel(t.Context())
			address := proxy(t, c.service, func(w http.ResponseWriter, r *http.Request, through http.Handler) {
				if !c.at(r) {
					through.ServeHTTP(w, r)
					return
				}
				once.Do(func() { close(reached) })
				<-ended.Done() // a proxy that holds what it was given
				panic(http.ErrAbortHandler)
			})
			name := "/interop/interrupted-" + strings.ToLower(rand.Text()[:8])
			at, more := siglab.Registry+name+":1.2.3", []string{c.flag, address}
			if c.flag == "" {
				at, more = strings.TrimPrefix(address, "http://")+name+":1.2.3", nil
			}
			cmd := exec.CommandContext(t.Context(), k.tool, k.args(t, at, more...)...)
			cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-reached
			if err := cmd.Process.Signal(c.end); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			end()
			if c.end == os.Interrupt && (cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), "interrupted")) {
				t.Errorf("exit code %d:\n%s", cmd.ProcessState.ExitCode(), out.String())
			}
			if published(t, siglab.Registry+name) {
				t.Error("an interrupted release is published")
			}
			k.completes(t, siglab.Registry+name+":1.2.3")
		})
	}
}
