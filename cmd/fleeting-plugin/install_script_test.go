package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// site is what a script of the installing commands has: a registry of its own,
// the publisher's key and a stranger's.
type site struct {
	tb        testing.TB
	registry  *registrytest.Registry
	keys      map[string]*trusttest.Key
	published map[string]plugintest.Published
}

type siteKey struct{}

func TestInstallScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script/install",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			tb, ok := env.T().(testing.TB)
			if !ok {
				return errors.New("no testing.TB")
			}
			s := &site{
				tb:        tb,
				registry:  registrytest.New(tb),
				keys:      map[string]*trusttest.Key{"publisher": trusttest.NewKey(tb), "stranger": trusttest.NewKey(tb)},
				published: map[string]plugintest.Published{},
			}
			env.Values[siteKey{}] = s
			env.Setenv("REGISTRY", s.registry.Host)
			private := registrytest.New(tb, registrytest.WithPassword("user", "secret")).Host
			env.Setenv("PRIVATE", private)
			env.Setenv("PORT", private[strings.LastIndex(private, ":")+1:])
			env.Setenv("PROXY", newProxy(tb, s.registry.Host))
			env.Setenv("PAIRING", newPairing(tb, s.registry.Host))
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("FLEETING_PLUGIN_PATH", filepath.Join(env.WorkDir, "plugins"))
			pin, err := filepath.Abs("../../docs/kubernetes/pin")
			if err != nil {
				return err
			}
			env.Setenv("PIN", filepath.ToSlash(pin))
			env.Setenv("PLATFORM", artifact.HostPlatform().String())
			for name, key := range s.keys {
				if err := errors.Join(
					os.WriteFile(filepath.Join(env.WorkDir, name+".pub"), key.PublicPEM(tb), 0o644),
					os.WriteFile(filepath.Join(env.WorkDir, name+".key"), key.PrivatePEM(tb), 0o600),
				); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"fits":     fits,
			"publish":  publish,
			"graft":    graft,
			"break":    breakRegistry,
			"mend":     func(ts *testscript.TestScript, _ bool, _ []string) { siteOf(ts).registry.Gate.Mend() },
			"flip":     flip,
			"limit":    limit,
			"alter":    alter,
			"misprint": misprint,
			"requests": requests,
			"withdraw": withdraw,
		},
	})
}

// newProxy is an HTTP proxy that asks for a password and takes every host for
// one registry.
func newProxy(tb testing.TB, registry string) string {
	tb.Helper()
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", registry
		r.Out.Header.Del("Proxy-Authorization")
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:secret"))
		if r.Header.Get("Proxy-Authorization") != want {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	tb.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// newPairing is a registry that lists tags to two at a time: the first waits until
// another asks as well.
func newPairing(tb testing.TB, registry string) string {
	tb.Helper()
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: registry})
	var mu sync.Mutex
	var waiting chan struct{}
	meet := func() <-chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		met := waiting
		if met == nil {
			waiting = make(chan struct{})
			return waiting
		}
		close(met)
		waiting = nil
		return met
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/tags/list") {
			select {
			case <-meet():
			case <-r.Context().Done():
				return
			}
		}
		forward.ServeHTTP(w, r)
	}))
	tb.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func siteOf(ts *testscript.TestScript) *site {
	s, ok := ts.Value(siteKey{}).(*site)
	if !ok {
		ts.Fatalf("the script has no registry")
	}
	return s
}

// fits checks that the last command's errors fit into so many rows of a terminal
// with 80 columns, and that no line comes twice: fits ROWS.
func fits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fits ROWS")
	}
	most, err := strconv.Atoi(args[0])
	ts.Check(err)
	const columns = 80
	rows, seen := 0, map[string]bool{}
	text := strings.TrimSuffix(ts.ReadFile("stderr"), "\n")
	for line := range strings.SplitSeq(text, "\n") {
		if seen[line] {
			ts.Fatalf("%q comes twice", line)
		}
		seen[line] = true
		rows += max(1, (utf8.RuneCountInString(line)+columns-1)/columns)
	}
	if rows > most {
		ts.Fatalf("%d rows, want at most %d", rows, most)
	}
}

// publish makes a plugin: publish NAME VERSION [KEY] [TAG...]. It is signed by
// the key of that name, unless KEY is - or missing, and tagged with its version
// and the tags. A NAME that ends in /script answers as a plugin does when it is
// started, one in /foreign needs a program that is not there to be started;
// others cannot be started.
func publish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: publish NAME VERSION [KEY] [TAG...]")
	}
	s := siteOf(ts)
	tb := s.tb
	repo := repositoryOf(ts, args[0])
	tags := []string{args[1]}
	if len(args) > 3 {
		tags = append(tags, args[3:]...)
	}
	body := "plugin " + args[0] + " " + args[1] + strings.Repeat(" x", 200)
	if strings.HasSuffix(args[0], "/script") {
		body = "#!/bin/sh\necho '1|0|unix|/nowhere|grpc'\nexec sleep 60 #"
	}
	if strings.HasSuffix(args[0], "/foreign") {
		body = "#!/lib/ld-nowhere.so.1\n"
	}
	p := plugintest.Publish(tb, repo, plugintest.Plugin{Version: args[1], Body: body}, tags...)
	s.published[args[0]+":"+args[1]] = p
	ts.Setenv("DIGEST", p.Index.Digest.String())
	if len(args) > 2 && args[2] != "-" {
		key, ok := s.keys[args[2]]
		if !ok {
			ts.Fatalf("no key %q", args[2])
		}
		plugintest.Sign(tb, repo, key, p.Index)
	}
}

