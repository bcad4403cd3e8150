package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

// refused runs a command that has to end by itself, and gives its exit code and
// what it said. One that serves instead is ended, and fails the test.
func refused(t *testing.T, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var errs strings.Builder
	code := run(ctx, args, io.Discard, &errs)
	if code == 0 {
		t.Errorf("%v: it served", args)
	}
	return code, errs.String()
}

// started runs the command until the function that it returns is called, which
// gives its exit code, and waits until it answers.
func started(t *testing.T, dir string, args ...string) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	reader, writer := io.Pipe()
	exit := make(chan int, 1)
	var errs strings.Builder
	go func() {
		exit <- run(ctx, append([]string{"--listen", "127.0.0.1:0", "--dir", dir, "--quiet"}, args...), writer, &errs)
		_ = writer.Close()
	}()
	greeting := make([]byte, 64)
	if _, err := io.ReadFull(reader, greeting); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	return func() int {
		cancel()
		return <-exit
	}
}

func TestServesWhatTheCloudsFileNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stop := started(t, dir)
	ctx := t.Context()
	var file struct {
		Runners []struct {
			Autoscaler struct {
				Plugin    map[string]any `toml:"plugin_config"`
				Connector map[string]any `toml:"connector_config"`
			} `toml:"autoscaler"`
		} `toml:"runners"`
	}
	config, err := os.ReadFile(filepath.Join(dir, "config.toml"))
	if err := errors.Join(err, toml.Unmarshal(config, &file)); err != nil {
		t.Fatal(err)
	}
	if len(file.Runners) != 1 {
		t.Fatalf("config.toml:\n%s", config)
	}
	if runner := file.Runners[0].Autoscaler; runner.Plugin["clouds_config"] != filepath.Join(dir, "clouds.yaml") || runner.Connector["key_path"] != filepath.Join(dir, "id_ed25519") {
		t.Errorf("config.toml:\n%s", config)
	}
	content, err := os.ReadFile(filepath.Join(dir, "clouds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var clouds struct {
		Clouds map[string]struct {
			Auth struct {
				URL string `yaml:"auth_url"`
			} `yaml:"auth"`
		} `yaml:"clouds"`
	}
	if err := yaml.Unmarshal(content, &clouds); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: 10 * time.Second}
	for _, name := range []string{"simulator", "simulator-appcred", "simulator-tiny"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, clouds.Clouds[name].Auth.URL, nil)
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
	if err != nil || key.Mode().Perm() != 0o600 && runtime.GOOS != "windows" { // which has no modes
		t.Errorf("key: %v, %v", key, err)
	}
	if code := stop(); code != 0 {
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
	if code, errs := refused(t, "--listen", first.Addr().String(), "--dir", dir); code != exitFailed || !strings.Contains(errs, "--listen") {
		t.Errorf("exit code %d, and the message names no way out: %s", code, errs)
	}
	for _, name := range files {
		if content, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(content) != "the first one's" {
			t.Errorf("%s was changed (%v)", name, err)
		}
	}
	untouched := filepath.Join(t.TempDir(), "cloud")
	refused(t, "--listen", first.Addr().String(), "--dir", untouched)
	if _, err := os.Stat(untouched); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failed start left a folder behind (%v)", err)
	}
}

// TestAFolderHasOneSimulator: a second one, at another address, would take the
// first one's key and addresses away.
func TestAFolderHasOneSimulator(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stop := started(t, dir)
	before := contents(t, dir)
	if code, errs := refused(t, "--listen", "127.0.0.1:0", "--dir", dir); code != exitFailed || !strings.Contains(errs, "choose another folder") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("the first one's files (-before +after):\n%s", diff)
	}
	stop()
	if code := started(t, dir)(); code != 0 {
		t.Errorf("once the first has ended: exit code %d", code)
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, name := range []string{"id_ed25519", "clouds.yaml", "config.toml"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(content)
	}
	return found
}

