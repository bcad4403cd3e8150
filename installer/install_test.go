package installer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	runner "gitlab.com/gitlab-org/fleeting/fleeting-artifact/pkg/installer"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// TestInstallSigned goes the whole way, for every place that a signature may be
// in and on every kind of registry, and the runner finds the result. INTEROP 29:
// https://github.com/inspektor-gadget/inspektor-gadget/issues/4998
func TestInstallSigned(t *testing.T) {
	t.Parallel()
	for kind, registry := range registries(t) {
		for name, put := range map[string]func(t *testing.T, to plugintest.Target, key *trusttest.Key, p plugintest.Published){
			"cosign 2 tag on the index": func(t *testing.T, to plugintest.Target, key *trusttest.Key, p plugintest.Published) {
				t.Helper()
				plugintest.Sign(t, to, key, p.Index)
			},
			"cosign 2 tag on the manifest": func(t *testing.T, to plugintest.Target, key *trusttest.Key, p plugintest.Published) {
				t.Helper()
				for _, manifest := range p.Manifests {
					plugintest.Sign(t, to, key, manifest)
				}
			},
			"bundle on the index": func(t *testing.T, to plugintest.Target, key *trusttest.Key, p plugintest.Published) {
				t.Helper()
				plugintest.Refer(t, to, p.Index, key.SignBundle(t, p.Index.Digest))
			},
			"bundle on the manifest": func(t *testing.T, to plugintest.Target, key *trusttest.Key, p plugintest.Published) {
				t.Helper()
				for _, manifest := range p.Manifests {
					plugintest.Refer(t, to, manifest, key.SignBundle(t, manifest.Digest))
				}
			},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				repoName := "team/" + strings.ReplaceAll(name, " ", "-")
				repo := repository(t, registry.Host, repoName)
				key := trusttest.NewKey(t)
				p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3", "1.2", "1", "latest")
				put(t, repo, key, p)
				i := newInstaller(t, trusting(t, key))
				installed, err := i.Install(t.Context(), reference(t, registry.Host+"/"+repoName+":1"), installer.InstallOptions{As: alias})
				if err != nil {
					t.Fatal(err)
				}
				if got := readFile(t, installed.Path); got != "ELF "+i.Platform() {
					t.Errorf("installed %q", got)
				}
				found, err := runner.LookPath(alias+":1.2", i.Folder().Dir())
				if err != nil || found != installed.Path {
					t.Errorf("the runner finds %q, %v; want %q", found, err, installed.Path)
				}
				if got := installed.Receipt.Verification.Evidence[0].KeyID; got != key.ID(t) {
					t.Errorf("receipt names key %s, want %s", got, key.ID(t))
				}
			})
		}
	}
}