// graft publishes a release with all its parts signed by the key, and puts in its
// place an index that nobody signed: the release's manifest for this machine, and
// altered ones for others: graft NAME VERSION KEY.
func graft(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 || siteOf(ts).keys[args[2]] == nil {
		ts.Fatalf("usage: graft NAME VERSION KEY")
	}
	s := siteOf(ts)
	repo, host := repositoryOf(ts, args[0]), artifact.HostPlatform().String()
	genuine := plugintest.Publish(s.tb, repo, plugintest.Plugin{Version: args[1], Body: "plugin"}, args[1])
	plugintest.Sign(s.tb, repo, s.keys[args[2]], genuine.Index)
	for _, manifest := range genuine.Manifests {
		plugintest.Sign(s.tb, repo, s.keys[args[2]], manifest)
	}
	grafted := plugintest.Publish(s.tb, repo, plugintest.Plugin{Version: args[1], Body: "evil", Index: func(index *ocispec.Index) {
		index.Manifests[0].Digest, index.Manifests[0].Size = genuine.Manifests[host].Digest, genuine.Manifests[host].Size
		index.Manifests[0].Annotations = nil
	}}, args[1])
	ts.Setenv("GENUINE", genuine.Manifests[host].Digest.String())
	ts.Setenv("DIGEST", grafted.Index.Digest.String())
}

func repositoryOf(ts *testscript.TestScript, name string) *ociregistry.Repository {
	client, err := ociregistry.NewClient(ociregistry.Options{})
	ts.Check(err)
	repo, err := client.Repository(siteOf(ts).registry.Host + "/" + name)
	ts.Check(err)
	return repo
}

// breakRegistry makes requests fail: break STATUS PATTERN.
func breakRegistry(ts *testscript.TestScript, neg bool, args []string) {
	status := map[string]int{"401": 401, "403": 403, "404": 404, "429": 429, "500": 500, "503": 503}
	if neg || len(args) != 2 || status[args[0]] == 0 {
		ts.Fatalf("usage: break STATUS PATTERN")
	}
	siteOf(ts).registry.Gate.Break(siteOf(ts).tb, registrytest.Fault{Path: args[1], Status: status[args[0]]})
}

// limit answers as a registry does that was asked too often: limit SECONDS
// PATTERN.
func limit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: limit SECONDS PATTERN")
	}
	siteOf(ts).registry.Gate.Break(siteOf(ts).tb, registrytest.Fault{
		Path: args[1], Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": args[0]},
	})
}

// flip changes one byte of this platform's layer in the registry's storage:
// flip NAME:VERSION.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: flip NAME:VERSION")
	}
	s := siteOf(ts)
	layer := s.published[args[0]].Layers[artifact.HostPlatform().String()].Digest
	s.registry.RewriteBlob(siteOf(ts).tb, layer, func(b []byte) []byte {
		b[len(b)/2] ^= 1
		return b
	})
}

// alter changes an installed plugin together with its receipt, as somebody does
// who covers it up: alter NAME/VERSION.
func alter(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: alter NAME/VERSION")
	}
	dir := filepath.Join(ts.Getenv("FLEETING_PLUGIN_PATH"), filepath.FromSlash(args[0]))
	executable := filepath.Join(dir, artifact.HostPlatform().Executable())
	before, err := os.ReadFile(executable)
	ts.Check(err)
	after := bytes.ToUpper(before)
	ts.Check(os.WriteFile(executable, after, 0o755))
	receipt := filepath.Join(dir, "fleeting-plugin.receipt.json")
	content, err := os.ReadFile(receipt)
	ts.Check(err)
	covered := bytes.ReplaceAll(content, []byte(digest.FromBytes(before)), []byte(digest.FromBytes(after)))
	ts.Check(os.WriteFile(receipt, covered, 0o644))
}

// misprint changes the first digest that a lock has under a key: misprint KEY FILE.
func misprint(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: misprint KEY FILE")
	}
	before, after, found := strings.Cut(ts.ReadFile(args[1]), args[0]+" = 'sha256:")
	if !found {
		ts.Fatalf("%s has no %s", args[1], args[0])
	}
	digit := "0"
	if after[0] == '0' {
		digit = "1"
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(before+args[0]+" = 'sha256:"+digit+after[1:]), 0o644))
}

// withdraw takes a published version back: withdraw NAME:VERSION.
func withdraw(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: withdraw NAME:VERSION")
	}
	s := siteOf(ts)
	name, _, _ := strings.Cut(args[0], ":")
	s.registry.Withdraw(s.tb, name, s.published[args[0]].Index.Digest)
}

// requests checks how many requests the registry has seen since the last time:
// requests none.
func requests(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: requests none|forget")
	}
	gate := siteOf(ts).registry.Gate
	if seen := gate.Requests(); args[0] == "none" && len(seen) > 0 {
		ts.Fatalf("the registry was asked: %v", seen)
	}
	gate.Forget()
}
