package installer_test

import (
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// locksite is a registry with one signed plugin, and an installer that trusts two keys.
type locksite struct {
	registry   *registrytest.Registry
	repo       *ociregistry.Repository
	key, other *trusttest.Key
	installer  *installer.Installer
	ref        installer.Reference
}

func newLocksite(t *testing.T) *locksite {
	t.Helper()
	s := &locksite{registry: registrytest.New(t), key: trusttest.NewKey(t), other: trusttest.NewKey(t)}
	s.repo = repository(t, s.registry.Host, "team/plugin")
	s.installer = newInstaller(t, s.policy(t))
	s.ref = reference(t, s.registry.Host+"/team/plugin:1")
	s.publish(t, "1.2.3", s.key, "ELF")
	return s
}

func (s *locksite) policy(t *testing.T) installer.Policy {
	t.Helper()
	return policyOf(t, installer.Rule{Scope: "**", Signers: []installer.Signer{signerOf(t, s.key), signerOf(t, s.other)}})
}

func (s *locksite) publish(t *testing.T, version string, key *trusttest.Key, body string) {
	t.Helper()
	p := plugintest.Publish(t, s.repo, plugintest.Plugin{Version: version, Body: body}, version)
	plugintest.Sign(t, s.repo, key, p.Index)
}

func (s *locksite) lock(t *testing.T, before installer.Lock, opts installer.ChangeOptions) (installer.Lock, error) {
	t.Helper()
	return s.installer.Lock(t.Context(), before, s.ref, installer.LockOptions{As: alias, ChangeOptions: opts})
}

// TestLock writes a lock, reads it again, and installs from it on another
// platform than it was written on. INTEROP 13:
// https://github.com/hashicorp/terraform/issues/27894
func TestLock(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	lock, err := s.lock(t, installer.Lock{}, installer.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range s.registry.Gate.Requests() {
		for _, p := range lock.Plugins()[0].Platforms {
			if strings.HasSuffix(request.Path, p.Layer.String()) && request.Method == http.MethodGet {
				t.Errorf("a lock needs no layer: %v", request)
			}
		}
	}
	for _, p := range lock.Plugins()[0].Platforms {
		if want := digest.FromString("ELF " + p.Platform); p.Executable != want {
			t.Errorf("%s: locked executable %q; want %s", p.Platform, p.Executable, want)
		}
	}
	content, err := lock.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := installer.ParseLock(content)
	if err != nil {
		t.Fatalf("%v:\n%s", err, content)
	}
	second, err := again.Encode()
	if diff := cmp.Diff(string(content), string(second)); err != nil || diff != "" {
		t.Errorf("%v (-first +second):\n%s", err, diff)
	}
	entry, err := again.Find(s.ref)
	if err != nil || len(entry.Platforms) != 3 || entry.Version.String() != "1.2.3" || len(entry.Signers) != 1 {
		t.Errorf("%+v, %v", entry, err)
	}
	other, err := installer.New(trusting(t, s.key), installer.WithFolder(t.TempDir()), installer.WithPlatform("windows/amd64"),
		installer.WithSource(retryingRegistries(t).Open))
	if err != nil {
		t.Fatal(err)
	}
	installed, err := other.InstallLocked(t.Context(), again, s.ref)
	if err != nil || installed.Receipt.Platform != "windows/amd64" || !strings.HasSuffix(installed.Path, "plugin.exe") {
		t.Errorf("%+v, %v", installed, err)
	}
}

// TestInstallLocked holds that a locked installation follows no tag, and asks
// nobody once it is there.
func TestInstallLocked(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	lock, err := s.lock(t, installer.Lock{}, installer.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.publish(t, "1.3.0", s.key, "newer")
	s.publish(t, "1.2.3", s.key, "moved")
	first, err := s.installer.InstallLocked(t.Context(), lock, s.ref)
	if err != nil || !first.JustInstalled || !strings.HasPrefix(readFile(t, first.Path), "ELF") {
		t.Fatalf("%+v, %v", first, err)
	}
	s.registry.Gate.Forget()
	second, err := s.installer.InstallLocked(t.Context(), lock, s.ref)
	if requests := s.registry.Gate.Requests(); err != nil || second.JustInstalled || len(requests) != 0 {
		t.Errorf("%v, %v; want nothing done, no request", err, requests)
	}
	if err := os.WriteFile(first.Path, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	third, err := s.installer.InstallLocked(t.Context(), lock, s.ref)
	if err != nil || !third.JustInstalled || !strings.HasPrefix(readFile(t, first.Path), "ELF") {
		t.Errorf("what was changed on disk was not repaired: %+v, %v", third, err)
	}
	if _, err := s.installer.InstallLocked(t.Context(), lock, reference(t, s.registry.Host+"/team/plugin:2")); !errors.Is(err, installer.Reason("not-locked")) {
		t.Errorf("got %v; want not-locked", err)
	}
}

// TestRelock holds what may change between two locks.
func TestRelock(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, s *locksite)
		opts   installer.ChangeOptions
		want   error
	}{
		"nothing": {func(*testing.T, *locksite) {}, installer.ChangeOptions{}, nil},
		"newer":   {func(t *testing.T, s *locksite) { t.Helper(); s.publish(t, "1.3.0", s.key, "x") }, installer.ChangeOptions{}, nil},
		"moved tag": {
			func(t *testing.T, s *locksite) { t.Helper(); s.publish(t, "1.2.3", s.key, "moved") },
			installer.ChangeOptions{AllowDowngrade: true, AcceptSignerChange: true},
			installer.Reason("moved"),
		},
		"another signer": {
			func(t *testing.T, s *locksite) { t.Helper(); s.publish(t, "1.3.0", s.other, "x") },
			installer.ChangeOptions{AllowDowngrade: true},
			installer.Reason("signer-changed"),
		},
		"another signer, accepted": {
			func(t *testing.T, s *locksite) { t.Helper(); s.publish(t, "1.3.0", s.other, "x") },
			installer.ChangeOptions{AcceptSignerChange: true},
			nil,
		},
		"older":          {withdraw, installer.ChangeOptions{AcceptSignerChange: true}, installer.Reason("downgrade")},
		"older, allowed": {withdraw, installer.ChangeOptions{AllowDowngrade: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLocksite(t)
			lock, err := s.lock(t, installer.Lock{}, installer.ChangeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			installed, err := s.installer.Install(t.Context(), s.ref, installer.InstallOptions{As: alias})
			if err != nil {
				t.Fatal(err)
			}
			test.change(t, s)
			if _, err := s.lock(t, lock, test.opts); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Errorf("lock: got %v; want %v", err, test.want)
			}
			if _, err := s.installer.Upgrade(t.Context(), installed, test.opts); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Errorf("upgrade: got %v; want %v", err, test.want)
			}
		})
	}
}

// withdraw publishes an older version and takes the newer away.
func withdraw(t *testing.T, s *locksite) {
	t.Helper()
	s.publish(t, "1.1.0", s.key, "older")
	desc, err := s.repo.Resolve(t.Context(), "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	s.registry.Withdraw(t, "team/plugin", desc.Digest)
}

// TestLockNeedsIndex holds that a signature on one platform locks no others.
func TestLockNeedsIndex(t *testing.T) {
	t.Parallel()
	registry, key := registrytest.New(t), trusttest.NewKey(t)
	repo := repository(t, registry.Host, "team/plugin")
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	i := newInstaller(t, trusting(t, key))
	plugintest.Sign(t, repo, key, p.Manifests[i.Platform()])
	_, err := i.Lock(t.Context(), installer.Lock{}, reference(t, registry.Host+"/team/plugin:1"), installer.LockOptions{As: alias})
	if !errors.Is(err, installer.ErrRefused) {
		t.Errorf("got %v; want ErrRefused", err)
	}
}

// TestVerifyLocked finds an executable that was changed together with its receipt.
func TestVerifyLocked(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	installed, err := s.installer.Install(t.Context(), s.ref, installer.InstallOptions{As: alias})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := s.lock(t, installer.Lock{}, installer.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	entry, err := lock.Find(s.ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := installed.VerifyLocked(t.Context(), entry); err != nil {
		t.Errorf("right after installing: %v", err)
	}
	registry := registrytest.New(t)
	forged := *s
	forged.registry, forged.repo = registry, repository(t, registry.Host, "team/plugin")
	forged.publish(t, "1.2.3", s.key, "FORGED")
	again, err := s.installer.Install(t.Context(), reference(t, registry.Host+"/team/plugin:1"), installer.InstallOptions{As: alias})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.VerifyLocked(t.Context(), entry); !errors.Is(err, installer.Reason("lock-differs")) {
		t.Errorf("got %v; want lock-differs", err)
	}
}

// TestLockNamesTheDifference: whatever a lock names is compared with what is
// installed and with what is published, and a message names what differs.
func TestLockNamesTheDifference(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	installed, err := s.installer.Install(t.Context(), s.ref, installer.InstallOptions{As: alias})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := s.lock(t, installer.Lock{}, installer.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const other = digest.Digest("sha256:9999999999999999999999999999999999999999999999999999999999999999")
	earlier, err := version.Parse("0.9.0")
	if err != nil {
		t.Fatal(err)
	}
	at := func(l *installer.Locked) *installer.LockedPlatform {
		i := slices.IndexFunc(l.Platforms, func(p installer.LockedPlatform) bool { return p.Platform == installed.Receipt.Platform })
		return &l.Platforms[i]
	}
	for name, c := range map[string]struct {
		alter       func(*installer.Locked)
		says        string
		disk, again error
	}{
		"digest":     {func(l *installer.Locked) { l.Index = other }, "the lock has index " + other.String(), installer.Reason("lock-differs"), installer.ErrNotFound},
		"manifest":   {func(l *installer.Locked) { at(l).Manifest = other }, "manifest ", installer.Reason("lock-differs"), installer.Reason("moved")},
		"layer":      {func(l *installer.Locked) { at(l).Layer = other }, "layer ", installer.Reason("lock-differs"), installer.Reason("moved")},
		"executable": {func(l *installer.Locked) { at(l).Executable = other }, "executable ", installer.Reason("lock-differs"), installer.Reason("moved")},
		"signer":     {func(l *installer.Locked) { l.Signers = []string{"key 9999"} }, "key 9999", installer.Reason("lock-differs"), installer.Reason("signer-changed")},
		"platform":   {func(l *installer.Locked) { at(l).Platform = "zos/s390x" }, "the lock has nothing for ", installer.Reason("lock-differs"), installer.Reason("no-platform")},
		"version":    {func(l *installer.Locked) { l.Version = earlier }, "the lock has version 0.9.0, installed", installer.Reason("lock-differs"), installer.Reason("moved")},
	} {
		t.Run(name, func(t *testing.T) {
			entry, err := lock.Find(s.ref)
			if err != nil {
				t.Fatal(err)
			}
			entry.Platforms = slices.Clone(entry.Platforms)
			c.alter(&entry)
			if err := installed.VerifyLocked(t.Context(), entry); !errors.Is(err, c.disk) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("on disk: %v; want %v, %q", err, c.disk, c.says)
			}
			_, err = s.installer.InstallLocked(t.Context(), lock.With(entry), s.ref)
			if !errors.Is(err, c.again) {
				t.Errorf("published: %v; want %v", err, c.again)
			}
			what, _, _ := strings.Cut(c.says, ", installed")
			if !strings.Contains(err.Error(), what) {
				t.Errorf("published: %v; want %q", err, what)
			}
			if errors.Is(err, installer.Reason("moved")) && strings.Count(err.Error(), other.String()) > 1 {
				t.Errorf("published: %v: two things have one name", err)
			}
		})
	}
}

// TestAlteredLockIsNotWrittenAnew: whoever alters digests in a lock, or a version
// beside its digest, is not helped by the next lock: it refuses and names what was
// altered, until somebody accepts that.
func TestAlteredLockIsNotWrittenAnew(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	lock, err := s.lock(t, installer.Lock{}, installer.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const other = digest.Digest("sha256:9999999999999999999999999999999999999999999999999999999999999999")
	earlier, err := version.Parse("0.9.0")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		alter func(*installer.Locked)
		what  string
		// known reports that the lock knows of another value.
		known bool
	}{
		"index":         {func(l *installer.Locked) { l.Index = other }, "index", true},
		"version":       {func(l *installer.Locked) { l.Version = earlier }, "version", true},
		"manifest":      {func(l *installer.Locked) { l.Platforms[0].Manifest = other }, "manifest of ", true},
		"layer":         {func(l *installer.Locked) { l.Platforms[1].Layer = other }, "layer of ", true},
		"executable":    {func(l *installer.Locked) { l.Platforms[2].Executable = other }, "executable of ", true},
		"platform gone": {func(l *installer.Locked) { l.Platforms = l.Platforms[:2] }, "platform", true},
		"another one":   {func(l *installer.Locked) { l.Platforms[0].Platform = "zos/s390x" }, "platform", true},
		"not known":     {func(l *installer.Locked) { l.Platforms[0].Executable = "" }, "executable of ", false},
		"another name":  {func(l *installer.Locked) { l.As = "registry.test/other" }, "as", false},
	} {
		t.Run(name, func(t *testing.T) {
			entry, err := lock.Find(s.ref)
			if err != nil {
				t.Fatal(err)
			}
			entry.Platforms = slices.Clone(entry.Platforms)
			c.alter(&entry)
			_, err = s.lock(t, lock.With(entry), installer.ChangeOptions{})
			if errors.Is(err, installer.Reason("moved")) != c.known || (err == nil) == c.known {
				t.Errorf("got %v; refused %v is right", err, c.known)
			}
			if c.known && !strings.Contains(err.Error(), c.what) {
				t.Errorf("%v does not name %q", err, c.what)
			}
			again, err := s.installer.Lock(t.Context(), lock.With(entry), s.ref, installer.LockOptions{As: alias, AcceptDigestChange: true})
			if err != nil {
				t.Fatalf("accepted: %v", err)
			}
			if diff := cmp.Diff(lock.Plugins(), again.Plugins(), cmp.Comparer(func(a, b installer.Locked) bool { return a.Changes(b) == nil })); diff != "" {
				t.Errorf("accepted: %s", diff)
			}
			changes := entry.Changes(again.Plugins()[0])
			if !slices.ContainsFunc(changes, func(c2 installer.Change) bool { return strings.HasPrefix(c2.What, c.what) && c2.Before != c2.After }) {
				t.Errorf("the changes do not name %s: %v", c.what, changes)
			}
		})
	}
}

func TestParseLockInvalid(t *testing.T) {
	t.Parallel()
	entry := "[[plugin]]\nreference = 'a.example/x:1'\nversion = '1.0.0'\nindex = '" + someDigest + "'\nsigners = []\n"
	platform := "[[plugin.platform]]\nplatform = 'linux/amd64'\nmanifest = '" + someDigest + "'\nlayer = '" + someDigest + "'\n"
	if _, err := installer.ParseLock([]byte("version = 1\n" + entry + platform)); err != nil {
		t.Fatalf("the base of the cases below: %v", err)
	}
	for name, text := range map[string]string{
		"empty": "", "another version": "version = 2", "not TOML": "[", "unknown key": "version = 1\nextra = 1",
		"no platform": "version = 1\n" + entry, "twice": "version = 1\n" + entry + platform + entry + platform,
		"platform twice": "version = 1\n" + entry + platform + platform,
		"bad digest":     "version = 1\n" + strings.Replace(entry, someDigest, "sha256:1", 1) + platform,
		"bad reference":  "version = 1\n" + strings.Replace(entry, "a.example/x:1", "A B", 1) + platform,
		"as a version":   "version = 1\n" + strings.Replace(entry, "version =", "as = 'b.example/x:1'\nversion =", 1) + platform,
		"as a port":      "version = 1\n" + strings.Replace(entry, "version =", "as = 'b.example:5000/x'\nversion =", 1) + platform,
		"another digest": "version = 1\n" + strings.Replace(entry, "x:1", "x@sha256:"+strings.Repeat("1", 64), 1) + platform,
		"bad version":    "version = 1\n" + strings.Replace(entry, "1.0.0", "1", 1) + platform,
	} {
		if _, err := installer.ParseLock([]byte(text)); !errors.Is(err, installer.Reason("lock")) {
			t.Errorf("%s: got %v; want lock", name, err)
		}
	}
}

func FuzzLock(f *testing.F) {
	f.Add("version = 1\n[[plugin]]\nreference = 'a.example/x:1'\nversion = '1.0.0'\nindex = '" + someDigest +
		"'\nsigners = []\n[[plugin.platform]]\nplatform = 'linux/amd64'\nmanifest = '" + someDigest + "'\nlayer = '" + someDigest + "'\n")
	f.Fuzz(func(t *testing.T, text string) {
		lock, err := installer.ParseLock([]byte(text))
		if err != nil {
			return
		}
		content, err := lock.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := installer.ParseLock(content)
		if err != nil || len(again.Plugins()) != len(lock.Plugins()) {
			t.Fatalf("%q → %q: %v", text, content, err)
		}
	})
}

// TestLifecycle upgrades, rolls back and prunes.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	folder := s.installer.Folder()
	installed, err := s.installer.Install(t.Context(), s.ref, installer.InstallOptions{As: alias})
	if err != nil {
		t.Fatal(err)
	}
	s.publish(t, "1.3.0", s.key, "newer")
	s.publish(t, "2.0.0", s.key, "newest")
	outdated, err := s.installer.Outdated(t.Context(), installed)
	if err != nil || !outdated.Upgradable || outdated.Wanted.String() != "1.3.0" || outdated.Latest.String() != "2.0.0" {
		t.Errorf("%+v, %v", outdated, err)
	}
	upgraded, err := s.installer.Upgrade(t.Context(), installed, installer.ChangeOptions{})
	if err != nil || !upgraded.JustInstalled || upgraded.Receipt.Version.String() != "1.3.0" {
		t.Fatalf("%+v, %v", upgraded, err)
	}
	outdated, err = s.installer.Outdated(t.Context(), upgraded)
	if err != nil || !outdated.IsHeldBack() || outdated.Upgradable {
		t.Errorf("outside the constraint: %+v, %v", outdated, err)
	}
	removed, left, err := folder.Rollback(t.Context(), reference(t, alias+":1"))
	if err != nil || removed.Path != upgraded.Path || left.Path != installed.Path {
		t.Errorf("removed %s, left %s, %v", removed.Path, left.Path, err)
	}
	if _, _, err := folder.Rollback(t.Context(), reference(t, alias+":1")); !errors.Is(err, installer.Reason("not-installed")) {
		t.Errorf("nothing older: got %v; want not-installed", err)
	}
	for _, version := range []string{"1.4.0", "1.5.0", "1.6.0"} {
		s.publish(t, version, s.key, version)
		if _, err := s.installer.Install(t.Context(), s.ref, installer.InstallOptions{As: alias}); err != nil {
			t.Fatal(err)
		}
	}
	opts := installer.PruneOptions{Keep: 1, Referenced: []installer.Reference{reference(t, alias+":1.4")}, DryRun: true}
	would, err := folder.Prune(t.Context(), opts)
	if err != nil || len(would) != 2 {
		t.Errorf("would remove %d, %v; want 2", len(would), err)
	}
	opts.DryRun = false
	if _, err := folder.Prune(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	list, err := folder.List()
	var versions []string
	for _, one := range list {
		versions = append(versions, one.Receipt.Version.String())
	}
	if want := []string{"1.4.0", "1.6.0"}; err != nil || !slices.Equal(versions, want) {
		t.Errorf("left %v, %v; want %v", versions, err, want)
	}
}

func TestParseRunnerConfig(t *testing.T) {
	t.Parallel()
	plugins, err := installer.ParseRunnerConfig([]byte(`
concurrent = 4
[[runners]]
  name = "a"
  [runners.docker]
    image = "x"
  [runners.autoscaler]
    plugin = "registry.example.com/team/plugin:1.2"
    capacity_per_instance = 1
[[runners]]
  name = "b"
  [runners.autoscaler]
    plugin = "aws:latest"
[[runners]]
  name = "c"
  [runners.autoscaler]
    plugin = "fleeting-plugin-aws"
[[runners]]
  name = "d"
  [runners.autoscaler]
    plugin = "/usr/local/bin/x"
[[runners]]
  name = "e"
  [runners.autoscaler]
    plugin = "registry.example.com/team/plugin:1.2"
[[runners]]
  name = "f"
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ref := range installer.References(plugins) {
		got = append(got, ref.String())
	}
	want := []string{"registry.example.com/team/plugin:1.2", "registry.gitlab.com/gitlab-org/fleeting/plugins/aws:latest"}
	if diff := cmp.Diff(want, got); diff != "" || len(plugins) != 5 || !plugins[2].Local || !plugins[3].Local {
		t.Errorf("%+v (-want +got):\n%s", plugins, diff)
	}
	for _, text := range []string{"[", "[[runners]]\n[runners.autoscaler]\nplugin = 'A B'", "runners = 1"} {
		if _, err := installer.ParseRunnerConfig([]byte(text)); !errors.Is(err, installer.Reason("runner-config")) && !errors.Is(err, installer.Reason("reference")) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if plugins, err := installer.ParseRunnerConfig([]byte("")); err != nil || len(plugins) != 0 {
		t.Errorf("%v, %v", plugins, err)
	}
}
