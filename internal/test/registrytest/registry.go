// Package registrytest runs real registries on loopback for tests: the
// distribution project's registry, which has no referrers API, and
// go-containerregistry's, which has one. A gate in front of each counts
// requests and can break them.
//
// It is for tests only.
package registrytest

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd" // for WithPassword
	"github.com/distribution/distribution/v3/registry/handlers"
	storagedriver "github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/factory"
	"github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	"github.com/opencontainers/go-digest"
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"
)

// Registry is a running registry.
type Registry struct {
	// Host is "127.0.0.1:port", or what Listen was given.
	Host string
	// Gate sees every request first.
	Gate *Gate
	// storage is that of New.
	storage storagedriver.StorageDriver
	// plain is the registry itself.
	plain http.Handler
	// held is what a registry of NewReferrers was given.
	held *holdings
}

type options struct {
	addr           string
	user, password string
	sparse         bool
}

// Option changes how a registry is started.
type Option func(*options)

// Listen binds another address than 127.0.0.1 with a free port. The runner's
// own installer takes no ports, so its tests listen on port 80 of 127.0.0.N.
func Listen(addr string) Option { return func(o *options) { o.addr = addr } }

// WithPassword asks for basic authentication (New only).
func WithPassword(user, password string) Option {
	return func(o *options) { o.user, o.password = user, password }
}

// WithSparseIndexes takes an index without the manifests that it names (New
// only), which distribution refuses unless configured to.
func WithSparseIndexes() Option { return func(o *options) { o.sparse = true } }

// New starts the distribution project's registry with its storage in memory: on
// disk it renames files that are open, which Windows does not allow. It has no
// referrers API.
func New(t testing.TB, opts ...Option) *Registry {
	t.Helper()
	quietLogs()
	o := collect(opts)
	registerStorage()
	storage := inmemory.New()
	cfg := &configuration.Configuration{Storage: configuration.Storage{
		storageName: {storageName: storage},
		"delete":    {"enabled": true},
		"maintenance": {"uploadpurging": map[any]any{
			"enabled": false, "age": "1h", "interval": "1h", "dryrun": false,
		}},
	}}
	cfg.HTTP.Secret = "registrytest"
	cfg.Catalog.MaxEntries = 1000
	cfg.Tags.MaxTags = 1000
	if o.sparse {
		cfg.Validation.Manifests.Indexes.Platforms = "none"
	}
	if o.user != "" {
		cfg.Auth = configuration.Auth{"htpasswd": {
			"realm": "registrytest", "path": writePasswordFile(t, o.user, o.password),
		}}
	}
	app := handlers.NewApp(context.Background(), cfg)
	t.Cleanup(func() { _ = app.Shutdown() })
	r := serve(t, app, o)
	r.storage = storage
	return r
}

// NewReferrers starts go-containerregistry's registry, in memory, with the
// referrers API.
func NewReferrers(t testing.TB, opts ...Option) *Registry {
	t.Helper()
	return (&Snapshot{}).Start(t, opts...)
}

func collect(opts []Option) options {
	o := options{addr: "127.0.0.1:0"}
	for _, f := range opts {
		f(&o)
	}
	return o
}

func serve(t testing.TB, h http.Handler, o options) *Registry {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", o.addr)
	if err != nil {
		t.Fatalf("listening for a registry: %v", err)
	}
	gate := &Gate{next: h}
	srv := &http.Server{Handler: gate, ErrorLog: log.New(io.Discard, "", 0)} //nolint:gosec // a test's own server
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	host := l.Addr().String()
	if h, port, err := net.SplitHostPort(host); err == nil && port == "80" {
		host = h
	}
	return &Registry{Host: host, Gate: gate, plain: h}
}

// RewriteBlob changes the stored bytes of a blob behind the registry's back
// (New only).
func (r *Registry) RewriteBlob(t testing.TB, d digest.Digest, change func([]byte) []byte) {
	t.Helper()
	data := fmt.Sprintf("/docker/registry/v2/blobs/%s/%s/%s/data", d.Algorithm(), d.Encoded()[:2], d.Encoded())
	b, err := r.storage.GetContent(t.Context(), data)
	if err != nil {
		t.Fatalf("reading a stored blob: %v", err)
	}
	if err := r.storage.PutContent(t.Context(), data, change(b)); err != nil {
		t.Fatalf("rewriting a stored blob: %v", err)
	}
}

// Withdraw deletes a manifest, and with it the tags that point at it.
func (r *Registry) Withdraw(t testing.TB, repository string, d digest.Digest) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "/v2/"+repository+"/manifests/"+d.String(), http.NoBody)
	answer := httptest.NewRecorder()
	r.plain.ServeHTTP(answer, request)
	if answer.Code != http.StatusAccepted {
		t.Fatalf("withdrawing %s: %s", d, answer.Body)
	}
}

func writePasswordFile(t testing.TB, user, password string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatalf("hashing a password: %v", err)
	}
	path := filepath.Join(t.TempDir(), "htpasswd")
	if err := os.WriteFile(path, []byte(user+":"+string(hash)+"\n"), 0o600); err != nil {
		t.Fatalf("writing a password file: %v", err)
	}
	return path
}

// quietLogs silences the registry, which logs every request through logrus'
// only global logger.
var quietLogs = sync.OnceFunc(func() { logrus.SetOutput(io.Discard) }) //nolint:gochecknoglobals // logrus has one

// storageName is that of a storage that is handed over as it is, so that tests can
// get at what is in it.
const storageName = "registrytest"

type handedOver struct{}

// Create returns the storage among the parameters.
func (handedOver) Create(_ context.Context, parameters map[string]any) (storagedriver.StorageDriver, error) {
	storage, ok := parameters[storageName].(storagedriver.StorageDriver)
	if !ok {
		return nil, fmt.Errorf("no storage among %v", parameters)
	}
	return storage, nil
}

var registerStorage = sync.OnceFunc(func() { factory.Register(storageName, handedOver{}) }) //nolint:gochecknoglobals // distribution has one list