// TestRefused holds that what a policy does not allow leaves the folder as it was.
// INTEROP C2d, 23: https://github.com/falcosecurity/falco-operator/issues/245
func TestRefused(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	key, other := trusttest.NewKey(t), trusttest.NewKey(t)
	for name, test := range map[string]struct {
		prepare func(t *testing.T, to plugintest.Target, p plugintest.Published)
		policy  installer.Policy
		want    []error
	}{
		"zero policy": {
			prepare: func(t *testing.T, to plugintest.Target, p plugintest.Published) {
				t.Helper()
				plugintest.Sign(t, to, key, p.Index)
			},
			want: []error{installer.ErrRefused, installer.Reason("no-rule")},
		},
		"unsigned": {
			prepare: func(*testing.T, plugintest.Target, plugintest.Published) {},
			policy:  trusting(t, key), want: []error{installer.ErrRefused, installer.Reason("unsigned")},
		},
		"wrong key": {
			prepare: func(t *testing.T, to plugintest.Target, p plugintest.Published) {
				t.Helper()
				plugintest.Sign(t, to, other, p.Index)
			},
			policy: trusting(t, key), want: []error{installer.ErrRefused},
		},
		"signature of another artifact": {
			prepare: func(t *testing.T, to plugintest.Target, p plugintest.Published) {
				t.Helper()
				another := plugintest.Publish(t, to, plugintest.Plugin{Version: "9.9.9"})
				plugintest.PutLegacy(t, to, plugintest.SignatureTag(p.Index.Digest), key.Sign(t, another.Index.Digest))
			},
			policy: trusting(t, key), want: []error{installer.ErrRefused},
		},
		"bundle of another artifact": {
			prepare: func(t *testing.T, to plugintest.Target, p plugintest.Published) {
				t.Helper()
				another := plugintest.Publish(t, to, plugintest.Plugin{Version: "9.9.9"})
				plugintest.Refer(t, to, p.Index, key.SignBundle(t, another.Index.Digest))
			},
			policy: trusting(t, key), want: []error{installer.ErrRefused},
		},
		"only another platform signed": {
			prepare: func(t *testing.T, to plugintest.Target, p plugintest.Published) {
				t.Helper()
				plugintest.Sign(t, to, key, p.Manifests["linux/s390x"])
			},
			policy: trusting(t, key), want: []error{installer.ErrRefused, installer.Reason("unsigned")},
		},
		"attestation in place of a signature": {
			prepare: func(t *testing.T, to plugintest.Target, p plugintest.Published) {
				t.Helper()
				plugintest.Refer(t, to, p.Index, key.AttestBundle(t, p.Index.Digest, trusttest.PredicateSLSA, `{}`))
				plugintest.PutLegacy(t, to, plugintest.AttestationTag(p.Index.Digest), key.Attest(t, p.Index.Digest, trusttest.PredicateSLSA, `{}`))
			},
			policy: trusting(t, key), want: []error{installer.ErrRefused},
		},
		"one key counts once": {
			prepare: func(t *testing.T, to plugintest.Target, p plugintest.Published) {
				t.Helper()
				plugintest.Sign(t, to, key, p.Index)
				plugintest.Sign(t, to, key, p.Manifests[newInstaller(t, installer.Policy{}).Platform()])
				plugintest.Refer(t, to, p.Index, key.SignBundle(t, p.Index.Digest))
			},
			policy: policyOf(t, installer.Rule{Scope: "**", Signers: []installer.Signer{signerOf(t, key), signerOf(t, other)}, Threshold: 2}),
			want:   []error{installer.ErrRefused},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repoName := "team/" + strings.ReplaceAll(name, " ", "-")
			repo := repository(t, registry.Host, repoName)
			p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
			test.prepare(t, repo, p)
			i := newInstaller(t, test.policy)
			_, err := i.Install(t.Context(), reference(t, registry.Host+"/"+repoName+":1.2.3"), installer.InstallOptions{As: alias})
			for _, want := range test.want {
				if !errors.Is(err, want) {
					t.Errorf("got %v; want %v", err, want)
				}
			}
			mustBeEmpty(t, i.Folder().Dir())
		})
	}
}

// TestThreshold holds that two different keys make two.
func TestThreshold(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	repo := repository(t, registry.Host, "team/plugin")
	a, b := trusttest.NewKey(t), trusttest.NewKey(t)
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	plugintest.Sign(t, repo, a, p.Index)
	plugintest.Refer(t, repo, p.Index, b.SignBundle(t, p.Index.Digest))
	i := newInstaller(t, policyOf(t, installer.Rule{Scope: "**", Signers: []installer.Signer{signerOf(t, a), signerOf(t, b)}, Threshold: 2}))
	installed, err := i.Install(t.Context(), reference(t, registry.Host+"/team/plugin:1.2.3"), installer.InstallOptions{As: alias})
	if err != nil {
		t.Fatal(err)
	}
	if signers := installed.Receipt.Verification.Signers(); len(signers) != 2 {
		t.Errorf("signers %v", signers)
	}
}

