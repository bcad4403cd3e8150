package lifecycle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

const (
	// expected is the digest of the first version's package on another system.
	expected = "LIFECYCLE_DIGEST"
	// often says how many installations there are beside a reader, and how many at
	// most are killed.
	often = "LIFECYCLE_INSTALLS"
)

// life is one machine with a registry.
type life struct {
	things, home, dir, layouts string
	registry                   string
	digests                    map[string]string
}

// TestLife goes through the life of a plugin, in order: each part goes on where the
// one before ended.
func TestLife(t *testing.T) {
	t.Parallel()
	l := &life{things: things(t), home: t.TempDir(), layouts: t.TempDir(), registry: registrytest.New(t).Host + "/team/plugin", digests: map[string]string{}}
	// Folders of people have spaces and letters beyond ASCII.
	l.dir = filepath.Join(t.TempDir(), "Program Files für GitLab", "plugins")
	l.keys(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"package", l.pack},
		{"install and start", l.install},
		{"upgrade with the old version running", l.upgrade},
		{"reinstall while running, and roll back", l.rollback},
		{"uninstall while running, and the sweep after it", l.uninstall},
		{"installations beside a reader", l.besideReader},
		{"kill at random moments", l.kill},
		{"a runner that is killed", l.orphan},
		{"a copy by bootstrap while another runs", l.bootstrap},
		{"long paths", l.longPaths},
	} {
		if !t.Run(part.name, part.run) {
			t.FailNow()
		}
	}
}

func (l *life) keys(t *testing.T) {
	t.Helper()
	private, public, err := packager.GenerateKeyPair([]byte("secret"))
	if err := errors.Join(err, os.WriteFile(l.at("cosign.key"), private, 0o600), os.WriteFile(l.at("cosign.pub"), public, 0o600), os.WriteFile(l.at("config.toml"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (l *life) at(name string) string { return filepath.Join(l.home, name) }

// command is the tool, in an environment of its own.
func (l *life) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(l.things, named("fleeting-plugin", runtime.GOOS+"/")), args...)
	cmd.Dir = l.home
	cmd.Env = []string{
		"HOME=" + l.home, "USERPROFILE=" + l.home, "APPDATA=" + l.home, "LOCALAPPDATA=" + l.home, "TMP=" + os.TempDir(), "TMPDIR=" + os.TempDir(),
		"FLEETING_PLUGIN_PATH=" + l.dir, "COSIGN_PASSWORD=secret", "SOURCE_DATE_EPOCH=1700000000", "PATH=" + os.Getenv("PATH"), "SYSTEMROOT=" + os.Getenv("SYSTEMROOT"),
	}
	return cmd
}

// exits runs the tool and holds its exit code; it returns what it wrote.
func (l *life) exits(t *testing.T, code int, args ...string) string {
	t.Helper()
	cmd := l.command(t.Context(), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("%s: exit %d, %v; want %d\n%s%s", strings.Join(args, " "), got, err, code, out.String(), errs.String())
	}
	return out.String() + errs.String()
}

func (l *life) tool(t *testing.T, args ...string) string {
	t.Helper()
	return l.exits(t, 0, args...)
}

// pack packages the first version twice, once beside a layout that is there, and
// nothing else may stay; then both versions are published and signed.
func (l *life) pack(t *testing.T) {
	for _, version := range versions {
		layout := filepath.Join(l.layouts, version)
		for range 2 {
			out := l.tool(t, "package", filepath.Join(l.things, version), "--version", version, "--executable", "helper", "--layout", layout, "--output", "json")
			var packed struct {
				Digest string `json:"digest"`
			}
			if err := json.NewDecoder(strings.NewReader(out)).Decode(&packed); err != nil { // Warnings follow.
				t.Fatalf("%v in %s", err, out)
			}
			if before := l.digests[version]; before != "" && before != packed.Digest {
				t.Errorf("%s is %s, was %s", version, packed.Digest, before)
			}
			l.digests[version] = packed.Digest
		}
	}
	t.Logf("digest of %s: %s", versions[0], l.digests[versions[0]])
	if want := os.Getenv(expected); want != "" && l.digests[versions[0]] != want {
		t.Errorf("on another system it is %s", want)
	}
	if found := names(t, l.layouts); len(found) != len(versions) {
		t.Errorf("left behind: %v", found)
	}
	l.publish(t, versions[0])
}

func (l *life) publish(t *testing.T, version string) {
	t.Helper()
	ref := l.registry + ":" + version
	l.tool(t, "push", filepath.Join(l.layouts, version), ref)
	l.tool(t, "sign", ref, "--key", l.at("cosign.key"))
}

const alias = "registry.test/team/plugin"

func (l *life) installArgs(more ...string) []string {
	return append([]string{"install", l.registry + ":1", "--as", alias, "--key", l.at("cosign.pub"), "--quiet"}, more...)
}

func (l *life) install(t *testing.T) {
	l.tool(t, l.installArgs()...)
	if out := l.tool(t, "lookpath", alias); !strings.Contains(out, filepath.Join("plugin", versions[0])) {
		t.Errorf("lookpath: %s", out)
	}
	l.tool(t, "verify", "--installed")
	// The policy is one of flags, which doctor is not told.
	if out := l.exits(t, 0, "doctor", "--key", l.at("cosign.pub")); !strings.Contains(out, "serves protocol 0") {
		t.Errorf("doctor: %s", out)
	}
}

func (l *life) upgrade(t *testing.T) {
	defer l.start(t)()
	l.publish(t, versions[1])
	l.tool(t, "upgrade", "--key", l.at("cosign.pub"))
	if out := l.tool(t, "lookpath", alias); !strings.Contains(out, filepath.Join("plugin", versions[1])) {
		t.Errorf("lookpath: %s", out)
	}
	l.tool(t, "verify", "--installed")
}

func (l *life) rollback(t *testing.T) {
	defer l.start(t)()
	l.tool(t, l.installArgs("--reinstall")...)
	defer l.start(t)()
	l.tool(t, "rollback", alias)
	if out := l.tool(t, "lookpath", alias); !strings.Contains(out, filepath.Join("plugin", versions[0])) {
		t.Errorf("lookpath: %s", out)
	}
	l.tool(t, "verify", "--installed")
}

// uninstall removes a version that runs, installs it again and removes it again,
// all of which may not care; what is left of both goes once they have ended.
func (l *life) uninstall(t *testing.T) {
	var stops []func()
	for range 2 {
		stops = append(stops, l.start(t))
		l.tool(t, "uninstall", alias+":"+versions[0])
		l.exits(t, 4, "lookpath", alias)
		l.tool(t, "install", l.registry+":"+versions[0], "--as", alias, "--key", l.at("cosign.pub"), "--quiet")
	}
	l.tool(t, "uninstall", alias+":"+versions[0])
	for _, stop := range stops {
		stop()
	}
	l.swept(t)
	if out := l.tool(t, "list", "--output", "json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("still listed: %s", out)
	}
}

// swept holds that one command removes what is left of versions that ran.
func (l *life) swept(t *testing.T) {
	t.Helper()
	l.prune(t)
	if found := names(t, filepath.Join(l.dir, ".fleeting-plugin", "staging")); len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}
}

func (l *life) prune(t *testing.T) {
	t.Helper()
	l.tool(t, "prune", "--keep", "5", "--config", l.at("config.toml"))
}

// besideReader installs again and again while what is installed is read all the
// time.
func (l *life) besideReader(t *testing.T) {
	l.tool(t, l.installArgs()...)
	done := make(chan struct{})
	var reads atomic.Int64
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			out, err := l.command(t.Context(), "verify", "--installed").CombinedOutput()
			if err != nil {
				t.Errorf("the reader: %v\n%s", err, out)
				return
			}
			reads.Add(1)
		}
	})
	installs := times(t, 10)
	failed := 0
	for range installs {
		out, err := l.command(t.Context(), l.installArgs("--reinstall")...).CombinedOutput()
		if err != nil {
			failed++
			t.Errorf("%v\n%s", err, out)
		}
	}
	close(done)
	reader.Wait()
	t.Logf("%d of %d installations failed; it was read %d times", failed, installs, reads.Load())
	l.swept(t)
}

