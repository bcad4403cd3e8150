package demo

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // the storage that is configured below
	"github.com/sirupsen/logrus"
)

// ServeRegistry serves the demo's registry until ctx ends: the distribution
// project's, on a loopback address such as "127.0.0.1:5001", with what it holds
// in a folder. Anybody on the machine may push to it. It says on out where it
// answers.
func ServeRegistry(ctx context.Context, address, dir string, out io.Writer) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s: the registry asks nobody for a password; it serves on loopback only", address)
	}
	r, err := startRegistry(ctx, address, dir)
	if err != nil {
		return err
	}
	defer r.close()
	if _, err := fmt.Fprintf(out, "A registry answers at %s until you press Ctrl-C. It keeps what it is given in %s.\n", r.host, dir); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// registry is the distribution project's registry on a loopback address, with
// its storage in a folder.
type registry struct {
	host   string
	app    *handlers.App
	server *http.Server
}

func startRegistry(ctx context.Context, address, dir string) (*registry, error) {
	// The registry logs to logrus' standard logger: every request, at once.
	logrus.SetOutput(io.Discard)
	config := &configuration.Configuration{Storage: configuration.Storage{
		"filesystem": {"rootdirectory": dir},
		"maintenance": {"uploadpurging": map[any]any{
			"enabled": false, "age": "1h", "interval": "1h", "dryrun": false,
		}},
	}}
	config.HTTP.Secret = "one process, one run"
	config.Catalog.MaxEntries = 1000
	config.Tags.MaxTags = 1000
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	app := handlers.NewApp(context.WithoutCancel(ctx), config)
	server := &http.Server{
		Handler:           app,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() { _ = server.Serve(listener) }()
	return &registry{host: listener.Addr().String(), app: app, server: server}, nil
}

func (r *registry) close() {
	_ = r.server.Close()
	_ = r.app.Shutdown()
}
