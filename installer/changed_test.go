package installer_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
)

// TestInstallOverChanged holds that a changed byte of an executable, its size
// being the same, is neither called installed nor replaced without a word.
func TestInstallOverChanged(t *testing.T) {
	t.Parallel()
	for name, install := range map[string]func(context.Context, *installer.Installer, installer.Reference, installer.Lock) (installer.Installed, error){
		"install": func(ctx context.Context, i *installer.Installer, ref installer.Reference, _ installer.Lock) (installer.Installed, error) {
			return i.Install(ctx, ref, installer.InstallOptions{As: alias})
		},
		"ensure": func(ctx context.Context, i *installer.Installer, ref installer.Reference, _ installer.Lock) (installer.Installed, error) {
			return i.Ensure(ctx, ref, installer.InstallOptions{As: alias})
		},
		"locked": func(ctx context.Context, i *installer.Installer, ref installer.Reference, lock installer.Lock) (installer.Installed, error) {
			return i.InstallLocked(ctx, lock, ref)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLocksite(t)
			lock, err := s.lock(t, installer.Lock{}, installer.ChangeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			installed := s.mustInstall(t)
			var log bytes.Buffer
			i := newInstaller(t, s.policy(t), installer.WithFolder(s.installer.Folder().Dir()),
				installer.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			if err := os.WriteFile(installed.Path, bytes.ToLower([]byte(readFile(t, installed.Path))), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(installed.Path, 0o755); err != nil {
				t.Fatal(err)
			}
			cancelled, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := install(cancelled, i, s.ref, lock); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
			log.Reset()
			again, err := install(t.Context(), i, s.ref, lock)
			if err != nil || !again.JustInstalled || !strings.HasPrefix(readFile(t, again.Path), "ELF") {
				t.Errorf("%+v, %v; want it replaced", again, err)
			}
			if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "changed since it was installed") {
				t.Errorf("want a warning, got %q", log.String())
			}
			log.Reset()
			if again, err = install(t.Context(), i, s.ref, lock); err != nil || again.JustInstalled || log.Len() > 0 {
				t.Errorf("%+v, %v, %q; want nothing done and nothing said", again, err, log.String())
			}
		})
	}
}
