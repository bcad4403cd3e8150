package packager_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	runner "gitlab.com/gitlab-org/fleeting/fleeting-artifact/pkg/installer"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// TestRunnerInstallsWhatPushMade runs the installer of the runner project, which
// takes no ports, against what was pushed.
func TestRunnerInstallsWhatPushMade(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	host := portless(t, "10.1.1.1", reg)
	dir := sampleplugin.Dist(t, "1.2.3", "linux/amd64", "linux/arm64", "windows/amd64")
	for _, platform := range []string{"linux/amd64", "linux/arm64", "windows/amd64"} {
		sampleplugin.Write(t, filepath.Join(dir, platform, "LICENSE"), []byte("companion\n"), 0o600)
	}
	layout, packed := pack(t, "1.2.3", scan(t, dir))
	pushed, err := packager.Push(t.Context(), layout, repository(t, reg.Host+"/group/demo"), packager.PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pushed.Digest != packed.Digest {
		t.Errorf("pushed %s, packed %s", pushed.Digest, packed.Digest)
	}
	for _, constraint := range []string{"1.2.3", "1.2", "1", "latest"} {
		plugins := t.TempDir()
		ref := host + "/group/demo:" + constraint
		if err := runner.Install(t.Context(), ref, runner.WithDirectory(plugins)); err != nil {
			t.Fatalf("%s: %v", ref, err)
		}
		path, err := runner.LookPath(ref, plugins)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(sampleplugin.Build(t, runtime.GOOS+"/"+runtime.GOARCH, "1.2.3"))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s: another executable was installed", ref)
		}
		info, err := os.Stat(path)
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o755 {
			t.Errorf("%s: mode %v, %v", ref, info.Mode(), err)
		}
		companion, err := os.ReadFile(filepath.Join(filepath.Dir(path), "LICENSE"))
		if err != nil || string(companion) != "companion\n" {
			t.Errorf("%s: companion: %q, %v", ref, companion, err)
		}
	}
}