// kill ends installations at any moment. What is installed is whole then, the old
// one or the new one, and the next installation finds nothing in its way.
func (l *life) kill(t *testing.T) {
	began := time.Now()
	l.tool(t, l.installArgs("--reinstall")...)
	whole := time.Since(began)
	killed, all := 0, min(times(t, 10), 40)
	for range all {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(whole)))) // #nosec G404 -- no secret
		err := l.command(ctx, l.installArgs("--reinstall")...).Run()
		if ctx.Err() != nil && err != nil {
			killed++
		}
		cancel()
		if _, err := os.Stat(filepath.Join(l.dir, "registry.test", "team", "plugin", versions[1])); err != nil && runtime.GOOS == "linux" {
			t.Fatalf("no version at all: %v", err)
		}
		// Where folders change places in two steps, the next process ends it.
		l.prune(t)
		l.tool(t, "verify", "--installed")
		l.tool(t, "lookpath", alias)
	}
	t.Logf("%d of %d were killed before their end", killed, all)
	l.tool(t, l.installArgs("--reinstall")...)
	l.swept(t)
}

// longPaths installs where the executable just can be started, and where Windows
// could not start it.
func (l *life) longPaths(t *testing.T) {
	const longest = 259
	inside := len(filepath.Join("", "registry.test", "team", "plugin", versions[1], named("plugin", runtime.GOOS+"/")))
	base := t.TempDir()
	fill := longest - len(base) - inside - 2
	if fill < 1 {
		t.Fatalf("%s is too long for this", base)
	}
	for more, code := range map[int]int{0: 0, 1: 2} {
		if runtime.GOOS != "windows" {
			code = 0
		}
		deep := base + string(filepath.Separator) + pathOf(fill+more)
		out := l.exits(t, code, l.installArgs("--dir", deep)...)
		if code != 0 {
			if !strings.Contains(out, "too long") || len(names(t, base)) > 1 {
				t.Errorf("%s\n%v", out, names(t, base))
			}
			continue
		}
		if out := l.tool(t, "doctor", "--key", l.at("cosign.pub"), "--dir", deep); !strings.Contains(out, "serves protocol 0") {
			t.Errorf("doctor: %s", out)
		}
	}
}

// pathOf is a relative path of exactly n characters.
func pathOf(n int) string {
	text := []byte(strings.Repeat("d", n))
	for at := 50; at < n-1; at += 51 {
		text[at] = filepath.Separator
	}
	return string(text)
}

func times(t *testing.T, usually int) int {
	t.Helper()
	text := os.Getenv(often)
	if text == "" {
		return usually
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}
