// Command bench measures the project and writes docs/explanation/performance.md: every
// benchmark beside its peer in the same run, and the group in bad weather. It fails
// when a goal is missed. `make bench` runs it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"
)

func main() {
	out := flag.String("o", "docs/explanation/performance.md", "the page to write, below the root of the repository")
	count := flag.Int("count", 5, "how often each benchmark runs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *out, *count); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, shown io.Writer, out string, count int) error {
	began := time.Now()
	var all results
	// One package at a time, or benchmarks take each other's time.
	packages, err := benchmarked()
	if err != nil {
		return err
	}
	compared := all.test(ctx, append([]string{"-p", "1", "-run", "^$", "-bench", ".", "-benchmem", "-benchtime", "300ms", "-count", fmt.Sprint(count)}, packages...)...)
	weather := all.test(ctx, "-timeout", "20m", "-run", weatherTests, "-count=1", "./plugin", "-weather.thorough")
	if err := ctx.Err(); err != nil {
		return err
	}
	page, missed := all.page()
	_, _ = fmt.Fprintf(shown, "%s\ntook %s\n", page, time.Since(began).Round(time.Second))
	if err := os.WriteFile(out, page, 0o644); err != nil { //nolint:gosec // a page of the documentation
		return err
	}
	var goals error
	if len(missed) > 0 {
		goals = fmt.Errorf("goals missed:\n  %s", strings.Join(missed, "\n  "))
	}
	return errors.Join(compared, weather, goals)
}

// benchmarked lists the packages that have benchmarks: to build the tests of all
// others would take most of the time.
func benchmarked() ([]string, error) {
	var found []string
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // a file of this repository
		if folder := "./" + filepath.ToSlash(filepath.Dir(path)); bytes.Contains(content, []byte("\nfunc Benchmark")) && !slices.Contains(found, folder) {
			found = append(found, folder)
		}
		return err
	})
	return found, err
}

// weatherTests hand figures to this program with testing.T.Attr.
const weatherTests = "^(TestWeather.*|TestRandomSchedules|TestThousandServers.*|TestServersASecond|TestFiftyGroups.*|TestCallBudget|TestScaleUpIsTenTimesFaster)$"

// results are what benchmarks and tests measured.
type results struct {
	cpu     string
	values  map[series][]float64
	figures []figure
}

// series are the values of one unit of one benchmark.
type series struct{ benchmark, unit string }

// figure is what a test measured.
type figure struct {
	test, row, name, goal, value string
	met                          bool
}

// test runs go test and collects what it measures.
func (r *results) test(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-vet=off", "-json"}, args...)...) //nolint:gosec // our own arguments
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var text bytes.Buffer
	reading := r.events(stdout, &text)
	if err := cmd.Wait(); err != nil {
		_, _ = os.Stderr.Write(text.Bytes())
		return errors.Join(fmt.Errorf("%s: %w", cmd, err), reading)
	}
	return errors.Join(reading, r.benchmarks(&text))
}

// events reads the events of go test (go doc test2json).
func (r *results) events(from io.Reader, text io.Writer) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct{ Action, Test, Key, Value, Output string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return fmt.Errorf("go test: %q: %w", lines.Text(), err)
		}
		switch event.Action {
		case "attr":
			if part := strings.Split(event.Value, "|"); event.Key == "bench" && len(part) == 5 {
				r.figures = append(r.figures, figure{event.Test, part[0], part[1], part[2], part[3], part[4] == "true"})
			}
		case "output", "build-output":
			_, _ = io.WriteString(text, event.Output)
		}
	}
	return lines.Err()
}

// benchmarks reads the lines of benchmarks.
func (r *results) benchmarks(text io.Reader) error {
	if r.values == nil {
		r.values = map[series][]float64{}
	}
	reader := benchfmt.NewReader(text, "go test")
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue // other output of the tests
		}
		r.cpu = strings.TrimSpace(result.GetConfig("cpu"))
		base, parts := result.Name.Parts()
		// Without the number of processors, which is the last part.
		parts = slices.DeleteFunc(parts, func(part []byte) bool { return part[0] != '/' })
		name := string(base) + string(bytes.Join(parts, nil))
		for _, v := range result.Values {
			r.values[series{name, v.Unit}] = append(r.values[series{name, v.Unit}], v.Value)
		}
	}
	return reader.Err()
}

// comparison is one line of the page: ours may take at most so many times what the
// peer takes. Zero means no goal.
type comparison struct {
	what, ours, peer, unit string
	most                   float64
}