// TestPushAttachesSBOMs is INTEROP 30 for publishers: documents hang off the
// index and off each platform's manifest.
func TestPushAttachesSBOMs(t *testing.T) {
	t.Parallel()
	layout, packed := pack(t, "1.0.0", scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64", "linux/arm64")))
	for name, reg := range map[string]*registrytest.Registry{
		"fallback tags": registrytest.New(t), "referrers API": registrytest.NewReferrers(t),
	} {
		repo := repository(t, reg.Host+"/demo")
		pushed, err := packager.Push(t.Context(), layout, repo, packager.PushOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		subjects := []string{packed.Digest.String()}
		for _, p := range packed.Platforms {
			subjects = append(subjects, p.Digest.String())
		}
		if (name == "fallback tags") != (len(pushed.Warnings) == 1) {
			t.Errorf("%s: warnings %v", name, pushed.Warnings)
		}
		for _, subject := range subjects {
			desc, err := repo.Resolve(t.Context(), subject)
			if err != nil {
				t.Fatal(err)
			}
			referrers, err := repo.Referrers(t.Context(), desc)
			if err != nil {
				t.Fatal(err)
			}
			kinds := map[string]int{}
			for _, r := range referrers {
				content, err := repo.FetchAll(t.Context(), r, artifact.ManifestLimit)
				if err != nil {
					t.Fatal(err)
				}
				m, err := artifact.DecodeManifest(r.MediaType, content)
				if err != nil {
					t.Fatal(err)
				}
				kinds[m.Layers[0].MediaType]++
			}
			want := map[string]int{artifact.MediaTypeSPDX: 1, artifact.MediaTypeCycloneDX: 1}
			if diff := cmp.Diff(want, kinds); diff != "" {
				t.Errorf("%s: referrers of %s (-want +got):\n%s", name, subject, diff)
			}
		}
	}
}

// TestTransfersSayHowFarTheyAre: what may take long tells of every part of it, from
// its beginning to its end.
func TestTransfersSayHowFarTheyAre(t *testing.T) {
	t.Parallel()
	host := registrytest.New(t).Host
	scanned := scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64", "linux/arm64"))
	layout := filepath.Join(t.TempDir(), "layout")
	packAll := func(report func(packager.Event)) error {
		_, err := packager.Pack(t.Context(), scanned, version(t, "1.0.0"), layout, packager.PackOptions{Report: report})
		return err
	}
	push := func(report func(packager.Event)) error {
		_, err := packager.Push(t.Context(), layout, repository(t, host+"/pushed"), packager.PushOptions{Report: report})
		return err
	}
	release := func(report func(packager.Event)) error {
		opts := packager.ReleaseOptions{}
		opts.Report = report
		_, err := packager.Release(t.Context(), scanned, version(t, "1.0.0"), repository(t, host+"/released"), opts)
		return err
	}
	inspect := func(report func(packager.Event)) error {
		_, err := packager.Inspect(t.Context(), repository(t, host+"/pushed"), "1.0.0", packager.InspectOptions{Report: report})
		return err
	}
	for _, step := range []struct {
		name  string
		do    func(report func(packager.Event)) error
		kinds []packager.EventKind
	}{
		{"pack", packAll, []packager.EventKind{packager.EventPacking}},
		{"push", push, []packager.EventKind{packager.EventUploading}},
		{"release", release, []packager.EventKind{packager.EventPacking, packager.EventUploading}},
		{"inspect", inspect, []packager.EventKind{packager.EventReading}},
	} {
		told := map[string][]packager.Event{}
		if err := step.do(func(e packager.Event) {
			key := string(e.Kind) + " " + e.Subject
			told[key] = append(told[key], e)
		}); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		for _, kind := range step.kinds {
			for _, platform := range []string{"linux/amd64", "linux/arm64"} {
				all := told[string(kind)+" "+platform]
				done := func(a, b packager.Event) int { return int(a.Done - b.Done) }
				if len(all) < 3 || all[0].Done != 0 || all[len(all)-1].Done != all[0].Size || !slices.IsSortedFunc(all, done) {
					t.Errorf("%s: %s %s: %v", step.name, kind, platform, all)
				}
			}
		}
	}
}

func TestPushAgainSendsNothing(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	layout, _ := pack(t, "1.0.0", scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64")))
	repo := repository(t, reg.Host+"/demo")
	var begun []string
	first, err := packager.Push(t.Context(), layout, repo, packager.PushOptions{Report: func(e packager.Event) {
		if e.Kind == packager.EventUploading && e.Done == 0 {
			begun = append(begun, e.Subject)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	// The empty config of what hangs off it is one blob, however often it is named.
	if first.Uploaded.Blobs == 0 || first.Present.Blobs != 0 {
		t.Errorf("first push: %+v", first)
	}
	if diff := cmp.Diff([]string{"linux/amd64"}, begun); diff != "" {
		t.Errorf("uploads of layers that were told of (-want +got):\n%s", diff)
	}
	second, err := packager.Push(t.Context(), layout, repo, packager.PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if second.Uploaded.Blobs != 0 || second.Present.Blobs != first.Uploaded.Blobs+first.Present.Blobs {
		t.Errorf("second push sent blobs: %+v", second)
	}
	for _, a := range second.Aliases {
		if a.Moved || a.Version.String() != "1.0.0" {
			t.Errorf("alias %+v", a)
		}
	}
}

// TestPublishedVersionDoesNotMove is INTEROP C11: the runner project's releaser
// overwrites a version without a word.
func TestPublishedVersionDoesNotMove(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	repo := repository(t, reg.Host+"/demo")
	one, _ := pack(t, "1.0.0", scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64")))
	other, changed := pack(t, "1.0.0", scan(t, sampleplugin.Dist(t, "1.0.0-other", "linux/amd64")))
	if _, err := packager.Push(t.Context(), one, repo, packager.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	before := tags(t, repo)
	reg.Gate.Forget()
	if _, err := packager.Push(t.Context(), other, repo, packager.PushOptions{}); !errors.Is(err, packager.ErrPublished) {
		t.Fatalf("error = %v, want ErrPublished", err)
	}
	for _, r := range reg.Gate.Requests() {
		if r.Method != "GET" && r.Method != "HEAD" {
			t.Errorf("refused, and yet %s %s", r.Method, r.Path)
		}
	}
	if diff := cmp.Diff(before, tags(t, repo)); diff != "" {
		t.Errorf("tags moved:\n%s", diff)
	}
	pushed, err := packager.Push(t.Context(), other, repo, packager.PushOptions{Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	if pushed.Replaced.String() != before["1.0.0"] {
		t.Errorf("replaced %s, want %s", pushed.Replaced, before["1.0.0"])
	}
	d := changed.Digest.String()
	if diff := cmp.Diff(map[string]string{"1.0.0": d, "1.0": d, "1": d, "latest": d}, tags(t, repo)); diff != "" {
		t.Errorf("tags after --replace (-want +got):\n%s", diff)
	}
}

func TestPushMountsFromTheSameRegistry(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	layout, _ := pack(t, "1.0.0", scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64", "linux/arm64")))
	if _, err := packager.Push(t.Context(), layout, repository(t, reg.Host+"/staging"), packager.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	repo := repository(t, reg.Host+"/live")
	pushed, err := packager.Push(t.Context(), layout, repo, packager.PushOptions{MountFrom: []string{"not/there", "staging"}})
	if err != nil {
		t.Fatal(err)
	}
	if pushed.Uploaded.Blobs != 0 {
		t.Errorf("uploaded %+v although everything could be mounted", pushed.Uploaded)
	}
	complete(t, repo, "mounted")
}