// TestAltered changes what lies in the registry after it was signed.
// INTEROP C1: the runner's installer never checks the digest of the layer.
func TestAltered(t *testing.T) {
	t.Parallel()
	evil := plugintest.Gzip(t, plugintest.Tar(t, []plugintest.Entry{{Name: "plugin/" + program(), Body: "EVIL"}}))
	for name, alter := range map[string]func([]byte) []byte{
		"one flipped byte": func(b []byte) []byte {
			b = bytes.Clone(b)
			b[len(b)/2] ^= 1
			return b
		},
		"C1 a shorter plugin in its place":    func([]byte) []byte { return evil },
		"C1 a shorter plugin, padded to size": func(b []byte) []byte { return append(bytes.Clone(evil), make([]byte, max(0, len(b)-len(evil)))...) },
		"truncated":                           func(b []byte) []byte { return b[:len(b)-1] },
		"empty":                               func([]byte) []byte { return nil },
		"data behind its end":                 func(b []byte) []byte { return append(bytes.Clone(b), "evil"...) },
		"the same content, compressed again":  func(b []byte) []byte { return append(bytes.Clone(b), plugintest.Gzip(t, nil)...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := registrytest.New(t)
			repo := repository(t, registry.Host, "team/plugin")
			key := trusttest.NewKey(t)
			p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: strings.Repeat("ELF of some length ", 100)}, "1.2.3")
			plugintest.Sign(t, repo, key, p.Index)
			i := newInstaller(t, trusting(t, key))
			registry.RewriteBlob(t, p.Layers[i.Platform()].Digest, alter)
			_, err := i.Install(t.Context(), reference(t, registry.Host+"/team/plugin:1.2.3"), installer.InstallOptions{As: alias})
			if err == nil {
				t.Fatal("installed")
			}
			// A registry that announces another length is caught before the digest is.
			if !errors.Is(err, installer.Reason("mismatch")) && !errors.Is(err, installer.ErrAnswer) {
				t.Errorf("got %v; want mismatch", err)
			}
			mustBeEmpty(t, i.Folder().Dir())
		})
	}
}

// TestChangedAnnotation moves the tag to the same artifact with one more annotation.
func TestChangedAnnotation(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	repo := repository(t, registry.Host, "team/plugin")
	key := trusttest.NewKey(t)
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	plugintest.Sign(t, repo, key, p.Index)
	content, err := repo.FetchAll(t.Context(), p.Index, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var index map[string]any
	if err := json.Unmarshal(content, &index); err != nil {
		t.Fatal(err)
	}
	index["annotations"] = map[string]string{"org.opencontainers.image.title": "changed"}
	plugintest.PushJSON(t, repo, p.Index.MediaType, index, "1.2.3")
	i := newInstaller(t, trusting(t, key))
	_, err = i.Install(t.Context(), reference(t, registry.Host+"/team/plugin:1.2.3"), installer.InstallOptions{As: alias})
	if !errors.Is(err, installer.Reason("unsigned")) {
		t.Errorf("got %v; want unsigned", err)
	}
	mustBeEmpty(t, i.Folder().Dir())
}

// TestReceipt holds what is written beside the plugin, and that reading it again
// notices every change.
func TestReceipt(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	repo := repository(t, registry.Host, "team/plugin")
	key := trusttest.NewKey(t)
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: "ELF", Entries: func(_ string, in []plugintest.Entry) []plugintest.Entry {
		return append(in, plugintest.Entry{Name: "plugin/lib/data", Body: "data"})
	}}, "1.2.3")
	plugintest.Sign(t, repo, key, p.Index)
	i := newInstaller(t, trusting(t, key))
	ref := reference(t, registry.Host+"/team/plugin:1.2.3")
	install := func() installer.Installed {
		installed, err := i.Install(t.Context(), ref, installer.InstallOptions{As: alias, Reinstall: true})
		if err != nil {
			t.Fatal(err)
		}
		return installed
	}
	installed := install()
	r := installed.Receipt
	got := []string{r.Name, r.Reference.String(), r.Version.String(), r.Tag, r.Platform, r.Index.String(), r.Manifest.String(), r.Layer.String()}
	want := []string{
		alias, ref.String(), "1.2.3", "1.2.3", i.Platform(), p.Index.Digest.String(),
		p.Manifests[i.Platform()].Digest.String(), p.Layers[i.Platform()].Digest.String(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("receipt (-want +got):\n%s", diff)
	}
	if err := installed.Verify(t.Context()); err != nil {
		t.Errorf("right after installing: %v", err)
	}
	for name, change := range map[string]func() error{
		"a changed byte": func() error { return os.WriteFile(installed.Path, []byte("EVL "+i.Platform()), 0o755) },
		"a missing file": func() error { return os.Remove(filepath.Join(installed.Dir, "lib/data")) },
		"a new file":     func() error { return os.WriteFile(filepath.Join(installed.Dir, "lib/new"), nil, 0o644) },
		"another mode":   func() error { return os.Chmod(installed.Path, 0o4755&0o777|0o022) },
		"a link in its place": func() error {
			return errors.Join(os.Remove(installed.Path), os.Symlink("/bin/true", installed.Path))
		},
	} {
		if name == "another mode" && runtime.GOOS == "windows" {
			continue // has none
		}
		install()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if err := installed.Verify(t.Context()); !errors.Is(err, installer.Reason("changed")) {
			t.Errorf("%s: got %v; want changed", name, err)
		}
	}
}

