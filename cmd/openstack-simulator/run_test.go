package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

func TestServesWhatTheCloudsFileNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, []string{"--listen", "127.0.0.1:0", "--dir", dir, "--quiet"}, writer, io.Discard)
		_ = writer.Close()
	}()
	greeting := make([]byte, 64)
	if _, err := io.ReadFull(reader, greeting); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()

	var entry struct {
		Runners struct {
			Autoscaler struct {
				Plugin    map[string]any `toml:"plugin_config"`
				Connector map[string]any `toml:"connector_config"`
			} `toml:"autoscaler"`
		} `toml:"runners"`
	}
	config, err := os.ReadFile(filepath.Join(dir, "config.toml"))
	if err := errors.Join(err, toml.Unmarshal(config, &entry)); err != nil {
		t.Fatal(err)
	}
	if runner := entry.Runners.Autoscaler; runner.Plugin["clouds_config"] != filepath.Join(dir, "clouds.yaml") || runner.Connector["key_path"] != filepath.Join(dir, "id_ed25519") {
		t.Errorf("config.toml:\n%s", config)
	}
	content, err := os.ReadFile(filepath.Join(dir, "clouds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Clouds map[string]struct {
			Auth struct {
				URL string `yaml:"auth_url"`
			} `yaml:"auth"`
		} `yaml:"clouds"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: 10 * time.Second}
	for _, name := range []string{"simulator", "simulator-appcred", "simulator-tiny"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, file.Clouds[name].Auth.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", name, response.Status)
		}
	}
	key, err := os.Stat(filepath.Join(dir, "id_ed25519"))
	if err != nil || key.Mode().Perm() != 0o600 {
		t.Errorf("key: %v, %v", key, err)
	}
	cancel()
	if code := <-exit; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestASecondStartLeavesTheFirstAlone: whoever forgot the first terminal keeps
// the key with which its servers are reached.
func TestASecondStartLeavesTheFirstAlone(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	first, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	dir := t.TempDir()
	files := []string{"id_ed25519", "clouds.yaml", "config.toml"}
	for _, name := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("the first one's"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var errs strings.Builder
	if code := run(t.Context(), []string{"--listen", first.Addr().String(), "--dir", dir}, io.Discard, &errs); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(errs.String(), "--listen") {
		t.Errorf("the message names no way out: %s", errs.String())
	}
	for _, name := range files {
		if content, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(content) != "the first one's" {
			t.Errorf("%s was changed (%v)", name, err)
		}
	}
	untouched := filepath.Join(t.TempDir(), "cloud")
	run(t.Context(), []string{"--listen", first.Addr().String(), "--dir", untouched}, io.Discard, io.Discard)
	if _, err := os.Stat(untouched); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failed start left a folder behind (%v)", err)
	}
}

func TestRefusesToServeOthers(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"0.0.0.0:5000", ":5000", "192.0.2.1:5000", "nonsense"} {
		var errs strings.Builder
		if code := run(t.Context(), []string{"--listen", listen, "--dir", t.TempDir()}, io.Discard, &errs); code != exitUsage {
			t.Errorf("--listen %s: exit code %d: %s", listen, code, errs.String())
		}
	}
}