// TestATakenSSHPortIsNoticed: who listens on a port of all addresses keeps
// every server from answering on its own.
func TestATakenSSHPortIsNoticed(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	other, err := config.Listen(t.Context(), "tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	_, port, err := net.SplitHostPort(other.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "cloud")
	if code, errs := refused(t, "--listen", "127.0.0.1:0", "--dir", dir, "--ssh-port", port); code != exitFailed || !strings.Contains(errs, "choose another port with --ssh-port") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failed start left a folder behind (%v)", err)
	}
}

// TestTutorialShowsTheConfig: the first tutorial shows the file that the
// simulator writes, but for the folder that the reader works in.
func TestTutorialShowsTheConfig(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/tutorials/first-job.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(page), "```toml\n")
	shown, _, closed := strings.Cut(after, "```\n")
	if !ok || !closed {
		t.Fatal("the tutorial shows no config.toml")
	}
	folder := t.TempDir()
	beside := filepath.Join(folder, "build", "bin", "fleeting-plugin-openstack")
	if err := os.MkdirAll(filepath.Dir(beside), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(beside, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	entry := runnerEntry{
		user: "runner", port: 2222, clouds: "cloud/clouds.yaml", key: "cloud/id_ed25519",
		plugin: pluginBeside(func() (string, error) { return filepath.Join(filepath.Dir(beside), program), nil }),
	}
	quoted := strings.Trim(strconv.Quote(beside), `"`)
	written := strings.ReplaceAll(entry.toml(), quoted, "/home/you/fleeting-plugin-openstack/build/bin/fleeting-plugin-openstack")
	if diff := cmp.Diff(shown, written); diff != "" {
		t.Errorf("config.toml (-tutorial +written):\n%s", diff)
	}
	var printed strings.Builder
	explain(&printed, "http://127.0.0.1:5000", "cloud/config.toml", entry)
	commands := 0
	for line := range strings.Lines(printed.String()) {
		command, ok := strings.CutPrefix(line, "    ")
		if !ok {
			continue
		}
		commands++
		if !strings.Contains(string(page), "\n"+command) {
			t.Errorf("the tutorial does not show the command %s", command)
		}
	}
	if commands != 5 {
		t.Errorf("%d commands printed, want 5", commands)
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"--ssh-port 99999":         "ports end at 65535",
		"--ssh-port -1":            "-ssh-port",
		"--listen 127.0.0.1:80001": "a port is a number",
		"--listen 5005":            "write it as 127.0.0.1:5000",
		"--build-time 5":           "has a unit, such as 5s",
		"--delete-time -5s":        "is not negative",
		"--lsten x":                "did you mean --listen?",
		"serve":                    "unexpected argument",
		"--fault eror":             "did you mean error?",
	} {
		if code, errs := refused(t, append(strings.Fields(args), "--dir", t.TempDir())...); code != exitUsage || !strings.Contains(errs, says) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit code %d, want %q in one line: %s", args, code, says, errs)
		}
	}
}

// TestTellsABrowserWhatItIs: the address that is printed can be clicked.
func TestTellsABrowserWhatItIs(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	front(http.NotFoundHandler(), http.NotFoundHandler()).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "/identity/v3") {
		t.Errorf("%d: %s", answer.Code, answer.Body)
	}
	other := httptest.NewRecorder()
	front(http.NotFoundHandler(), http.NotFoundHandler()).ServeHTTP(other, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/identity/v3", nil))
	if other.Code != http.StatusNotFound {
		t.Errorf("what is the cloud's: %d", other.Code)
	}
}

func TestRefusesToServeOthers(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"0.0.0.0:5000", ":5000", "192.0.2.1:5000", "nonsense"} {
		if code, errs := refused(t, "--listen", listen, "--dir", t.TempDir()); code != exitUsage {
			t.Errorf("--listen %s: exit code %d: %s", listen, code, errs)
		}
	}
}