// TestInstallTwice holds that the second time downloads no layer, and that
// Ensure then asks nobody at all. INTEROP 21:
// https://github.com/falcosecurity/falcoctl/pull/870
func TestInstallTwice(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	repo := repository(t, registry.Host, "team/plugin")
	key := trusttest.NewKey(t)
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	plugintest.Sign(t, repo, key, p.Index)
	i := newInstaller(t, trusting(t, key))
	ref := reference(t, registry.Host+"/team/plugin:1")
	opts := installer.InstallOptions{As: alias}
	first, err := i.Ensure(t.Context(), ref, opts)
	if err != nil || !first.JustInstalled {
		t.Fatalf("%+v, %v", first, err)
	}
	registry.Gate.Forget()
	second, err := i.Install(t.Context(), ref, opts)
	if err != nil || second.JustInstalled {
		t.Fatalf("%+v, %v", second, err)
	}
	for _, request := range registry.Gate.Requests() {
		if strings.Contains(request.Path, p.Layers[i.Platform()].Digest.String()) {
			t.Errorf("the layer was asked for again: %v", request)
		}
	}
	registry.Gate.Forget()
	third, err := i.Ensure(t.Context(), ref, opts)
	if err != nil || third.JustInstalled || third.Path != first.Path {
		t.Fatalf("%+v, %v", third, err)
	}
	if requests := registry.Gate.Requests(); len(requests) > 0 {
		t.Errorf("Ensure asked: %v", requests)
	}
}

// TestSameDemandsTwoWays: a rule of a policy and a flag that ask for the same
// signature are one decision, and installing by them in turn writes nothing.
func TestSameDemandsTwoWays(t *testing.T) {
	t.Parallel()
	registry, key := registrytest.New(t), trusttest.NewKey(t)
	p := plugintest.Publish(t, repository(t, registry.Host, "team/plugin"), plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	plugintest.Sign(t, repository(t, registry.Host, "team/plugin"), key, p.Index)
	signer, err := installer.RequireKey(key.PublicPEM(t), installer.KeyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var before os.FileInfo
	for turn, scopes := range [][]string{{"**"}, {registry.Host + "/**", alias}, {"**"}} {
		var rules []installer.Rule
		for _, scope := range scopes {
			rules = append(rules, installer.Rule{Scope: scope, Signers: []installer.Signer{signer}})
		}
		policy, err := installer.NewPolicy(rules...)
		if err != nil {
			t.Fatal(err)
		}
		i := newInstaller(t, policy, installer.WithFolder(dir))
		installed, err := i.Install(t.Context(), reference(t, registry.Host+"/team/plugin:1"), installer.InstallOptions{As: alias})
		if err != nil || installed.JustInstalled != (turn == 0) {
			t.Fatalf("turn %d: %+v, %v", turn, installed, err)
		}
		receipt, err := os.Stat(filepath.Join(installed.Dir, "fleeting-plugin.receipt.json"))
		if err != nil {
			t.Fatal(err)
		}
		if turn > 0 && (!os.SameFile(before, receipt) || !before.ModTime().Equal(receipt.ModTime())) {
			t.Errorf("turn %d: the receipt was written again", turn)
		}
		before = receipt
	}
}
