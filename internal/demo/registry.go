package demo

import (
	"context"
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

// registry is the distribution project's registry on a free port of loopback,
// with its storage in a folder.
type registry struct {
	host   string
	app    *handlers.App
	server *http.Server
}

func startRegistry(ctx context.Context, dir string) (*registry, error) {
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
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
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
