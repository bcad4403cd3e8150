package installer_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// alias is a name without a port, since the registries of tests have one.
const alias = "registry.test/team/plugin"

// repository opens a repository of a test's registry.
func repository(tb testing.TB, host, name string) *ociregistry.Repository {
	tb.Helper()
	repo, err := client(tb).Repository(host + "/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return repo
}

func impatient() ociregistry.Options {
	return ociregistry.Options{Retries: 1, FirstWait: time.Millisecond}
}

func client(tb testing.TB) *ociregistry.Client {
	tb.Helper()
	c, err := ociregistry.NewClient(impatient())
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func retryingRegistries(tb testing.TB) *installer.Registries {
	tb.Helper()
	r, err := installer.NewRegistries(impatient())
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// trusting is a policy that wants a signature by the key, for everything.
func trusting(tb testing.TB, key *trusttest.Key) installer.Policy {
	tb.Helper()
	return policyOf(tb, installer.Rule{Scope: "**", Signers: []installer.Signer{signerOf(tb, key)}})
}

func signerOf(tb testing.TB, key *trusttest.Key) installer.Signer {
	tb.Helper()
	signer, err := installer.RequireKey(key.PublicPEM(tb), installer.KeyOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return signer
}

func policyOf(tb testing.TB, rules ...installer.Rule) installer.Policy {
	tb.Helper()
	policy, err := installer.NewPolicy(rules...)
	if err != nil {
		tb.Fatal(err)
	}
	return policy
}

// newInstaller installs into a fresh folder, from registries.
func newInstaller(tb testing.TB, policy installer.Policy, opts ...installer.Option) *installer.Installer {
	tb.Helper()
	all := append([]installer.Option{
		installer.WithFolder(filepath.Join(tb.TempDir(), "plugins")),
		installer.WithSource(retryingRegistries(tb).Open),
	}, opts...)
	i, err := installer.New(policy, all...)
	if err != nil {
		tb.Fatal(err)
	}
	return i
}

func reference(tb testing.TB, text string) installer.Reference {
	tb.Helper()
	ref, err := installer.ParseReference(text)
	if err != nil {
		tb.Fatal(err)
	}
	return ref
}

// program is what the executable of a plugin is called on this system.
func program() string { return artifact.HostPlatform().Executable() }

// mustBeEmpty fails if a folder of plugins has anything in it but locks.
func mustBeEmpty(tb testing.TB, dir string) {
	tb.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && !strings.Contains(filepath.ToSlash(path), "/.fleeting-plugin/locks/") {
			tb.Errorf("left behind: %s", path)
		}
		if err == nil && d.IsDir() && strings.Contains(filepath.ToSlash(path), "/staging/") {
			tb.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func readFile(tb testing.TB, path string) string {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(content)
}

// registries are the two kinds: with the referrers API and without.
func registries(t *testing.T) map[string]*registrytest.Registry {
	t.Helper()
	return map[string]*registrytest.Registry{
		"fallback tag":  registrytest.New(t),
		"referrers API": registrytest.NewReferrers(t),
	}
}

// newLayout is an empty OCI layout.
func newLayout(tb testing.TB) *ociregistry.Layout {
	tb.Helper()
	layout, err := ociregistry.CreateLayout(tb.Context(), tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return layout
}
