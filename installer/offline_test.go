package installer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

const mirroredPlugins = 5

// offlinePlatforms are the six that a mirror is carried for.
func offlinePlatforms() []string {
	return []string{"linux/amd64", "linux/arm64", "linux/arm/v7", "windows/amd64", "darwin/arm64", "freebsd/amd64"}
}

// TestNoNetwork imports a mirror file with five plugins for six platforms in a
// process that has no network at all, verifies them and installs them.
// INTEROP 15, 28: https://github.com/opentofu/opentofu/pull/2163,
// https://github.com/sigstore/cosign/issues/4507
//
// Making a network namespace takes root. In CI it must be possible; elsewhere the
// process runs without one.
func TestNoNetwork(t *testing.T) {
	t.Parallel()
	key, dir, work := trusttest.NewKey(t), filepath.Join(t.TempDir(), "layout"), t.TempDir()
	layout, err := installer.CreateLayout(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for n := range mirroredPlugins {
		to := layout.Destination(reference(t, fmt.Sprintf("registry.test/team/plugin%d", n)))
		dressed(t, to, key, "1.0.0", offlinePlatforms())
	}
	archive, err := os.Create(filepath.Join(work, "mirror.tar"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(installer.WriteLayoutTar(t.Context(), dir, archive), archive.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "cosign.pub"), key.PublicPEM(t), 0o600); err != nil {
		t.Fatal(err)
	}
	command := []string{"unshare", "-n", os.Args[0]}
	if err := exec.CommandContext(t.Context(), "unshare", "-n", "true").Run(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("unshare -n: %v; CI must be able to", err)
		}
		t.Logf("unshare -n: %v; the process has a network", err)
		command = command[2:]
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "INSTALLER_TEST_OFFLINE="+work, fmt.Sprintf("INSTALLER_TEST_SEALED=%v", len(command) > 1))
	out, err := cmd.CombinedOutput()
	if want := mirroredPlugins * len(offlinePlatforms()); err != nil || strings.TrimSpace(string(out)) != fmt.Sprint(want, " installed") {
		t.Errorf("%v: %s; want %d installed", err, out, want)
	}
}

// offlineChild imports, verifies and installs everything in a mirror file.
func offlineChild() int {
	installed, err := installMirror(context.Background(), os.Getenv("INSTALLER_TEST_OFFLINE"))
	if err != nil {
		return fail(err)
	}
	fmt.Fprintln(os.Stdout, installed, "installed")
	return 0
}

func installMirror(ctx context.Context, work string) (int, error) {
	if err := sealed(ctx); os.Getenv("INSTALLER_TEST_SEALED") == "true" && err != nil {
		return 0, err
	}
	archive, err := os.Open(filepath.Join(work, "mirror.tar"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = archive.Close() }()
	dir := filepath.Join(work, "unpacked")
	if err := errors.Join(os.Mkdir(dir, 0o700), installer.ExtractLayoutTar(ctx, archive, dir)); err != nil {
		return 0, err
	}
	policy, err := installer.ParsePolicy([]byte("version = 1\n[[rule]]\nscope = \"registry.test/team/*\"\n[[rule.key]]\nfile = \"cosign.pub\"\n"),
		func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(work, name)) })
	if err != nil {
		return 0, err
	}
	layout, err := installer.OpenLayout(ctx, dir)
	if err != nil {
		return 0, err
	}
	refs, err := layout.References(ctx)
	count := 0
	for _, platform := range offlinePlatforms() {
		i, newErr := installer.New(policy, installer.WithFolder(filepath.Join(work, strings.ReplaceAll(platform, "/", "-"))),
			installer.WithPlatform(platform), installer.WithSource(layout.Open))
		err = errors.Join(err, newErr)
		for _, ref := range refs {
			one, installErr := i.Install(ctx, ref, installer.InstallOptions{})
			if err = errors.Join(err, installErr); err != nil {
				return count, err
			}
			if err := one.Verify(ctx); err != nil || len(one.Receipt.Verification.Signers()) != 1 || one.Receipt.Platform != platform {
				return count, fmt.Errorf("%+v: %w", one.Receipt, err)
			}
			count++
		}
	}
	return count, err
}

// sealed is an error if this process can reach anything.
func sealed(ctx context.Context) error {
	addresses, err := net.InterfaceAddrs()
	if err != nil || len(addresses) > 0 {
		return fmt.Errorf("there is a network: %v, %w", addresses, err)
	}
	if _, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "unreachable") {
		return fmt.Errorf("loopback answers: %w", err)
	}
	return nil
}
