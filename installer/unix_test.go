//go:build !windows

package installer_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	runner "gitlab.com/gitlab-org/fleeting/fleeting-artifact/pkg/installer"
	"gitlab.com/gitlab-org/fleeting/fleeting-artifact/pkg/releaser"
	"golang.org/x/sync/errgroup"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
)

// TestExecutedMeanwhile starts the plugin in a loop while processes install it:
// it is never half there and never busy. INTEROP 12:
// https://github.com/cisagov/pre-commit-packer/pull/62
func TestExecutedMeanwhile(t *testing.T) {
	t.Parallel()
	const installers = 50
	p := newProcesses(t, "#!/bin/sh\nexit 0\n#"+strings.Repeat("-", 4096))
	path := filepath.Join(p.folder, filepath.FromSlash(alias), "1.2.3", program())
	done := make(chan struct{})
	var group, runs errgroup.Group
	group.SetLimit(8)
	started := 0
	runs.Go(func() error {
		for {
			select {
			case <-done:
				return nil
			default:
			}
			err := exec.CommandContext(t.Context(), path).Run()
			if err == nil {
				started++
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	})
	for range installers {
		group.Go(func() error {
			cmd, out := p.command(t.Context())
			if err := cmd.Run(); err != nil {
				return errors.New(out.String())
			}
			return nil
		})
	}
	err := group.Wait()
	close(done)
	if err := errors.Join(err, runs.Wait()); err != nil || started == 0 {
		t.Errorf("%v; started %d times", err, started)
	}
}

// TestRunnerReleaser installs what the runner's own releaser pushed. It signs
// nothing, so verification is off.
func TestRunnerReleaser(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	host := portless(t, "10.41.0.1", registry)
	dist := t.TempDir()
	dir := filepath.Join(dist, filepath.FromSlash(artifact.HostPlatform().Dir()))
	writeExecutable(t, filepath.Join(dir, program()), "ELF")
	writeExecutable(t, filepath.Join(dir, "LICENSE"), "MIT")
	ctx := t.Context()
	if _, err := releaser.Release(ctx, host+"/group/plugin:1.2.3", releaser.WithDirectory(dist), releaser.WithLogger(slog.New(slog.DiscardHandler))); err != nil {
		t.Fatal(err)
	}
	i := newInstaller(t, installer.UnsafeNoVerification(), installer.WithSource(portlessRegistries(t, host).Open))
	installed, err := i.Install(ctx, reference(t, host+"/group/plugin:1"), installer.InstallOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !installed.Receipt.Verification.Unsafe {
		t.Error("the receipt does not say that nothing was verified")
	}
	if got := readFile(t, installed.Path); got != "ELF" {
		t.Errorf("installed %q", got)
	}
	for _, constraint := range []string{"", ":1", ":1.2", ":1.2.3", ":latest"} {
		if found, err := runner.LookPath(host+"/group/plugin"+constraint, i.Folder().Dir()); err != nil || found != installed.Path {
			t.Errorf("the runner finds %q, %v; want %q", found, err, installed.Path)
		}
	}
	// The runner's installer, for its part, takes what ours put there for installed.
	if err := runner.Install(ctx, host+"/group/plugin:1.2.3", runner.WithDirectory(i.Folder().Dir())); err != nil {
		t.Errorf("the runner's installer: %v", err)
	}
}
