package installer_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// forge writes another content into an installed file and says so in the receipt,
// and, if signer is set, names another identity as who signed: what anyone can do
// who may write into the folder.
func forge(t *testing.T, installed installer.Installed, file, content, signer string) {
	t.Helper()
	path := filepath.Join(installed.Dir, "fleeting-plugin.receipt.json")
	receipt := readFile(t, path)
	if file != "" {
		name := filepath.Join(installed.Dir, file)
		before := readFile(t, name)
		if len(content) != len(before) {
			t.Fatalf("the forged content has another size than %q", before)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		receipt = strings.ReplaceAll(receipt, digest.FromString(before).String(), digest.FromString(content).String())
	}
	if signer != "" {
		var r map[string]any
		if err := json.Unmarshal([]byte(receipt), &r); err != nil {
			t.Fatal(err)
		}
		evidence := r["verification"].(map[string]any)["evidence"].([]any)[0].(map[string]any) //nolint:errcheck // a receipt of ours
		evidence["issuer"], evidence["identity"] = "https://issuer.test", signer
		changed, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		receipt = string(changed)
	}
	if err := os.WriteFile(path, []byte(receipt), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range installed.Receipt.Files {
		mode := os.FileMode(0o644)
		if f.Mode == "0755" {
			mode = 0o755
		}
		if err := os.Chmod(filepath.Join(installed.Dir, f.Name), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// published are ways to publish a signed plugin, and the files it has.
func publishedForms() map[string]func(tb testing.TB, to plugintest.Target, key *trusttest.Key) (executable, companion string) {
	return map[string]func(testing.TB, plugintest.Target, *trusttest.Key) (string, string){
		"announced by its index": func(tb testing.TB, to plugintest.Target, key *trusttest.Key) (string, string) {
			tb.Helper()
			p := plugintest.Publish(tb, to, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
			plugintest.Sign(tb, to, key, p.Index)
			return "ELF " + artifact.HostPlatform().String(), ""
		},
		"with a companion": func(tb testing.TB, to plugintest.Target, key *trusttest.Key) (string, string) {
			tb.Helper()
			p := plugintest.Publish(tb, to, plugintest.Plugin{
				Version: "1.2.3", Body: "ELF",
				Entries: func(_ string, in []plugintest.Entry) []plugintest.Entry {
					return append(in, plugintest.Entry{Name: "plugin/helper", Body: "genuine"})
				},
			}, "1.2.3")
			plugintest.Sign(tb, to, key, p.Index)
			return "ELF " + artifact.HostPlatform().String(), "helper"
		},
		"an image": func(tb testing.TB, to plugintest.Target, key *trusttest.Key) (string, string) {
			tb.Helper()
			plugintest.Sign(tb, to, key, imageOf(tb, to, "ELF", func(c *ocispec.Image, _ *ocispec.Manifest) {
				c.Config.Labels = map[string]string{ocispec.AnnotationVersion: "1.2.3"}
			}, "1.2.3"))
			return "ELF", ""
		},
		"an image whose plugin is not in its last layer": func(tb testing.TB, to plugintest.Target, key *trusttest.Key) (string, string) {
			tb.Helper()
			plugintest.Sign(tb, to, key, deepImage(tb, to, "1.2.3"))
			return "ELF", ""
		},
		"a raw file": func(tb testing.TB, to plugintest.Target, key *trusttest.Key) (string, string) {
			tb.Helper()
			plugintest.Sign(tb, to, key, rawFileOf(tb, to, "ELF", map[string]string{ocispec.AnnotationVersion: "1.2.3"}, "1.2.3"))
			return "ELF", ""
		},
		"signed for one platform only": func(tb testing.TB, to plugintest.Target, key *trusttest.Key) (string, string) {
			tb.Helper()
			p := plugintest.Publish(tb, to, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
			plugintest.Sign(tb, to, key, p.Manifests[artifact.HostPlatform().String()])
			return "ELF " + artifact.HostPlatform().String(), ""
		},
	}
}

// deepImage has the plugin in the first of its three layers.
func deepImage(tb testing.TB, to plugintest.Target, tag string) ocispec.Descriptor {
	tb.Helper()
	var layers []ocispec.Descriptor
	for _, entry := range []plugintest.Entry{{Name: "app/plugin", Body: "ELF"}, {Name: "etc/passwd", Body: "root"}, {Name: "etc/motd", Body: "hello"}} {
		layers = append(layers, plugintest.PushBlob(tb, to, ocispec.MediaTypeImageLayerGzip, plugintest.Gzip(tb, plugintest.Tar(tb, []plugintest.Entry{entry}))))
	}
	config := hostConfig("/app/plugin")
	config.Config.Labels = map[string]string{ocispec.AnnotationVersion: tag}
	return image{config: config, layers: layers}.push(tb, to, tag)
}

// TestForgedInstallation: files and receipt that were changed together are put
// right by the next installation, which says who signed by what it verified, not
// by the receipt; and a genuine installation stays as it is.
func TestForgedInstallation(t *testing.T) {
	t.Parallel()
	const everybody = "everybody"
	for name, publish := range publishedForms() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, layout := trusttest.NewKey(t), newLayout(t)
			executable, companion := publish(t, layout, key)
			var log bytes.Buffer
			i := newInstaller(t, trusting(t, key), installer.WithSource(installer.FromLayout(layout.Name())),
				installer.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			ref := reference(t, alias+":1")
			install := func() installer.Installed {
				t.Helper()
				installed, err := i.Install(t.Context(), ref, installer.InstallOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got := readFile(t, installed.Path); got != executable {
					t.Errorf("the executable is %q", got)
				}
				if signers := installed.Receipt.Verification.Signers(); len(signers) != 1 || signers[0] != "key "+key.ID(t) {
					t.Errorf("signed by %v", signers)
				}
				if err := installed.Verify(t.Context()); err != nil {
					t.Error(err)
				}
				if content := readFile(t, filepath.Join(installed.Dir, "fleeting-plugin.receipt.json")); strings.Contains(content, everybody) {
					t.Errorf("the receipt on disk names the forged signer: %s", content)
				}
				return installed
			}
			first := install()
			if again := install(); again.JustInstalled || again.Dir != first.Dir {
				t.Error("a genuine installation was replaced")
			}
			log.Reset()
			forge(t, first, filepath.Base(first.Path), strings.ToLower(executable), everybody)
			if again := install(); !again.JustInstalled {
				t.Error("a forged executable was called installed")
			}
			if !strings.Contains(log.String(), "changed since it was installed") {
				t.Errorf("no warning: %q", log.String())
			}
			forge(t, first, "", "", everybody)
			install()
			if companion != "" {
				forge(t, first, companion, "malware", "")
				if install(); readFile(t, filepath.Join(first.Dir, companion)) != "genuine" {
					t.Error("a forged companion stays")
				}
			}
			if again := install(); again.JustInstalled {
				t.Error("it is installed each time")
			}
		})
	}
}

// TestForgedUnderLock: what a lock names is found to be forged, and a lock is not
// written by what a forged receipt says.
func TestForgedUnderLock(t *testing.T) {
	t.Parallel()
	for name, publish := range publishedForms() {
		if name == "signed for one platform only" {
			continue // which a lock does not take
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, layout := trusttest.NewKey(t), newLayout(t)
			executable, _ := publish(t, layout, key)
			i := newInstaller(t, trusting(t, key), installer.WithSource(installer.FromLayout(layout.Name())))
			ref := reference(t, alias+":1")
			installed, err := i.Install(t.Context(), ref, installer.InstallOptions{})
			if err != nil {
				t.Fatal(err)
			}
			forge(t, installed, filepath.Base(installed.Path), strings.ToLower(executable), "")
			lock, err := i.Lock(t.Context(), installer.Lock{}, ref, installer.LockOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range lock.Plugins()[0].Platforms {
				if p.Executable == digest.FromString(strings.ToLower(executable)) {
					t.Errorf("the lock has the forged executable for %s", p.Platform)
				}
			}
			if _, err := i.Install(t.Context(), ref, installer.InstallOptions{}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				locked, err := i.InstallLocked(t.Context(), lock, ref)
				if err != nil || locked.JustInstalled || readFile(t, locked.Path) != executable {
					t.Errorf("%+v, %v; want what is there", locked, err)
				}
			}
			forge(t, installed, "", "", "everybody")
			locked, err := i.InstallLocked(t.Context(), lock, ref)
			if err != nil || len(locked.Receipt.Verification.Signers()) != 1 || locked.Receipt.Verification.Signers()[0] != "key "+key.ID(t) {
				t.Errorf("signed by %v, %v", locked.Receipt.Verification.Signers(), err)
			}
		})
	}
}
