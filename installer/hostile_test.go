package installer_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// planted is a folder with one installed plugin, and where its receipt is.
type planted struct {
	installer *installer.Installer
	installed installer.Installed
	ref       installer.Reference
}

func (p planted) receipt() string {
	return filepath.Join(p.installed.Dir, "fleeting-plugin.receipt.json")
}

func newPlanted(t *testing.T) planted {
	t.Helper()
	key, layout := trusttest.NewKey(t), newLayout(t)
	published := plugintest.Publish(t, layout, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	plugintest.Sign(t, layout, key, published.Index)
	source := installer.WithSource(installer.FromLayout(layout.Name()))
	p := planted{installer: newInstaller(t, trusting(t, key), source), ref: reference(t, alias+":1.2.3")}
	installed, err := p.installer.Install(t.Context(), p.ref, installer.InstallOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.installed = installed
	return p
}

// TestHostileReceipts changes the receipt on disk: what it makes of the plugin is
// neither run, nor taken for installed, nor a reason to panic, and installing
// again repairs it.
func TestHostileReceipts(t *testing.T) {
	t.Parallel()
	file := func(r map[string]any) map[string]any { return r["files"].([]any)[0].(map[string]any) } //nolint:errcheck // a receipt of ours
	for name, change := range map[string]func(map[string]any){
		"a digest without algorithm": func(r map[string]any) {
			r["files"] = append(r["files"].([]any), map[string]any{"name": "x", "size": 1, "digest": "x", "mode": "0644"}) //nolint:errcheck // a receipt of ours
		},
		"an unknown algorithm":      func(r map[string]any) { file(r)["digest"] = "md5:00" },
		"an executable elsewhere":   func(r map[string]any) { r["executable"], file(r)["name"] = "../../evil", "../../evil" },
		"an absolute executable":    func(r map[string]any) { r["executable"], file(r)["name"] = "/bin/sh", "/bin/sh" },
		"another executable":        func(r map[string]any) { r["executable"], file(r)["name"] = "sh", "sh" },
		"a file twice":              func(r map[string]any) { r["files"] = append(r["files"].([]any), file(r)) }, //nolint:errcheck // a receipt of ours
		"of another plugin":         func(r map[string]any) { r["name"] = "registry.test/team/other" },
		"of another version":        func(r map[string]any) { r["version"] = "9.9.9" },
		"no manifest":               func(r map[string]any) { r["manifest"] = "" },
		"of a later schema":         func(r map[string]any) { r["schema"] = 2 },
		"with something unknown":    func(r map[string]any) { r["trusted"] = true },
		"without files":             func(r map[string]any) { r["files"] = nil },
		"without the platform name": func(r map[string]any) { r["platform"] = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlanted(t)
			var receipt map[string]any
			if err := json.Unmarshal([]byte(readFile(t, p.receipt())), &receipt); err != nil {
				t.Fatal(err)
			}
			change(receipt)
			content, err := json.Marshal(receipt)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p.receipt(), content, 0o600); err != nil {
				t.Fatal(err)
			}
			list, err := p.installer.Folder().List()
			if err != nil || len(list) != 1 {
				t.Fatalf("%v, %v", list, err)
			}
			if err := list[0].Verify(t.Context()); !errors.Is(err, installer.Reason("changed")) {
				t.Errorf("verify: %v; want changed", err)
			}
			if path, err := p.installer.Folder().LookPath(p.ref); err == nil && path != p.installed.Path {
				t.Errorf("looked up %s", path)
			}
			again, err := p.installer.Ensure(t.Context(), p.ref, installer.InstallOptions{})
			if err != nil || again.Verify(t.Context()) != nil || again.Receipt.Platform == "" {
				t.Errorf("%+v, %v; want it repaired", again, err)
			}
		})
	}
}

// TestRenamedVersion holds that a folder which was renamed to a greater version
// is not one: the runner would start an old plugin.
func TestRenamedVersion(t *testing.T) {
	t.Parallel()
	p := newPlanted(t)
	if err := os.Rename(p.installed.Dir, filepath.Join(filepath.Dir(p.installed.Dir), "9.9.9")); err != nil {
		t.Fatal(err)
	}
	if path, err := p.installer.Folder().LookPath(reference(t, alias+":latest")); !errors.Is(err, installer.Reason("not-installed")) {
		t.Errorf("%s, %v; want not-installed", path, err)
	}
	list, err := p.installer.Folder().List()
	if err != nil || len(list) != 1 || !list[0].Foreign || list[0].Verify(t.Context()) == nil {
		t.Errorf("%+v, %v; want something foreign", list, err)
	}
}

