package installer_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	runner "gitlab.com/gitlab-org/fleeting/fleeting-artifact/pkg/installer"
	"golang.org/x/sync/errgroup"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// processes is a registry with a signed plugin, and a way to install it in
// processes of their own.
type processes struct {
	registry  *registrytest.Registry
	published plugintest.Published
	folder    string
	key       string
	policy    installer.Policy
	body      string
}

func newProcesses(t *testing.T, body string) *processes {
	t.Helper()
	p := &processes{registry: registrytest.New(t), folder: filepath.Join(t.TempDir(), "plugins"), body: body}
	key := trusttest.NewKey(t)
	p.policy = trusting(t, key)
	p.key = filepath.Join(t.TempDir(), "cosign.pub")
	if err := os.WriteFile(p.key, key.PublicPEM(t), 0o600); err != nil {
		t.Fatal(err)
	}
	repo := repository(t, p.registry.Host, "team/plugin")
	p.published = plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: body}, "1.2.3")
	plugintest.Sign(t, repo, key, p.published.Index)
	return p
}

// command is an installation in another process.
func (p *processes) command(ctx context.Context) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), "INSTALLER_TEST_CHILD="+p.registry.Host+"/team/plugin:1.2.3",
		"INSTALLER_TEST_FOLDER="+p.folder, "INSTALLER_TEST_KEY="+p.key)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// TestParallelProcesses installs one reference from many processes at once.
// INTEROP C22: of two of the runner's, one fails.
func TestParallelProcesses(t *testing.T) {
	t.Parallel()
	const count = 100
	p := newProcesses(t, strings.Repeat("some plugin ", 1000))
	var group errgroup.Group
	group.SetLimit(count)
	var mu sync.Mutex
	outputs := map[string]int{}
	for range count {
		group.Go(func() error {
			cmd, out := p.command(t.Context())
			err := cmd.Run()
			mu.Lock()
			defer mu.Unlock()
			outputs[out.String()]++
			return err
		})
	}
	if err := group.Wait(); err != nil || len(outputs) != 1 {
		t.Fatalf("%v; outputs: %v", err, outputs)
	}
	downloads := 0
	for _, request := range p.registry.Gate.Requests() {
		for _, layer := range p.published.Layers {
			if request.Method == "GET" && strings.Contains(request.Path, layer.Digest.String()) {
				downloads++
			}
		}
	}
	if downloads != 1 {
		t.Errorf("%d downloads; want 1", downloads)
	}
}

// TestKilled kills installations at random moments. INTEROP C23: the runner's
// leave their temporary folders for ever.
func TestKilled(t *testing.T) {
	t.Parallel()
	const count, atOnce = 300, 4
	body := randomText(2 << 20)
	p := newProcesses(t, body)
	started := time.Now()
	cmd, out := p.command(t.Context())
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	usual := time.Since(started)
	var group errgroup.Group
	group.SetLimit(atOnce)
	for n := range atOnce {
		// One after the other in a folder: killOne empties it.
		folder := filepath.Join(p.folder, "..", "k", string(rune('a'+n)))
		group.Go(func() error {
			for range count / atOnce {
				if err := p.killOne(t, folder, usual); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for n := range atOnce {
		folder := filepath.Join(p.folder, "..", "k", string(rune('a'+n)))
		p.mustRecover(t, folder)
	}
}

// killOne starts an installation, kills it after a random part of the usual
// time, and looks at what can be seen.
func (p *processes) killOne(t *testing.T, folder string, usual time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(usual)*5/4)))
	defer cancel()
	one := *p
	one.folder = folder
	cmd, _ := one.command(ctx) // the context kills with SIGKILL
	if err := cmd.Run(); err == nil {
		// It was faster: start again from nothing.
		if err := os.RemoveAll(filepath.Join(folder, "registry.test")); err != nil {
			return err
		}
	}
	path, err := runner.LookPath(alias+":1.2.3", folder)
	if err != nil {
		return nil // not visible, as it should be
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(content), p.body) {
		return errors.New("a partial plugin is visible")
	}
	return os.RemoveAll(filepath.Join(folder, "registry.test"))
}

// mustRecover installs once more and wants nothing of the killed ones to be left.
func (p *processes) mustRecover(t *testing.T, folder string) {
	t.Helper()
	one := *p
	one.folder = folder
	cmd, out := one.command(t.Context())
	if err := cmd.Run(); err != nil {
		t.Fatalf("after the killed ones: %v: %s", err, out)
	}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.Contains(path, "staging/") {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// randomText is text that compresses badly.
func randomText(n int) string {
	rng := rand.New(rand.NewPCG(1, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/"[rng.IntN(64)]
	}
	return string(b)
}
