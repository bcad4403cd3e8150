package installer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// programOf returns size bytes of a real executable: this test's, again from its
// beginning where it is too short.
func programOf(tb testing.TB, size int) string {
	tb.Helper()
	content, err := os.ReadFile(os.Args[0])
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Repeat(string(content), size/len(content)+1)[:size]
}

// BenchmarkInstall is a verified installation of a 34 MB plugin beside that of the
// runner's installer, which verifies nothing. Both run in processes of their own,
// of the same program, against a registry in this one: cpu-ms is what the
// processes used, max-MB their largest resident set (on Linux). "nothing" is the same
// program doing nothing, to be subtracted.
func BenchmarkInstall(b *testing.B) {
	registry := registrytest.New(b)
	repo := repository(b, registry.Host, "team/plugin")
	key := trusttest.NewKey(b)
	p := plugintest.Publish(b, repo, plugintest.Plugin{
		Version: "1.2.3", Body: programOf(b, 34<<20), Platforms: []string{artifact.HostPlatform().String()},
	}, "1.2.3")
	plugintest.Sign(b, repo, key, p.Index)
	keyFile := filepath.Join(b.TempDir(), "cosign.pub")
	if err := os.WriteFile(keyFile, key.PublicPEM(b), 0o600); err != nil {
		b.Fatal(err)
	}
	for name, env := range map[string][]string{
		"ours":    {"INSTALLER_TEST_CHILD=" + registry.Host + "/team/plugin:1.2.3", "INSTALLER_TEST_KEY=" + keyFile},
		"runner":  {"INSTALLER_TEST_RUNNER=10.41.1.1/team/plugin:1.2.3", "INSTALLER_TEST_DIAL=10.41.1.1:80=" + registry.Host},
		"nothing": {"INSTALLER_TEST_NOTHING=1"},
	} {
		b.Run(name, func(b *testing.B) {
			var cpu time.Duration
			var largest int64
			peak := filepath.Join(b.TempDir(), "peak")
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^$")
				cmd.Env = append(append(os.Environ(), env...), "INSTALLER_TEST_FOLDER="+b.TempDir(), "INSTALLER_TEST_PEAK="+peak)
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				largest = max(largest, peakOf(b, peak))
			}
			b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(largest)/1e6, "max-MB")
		})
	}
}

// peakOf reads what a process wrote about its largest resident set.
func peakOf(tb testing.TB, file string) int64 {
	tb.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	kilobytes, err := strconv.ParseInt(string(content), 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return kilobytes << 10
}

// TestMemory holds that what an installation allocates does not grow with the
// plugin.
func TestMemory(t *testing.T) {
	const small, large = 4 << 20, 32 << 20
	key := trusttest.NewKey(t)
	allocated := map[int]uint64{}
	for _, size := range []int{small, large} {
		layout := newLayout(t)
		p := plugintest.Publish(t, layout, plugintest.Plugin{
			Version: "1.2.3", Body: programOf(t, size), Platforms: []string{artifact.HostPlatform().String()},
		}, "1.2.3")
		plugintest.Sign(t, layout, key, p.Index)
		i := newInstaller(t, trusting(t, key), installer.WithSource(installer.FromLayout(layout.Name())))
		ref := reference(t, alias)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := i.Install(t.Context(), ref, installer.InstallOptions{}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		allocated[size] = after.TotalAlloc - before.TotalAlloc
	}
	if grown := int64(allocated[large]) - int64(allocated[small]); grown > 2<<20 {
		t.Errorf("%d bytes more for a plugin that is %d bytes larger", grown, large-small)
	}
}