// TestPreparedForAnother holds that what was installed for another machine is not
// taken for this one's.
func TestPreparedForAnother(t *testing.T) {
	t.Parallel()
	key, layout := trusttest.NewKey(t), newLayout(t)
	published := plugintest.Publish(t, layout, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	plugintest.Sign(t, layout, key, published.Index)
	dir, ref := t.TempDir(), reference(t, alias+":1.2.3")
	source := installer.WithSource(installer.FromLayout(layout.Name()))
	other := newInstaller(t, trusting(t, key), source, installer.WithFolder(dir), installer.WithPlatform("linux/s390x"))
	own := newInstaller(t, trusting(t, key), source, installer.WithFolder(dir))
	lock, err := own.Lock(t.Context(), installer.Lock{}, ref, installer.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, install := range map[string]func() (installer.Installed, error){
		"ensure": func() (installer.Installed, error) { return own.Ensure(t.Context(), ref, installer.InstallOptions{}) },
		"locked": func() (installer.Installed, error) { return own.InstallLocked(t.Context(), lock, ref) },
	} {
		if _, err := other.Install(t.Context(), ref, installer.InstallOptions{}); err != nil {
			t.Fatal(err)
		}
		installed, err := install()
		if want := artifact.HostPlatform().String(); err != nil || installed.Receipt.Platform != want {
			t.Errorf("%s: %s, %v; want %s", name, installed.Receipt.Platform, err, want)
		}
	}
}

// TestLinksInFolder plants symbolic links, as the owner of a folder can in which
// root installs: nothing outside is removed or written.
func TestLinksInFolder(t *testing.T) {
	t.Parallel()
	for _, link := range []string{
		".fleeting-plugin", ".fleeting-plugin/staging", ".fleeting-plugin/locks", "registry.test", "registry.test/team/plugin",
	} {
		t.Run(link, func(t *testing.T) {
			t.Parallel()
			p := newPlanted(t)
			dir, outside := p.installer.Folder().Dir(), t.TempDir()
			for _, name := range []string{"precious", "staging/precious", "locks/precious", "team/plugin/1.2.3"} {
				if err := os.MkdirAll(filepath.Join(outside, name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			at := filepath.Join(dir, filepath.FromSlash(link))
			if err := errors.Join(os.RemoveAll(at), os.MkdirAll(filepath.Dir(at), 0o700), os.Symlink(outside, at)); err != nil {
				t.Fatal(err)
			}
			before := tree(t, outside)
			_, err := p.installer.Install(t.Context(), p.ref, installer.InstallOptions{Reinstall: true})
			if !errors.Is(err, installer.Reason("symlink")) {
				t.Errorf("got %v; want symlink", err)
			}
			if _, err := p.installer.Folder().Uninstall(t.Context(), p.ref); err == nil {
				t.Error("something was uninstalled through the link")
			}
			if after := tree(t, outside); after != before {
				t.Errorf("outside: %s; was %s", after, before)
			}
		})
	}
}

// tree lists what is beneath a folder.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, strings.TrimPrefix(path, dir))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// TestLinkForVersion replaces a version's folder by a link: it goes, what it
// points at stays.
func TestLinkForVersion(t *testing.T) {
	t.Parallel()
	p := newPlanted(t)
	outside := filepath.Join(t.TempDir(), "1.2.3")
	if err := errors.Join(os.Rename(p.installed.Dir, outside), os.Symlink(outside, p.installed.Dir)); err != nil {
		t.Fatal(err)
	}
	before := tree(t, outside)
	again, err := p.installer.Install(t.Context(), p.ref, installer.InstallOptions{})
	if err != nil || !again.JustInstalled {
		t.Fatalf("%+v, %v; want it installed", again, err)
	}
	if info, err := os.Lstat(again.Dir); err != nil || !info.IsDir() || tree(t, outside) != before {
		t.Errorf("%v, %v", info, err)
	}
}

// TestSpellingsOfHosts holds that another spelling of a registry's name does not
// escape its rule into a laxer one.
func TestSpellingsOfHosts(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	signers := []installer.Signer{signerOf(t, key)}
	policy := policyOf(t,
		installer.Rule{Scope: "**", UnsafeUnsigned: true},
		installer.Rule{Scope: "Registry.example.com/team/**", Signers: signers},
		installer.Rule{Scope: "docker.io/team/*", Signers: signers},
		installer.Rule{Scope: "[2001:DB8::1]:5000/team/*", Signers: signers},
		installer.Rule{Scope: "ports.example.com:5000/a", Signers: signers},
		installer.Rule{Scope: "wide.example.com/**", UnsafeUnsigned: true},
		installer.Rule{Scope: "wide.example.com/*/plugin", Signers: signers},
	)
	for text, want := range map[string]bool{
		"registry.example.com/team/plugin":           true,
		"REGISTRY.example.com/team/plugin":           true,
		"registry.example.com:443/team/plugin":       true,
		"registry.example.com/teams/plugin":          false,
		"registry.example.com/team":                  false,
		"registry.example.com:5000/team/plugin":      false,
		"docker.io/team/plugin":                      true,
		"index.docker.io/team/plugin":                true,
		"registry-1.docker.io/team/plugin":           true,
		"[2001:db8:0:0::1]:5000/team/plugin":         true,
		"ports.example.com:5000/a":                   true,
		"ports.example.com:5000/ab":                  false,
		"ports.example.com:5001/a":                   false,
		"ports.example.com:5000/a/b":                 false,
		"wide.example.com/team/plugin":               true,
		"wide.example.com/team/sub/plugin":           false,
		"evil.test/registry.example.com/team/plugin": false,
		"registry.example.com.evil.test/team/plugin": false,
	} {
		rule, err := policy.RuleFor(reference(t, text))
		if err != nil || rule.Unsafe == want {
			t.Errorf("%s: rule %+v, %v; want a rule with signers: %v", text, rule, err, want)
		}
	}
}
