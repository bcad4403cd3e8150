package packager_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting-artifact/pkg/releaser"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// benchPlatforms and benchSize are a large release: six executables of 30 MB.
var benchPlatforms = []string{"linux/amd64", "linux/arm64", "linux/386", "linux/armv7", "darwin/arm64", "freebsd/amd64"}

const benchSize = 30 << 20

// benchDist fills executables up to benchSize. What follows the end of an
// executable is ignored by its format; here it is machine code of this test,
// changed a little in each repetition, so that it compresses as code does.
func benchDist(b *testing.B) string {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	code, err := os.ReadFile(self)
	if err != nil {
		b.Fatal(err)
	}
	dir := sampleplugin.Dist(b, "1.0.0", benchPlatforms...)
	for i, p := range benchPlatforms {
		path := filepath.Join(dir, p, "plugin")
		content, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		for at := i * 7 << 20; len(content) < benchSize; at += 1 << 20 {
			content = append(content, scrambled(code, at%(len(code)-1<<20), len(content))...)
		}
		sampleplugin.Write(b, path, content[:benchSize], 0o755)
	}
	return dir
}

// scrambled returns a megabyte of code with other constants in it.
func scrambled(code []byte, at, seed int) []byte {
	part := append([]byte(nil), code[at:at+1<<20]...)
	sum := sha256.Sum256(binary.AppendUvarint(nil, uint64(seed)))
	for i := range 1 << 10 {
		part[i<<10+int(sum[i%32])] ^= sum[(i+1)%32]
	}
	return part
}

// measured runs f and reports CPU seconds and peak heap.
func measured(b *testing.B, f func()) (cpu time.Duration, peakMB float64) {
	b.Helper()
	runtime.GC()
	base := heapInUse()
	var peak atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			peak.Store(max(peak.Load(), heapInUse()-base))
		}
	}()
	start := processCPU(b)
	f()
	cpu = processCPU(b) - start
	close(stop)
	<-stopped
	peakMB = float64(peak.Load()) / 1e6
	b.ReportMetric(peakMB, "peak-MB")
	return cpu, peakMB
}

// What a release may cost: a part of the CPU time of the runner project's releaser,
// and memory in MB.
const (
	cpuLimit    = 0.35
	memoryLimit = 80
)

// heapInUse is the memory of the heap that holds or held objects, in bytes; it
// does not stop the world as runtime.ReadMemStats does.
func heapInUse() int64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(samples)
	var total int64
	for _, s := range samples {
		total += int64(s.Value.Uint64())
	}
	return total
}

// serveRegistry is the variable with which this test's executable, started
// again, runs a registry until its input ends.
const serveRegistry = "PACKAGER_TEST_REGISTRY"

// TestServeRegistry is that registry, not a test.
func TestServeRegistry(t *testing.T) {
	if os.Getenv(serveRegistry) == "" {
		return
	}
	fmt.Fprintln(os.Stdout, registrytest.New(t).Host)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// benchRegistry runs a registry in a process of its own, so that its work is
// counted for neither releaser, and returns its host.
func benchRegistry(b *testing.B) string {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), self, "-test.run", "^TestServeRegistry$")
	cmd.Env = append(os.Environ(), serveRegistry+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	host, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	return strings.TrimSpace(host)
}

// reportLayers reports the size of what was published.
func reportLayers(b *testing.B, host string) {
	b.Helper()
	found, err := packager.Inspect(b.Context(), repository(b, host+"/demo"), "1.0.0", packager.InspectOptions{})
	if err != nil {
		b.Fatal(err)
	}
	var total int64
	for _, p := range found.Platforms {
		total += p.Size
	}
	b.ReportMetric(float64(total)/1e6, "layers-MB")
}

// BenchmarkRelease compares a release with that of the runner project's
// releaser, and with releasing the same again, to a registry on loopback.
func BenchmarkRelease(b *testing.B) {
	dir := benchDist(b)
	b.Setenv("TMPDIR", b.TempDir())
	var theirs time.Duration
	b.Run("fleeting-artifact", func(b *testing.B) {
		b.SetBytes(int64(len(benchPlatforms)) * benchSize)
		var total time.Duration
		for range b.N {
			host := benchRegistry(b)
			cpu, _ := measured(b, func() {
				_, err := releaser.Release(b.Context(), host+"/demo:1.0.0", releaser.WithDirectory(dir),
					releaser.WithLogger(slog.New(slog.DiscardHandler)))
				if err != nil {
					b.Fatal(err)
				}
			})
			total += cpu
			reportLayers(b, host)
		}
		theirs = total / time.Duration(b.N)
		b.ReportMetric(theirs.Seconds(), "cpu-s")
	})
	release := func(b *testing.B, host string) (time.Duration, *packager.Released) {
		b.Helper()
		var done *packager.Released
		cpu, peak := measured(b, func() {
			scanned, err := dist.Scan(b.Context(), dir, dist.Options{})
			if err != nil {
				b.Fatal(err)
			}
			opts := packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata()}}
			if done, err = packager.Release(b.Context(), scanned, version(b, "1.0.0"), repository(b, host+"/demo"), opts); err != nil {
				b.Fatal(err)
			}
		})
		if peak > memoryLimit {
			b.Errorf("%.0f MB of memory, limit %d", peak, memoryLimit)
		}
		return cpu, done
	}
	report := func(b *testing.B, total time.Duration, limit float64) {
		b.Helper()
		cpu := total / time.Duration(b.N)
		if theirs > 0 && cpu.Seconds() > limit*theirs.Seconds() {
			b.Errorf("%.2f of the CPU time of fleeting-artifact, limit %.2f", cpu.Seconds()/theirs.Seconds(), limit)
		}
		b.ReportMetric(cpu.Seconds(), "cpu-s")
		if theirs > 0 {
			b.ReportMetric(cpu.Seconds()/theirs.Seconds(), "cpu-ratio")
		}
	}
	b.Run("packager", func(b *testing.B) {
		b.SetBytes(int64(len(benchPlatforms)) * benchSize)
		var total time.Duration
		for range b.N {
			host := benchRegistry(b)
			cpu, _ := release(b, host)
			total += cpu
			reportLayers(b, host)
		}
		report(b, total, cpuLimit)
	})
	b.Run("packager-again", func(b *testing.B) {
		host := benchRegistry(b)
		release(b, host)
		b.ResetTimer()
		var total time.Duration
		for range b.N {
			cpu, done := release(b, host)
			total += cpu
			if done.Uploaded.Blobs > 0 {
				b.Errorf("%d blobs uploaded again", done.Uploaded.Blobs)
			}
		}
		report(b, total, cpuLimit)
	})
}