func comparisons() []comparison {
	lines := []comparison{
		{"publish six platforms of 30 MB, CPU; peer: GitLab's fleeting-artifact", "Release/packager", "Release/fleeting-artifact", "cpu-s", 0.35},
		{"publish them again, CPU; peer: GitLab's fleeting-artifact", "Release/packager-again", "Release/fleeting-artifact", "cpu-s", 0.35},
		{"install 34 MB, verified, CPU; peer: GitLab Runner's installer, which verifies nothing", "Install/ours", "Install/runner", "cpu-ms/op", 1},
		{"the same, memory", "Install/ours", "Install/runner", "max-B", 1},
		// TestUpdateCostsATenth has a goal, for the CPU time: an update waits for
		// goroutines of its own, which other programs delay.
		{"a whole update of 1,000 servers; peer: gophercloud's ExtractServers alone", "Update/ours", "Update/ExtractServers", "sec/op", 0},
		{"the same, allocated memory", "Update/ours", "Update/ExtractServers", "B/op", 0.15},
		{"read a listing of 1,000 servers as Nova answers it; peer: ExtractServers", "Listing/ours", "Listing/ExtractServers", "sec/op", 0.1},
		{"`Increase` by 50 servers", "Increase", "", "sec/op", 0},
		{"the simulator's listing of 1,000 servers", "Listing", "", "sec/op", 0},
	}
	for _, sample := range []string{"key-legacy", "key-bundle", "key-bundle-rekor1", "keyless-legacy-rekor1", "keyless-bundle-rekor1", "keyless-bundle-rekor2"} {
		peer := "sigstore-go"
		if strings.Contains(sample, "legacy") {
			peer = "cosign's library"
		}
		lines = append(lines, comparison{"verify a signature, " + sample + "; peer: " + peer, "Verify/" + sample + "/ours", "Verify/" + sample + "/peer", "sec/op", 1.5})
	}
	return lines
}

// median of a series, as benchstat computes it; not ok if there are no values.
func (r *results) median(benchmark, unit string) (value float64, ok bool) {
	values := r.values[series{benchmark, unit}]
	if len(values) == 0 {
		return 0, false
	}
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), 0.95).Center, true
}

// page writes the page, and lists the goals that were missed.
func (r *results) page() (page []byte, missed []string) {
	var b bytes.Buffer
	fmt.Fprintf(&b, intro, runtime.Version(), runtime.NumCPU(), r.cpu)
	b.WriteString("\n## Compared with other tools\n\nThe medians of one run. The ratio is ours to the peer's.\n\n| what | ours | peer | ratio | goal |\n| --- | --- | --- | --- | --- |\n")
	for _, c := range comparisons() {
		ours, ok := r.median(c.ours, c.unit)
		if !ok {
			missed = append(missed, c.what+": not measured")
			continue
		}
		line := fmt.Sprintf("| %s | %s |", c.what, amount(ours, c.unit))
		if c.peer == "" {
			b.WriteString(line + " | | |\n")
			continue
		}
		peer, ok := r.median(c.peer, c.unit)
		ratio, goal := ours/peer, ""
		if c.most > 0 {
			goal = fmt.Sprintf("≤ %.2f", c.most)
		}
		if !ok || c.most > 0 && ratio > c.most {
			missed = append(missed, fmt.Sprintf("%s: %.3f of the peer, goal %.2f", c.what, ratio, c.most))
		}
		fmt.Fprintf(&b, "%s %s | %.3f | %s |\n", line, amount(peer, c.unit), ratio, goal)
	}
	b.WriteString(weatherIntro)
	// Tests end in another order each time; the figures of one are in order.
	slices.SortStableFunc(r.figures, func(a, b figure) int { return strings.Compare(a.test, b.test) })
	row := ""
	for _, f := range r.figures {
		if !f.met {
			missed = append(missed, fmt.Sprintf("%s: %s %s, goal %s", f.row, f.name, f.value, f.goal))
		}
		shown := f.row
		if shown == row {
			shown = ""
		}
		row = f.row
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", shown, f.name, f.value, strings.NewReplacer("<=", "≤", ">=", "≥").Replace(f.goal))
	}
	if len(r.figures) == 0 {
		missed = append(missed, "the weather: not measured")
	}
	return b.Bytes(), missed
}

// amount writes a value with its unit.
func amount(value float64, unit string) string {
	switch unit {
	case "cpu-s":
		return benchunit.Scale(value, benchunit.Decimal) + "s"
	case "cpu-ms/op":
		return benchunit.Scale(value/1000, benchunit.Decimal) + "s"
	case "max-B":
		return benchunit.Scale(value, benchunit.Binary) + "B"
	default:
		short, _, _ := strings.Cut(unit, "/")
		return benchunit.Scale(value, benchunit.ClassOf(unit)) + strings.TrimSuffix(short, "ec")
	}
}

const intro = `# Performance

` + "`make bench`" + ` measures everything on this page, writes it, and fails if a goal is missed. This run: %s, %d cores, %s.
`

const weatherIntro = `
## Bad weather

A group of the plugin, GitLab's own task scaler and a simulated cloud, on a clock that jumps. Faults and waits follow from a seed, so another machine computes the same figures. Except where the table says more, 20 jobs run 5 at a time, each on a server of its own that takes 2 s to build. A ratio is to the run without faults. Each figure is the median of 25 seeds, the longest wait that of all of them.

The tests are in ` + "`plugin/weather_test.go`, `plugin/weather_scale_test.go` and `plugin/schedules_test.go`" + `. [How scale-up works](scaling.md) explains the design.

| weather | figure | measured | goal |
| --- | --- | --- | --- |
`
