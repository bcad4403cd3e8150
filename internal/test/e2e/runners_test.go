//go:build e2e

package e2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/mod/semver"
)

// TestRunners has GitLab Runner run jobs while the cloud fails in every way that
// it can, and while the runner itself is changed. E2E_RUNNERS names executables of
// gitlab-runner, with colons between them; without it, what can be had of the
// runner's module is built and used.
func TestRunners(t *testing.T) {
	l := &lab{dir: labDir(t), report: &report{}}
	compile(t, architectures()[0], "", l.program("openstack-simulator"), simulatorPackage)
	compile(t, architectures()[0], "-X main.version="+openstackVersion, l.program("fleeting-plugin-openstack"), openstackPackage)
	runners := filepath.SplitList(os.Getenv("E2E_RUNNERS"))
	if len(runners) == 0 {
		l.buildRunner(t)
		runners = []string{l.program("gitlab-runner")}
	}
	l.runners = runners
	var results []result
	t.Cleanup(func() { printWeather(t, results) })
	for _, runner := range runners {
		its := version(t, runner, "--version")
		software := "gitlab-runner " + its
		t.Run(software, func(t *testing.T) {
			for _, c := range slices.Concat(changes(), procedures()) {
				if semver.Compare("v"+its, "v"+c.since) < 0 {
					continue
				}
				t.Run(c.what, func(t *testing.T) { c.run(t, l.siteOf(t, runner, usualPort(), c.changes...)) })
			}
			for _, w := range weathers() {
				t.Run(w.name, func(t *testing.T) { results = append(results, w.measure(t, l, runner, software)) })
			}
		})
	}
}

// usualPort are flags for runners before 17.11.0, which know no other port of SSH.
func usualPort() []string { return []string{"--ssh-port", "22"} }

// change is something that happens to a runner that works, since it can.
type change struct {
	what, since string
	changes     []string
	run         func(t *testing.T, s *site)
}

// changes are what happens to a runner that works.
func changes() []change {
	return []change{
		{"a token that is changed while jobs run kills none", "16.11.0", []string{"max_instances = 3", "max_instances = 2"}, rotated},
		{"a plugin that is killed is not started again", "16.11.0", nil, pluginKilled},
		{"a restart with state_storage keeps the idle servers", "17.5.0", []string{
			"max_instances = 3", "max_instances = 3\n[runners.autoscaler.state_storage]\nenabled = true\n[[runners.autoscaler.policy]]\nidle_count = 2\nidle_time = \"1h\"\n",
		}, stateKept},
	}
}

// rewriteConfig changes the configuration of a runner that reads it again when it
// changes.
func (s *site) rewriteConfig(t *testing.T, old, instead string) {
	t.Helper()
	substitute(t, filepath.Join(s.dir, "config.toml"), old, instead)
}

func rotated(t *testing.T, s *site) {
	gate := filepath.Join(s.dir, "gate")
	before := []*job{}
	for _, name := range []string{"one", "two"} {
		before = append(before, s.gitlab.add(name, `echo "$HOSTNAME begins"`, until(gate)))
	}
	s.start(t)
	for _, j := range before {
		s.gitlab.awaitWrote(t, j, begins)
	}
	const renewed = "glrt-new0123456789abcdef"
	s.gitlab.accept(renewed)
	s.rewriteConfig(t, runnerToken, renewed)
	after := s.gitlab.add("three", `echo "$HOSTNAME begins"`)
	s.gitlab.awaitSuccess(t, after)
	s.awaitSaid(t, "another process of this runner serves the group")
	list := s.servers(t)
	for _, j := range before {
		if host := s.gitlab.look(j).host(t, "begins"); !slices.Contains(list, host) {
			t.Errorf("the server %s of job %s is gone: %v", host, j.name, list)
		}
	}
	writeFile(t, gate, "")
	s.gitlab.awaitSuccess(t, before...)
	s.awaitNone(t)
}

func pluginKilled(t *testing.T, s *site) {
	gate := filepath.Join(s.dir, "gate")
	runs := s.gitlab.add("runs", `echo "$HOSTNAME begins"`, until(gate))
	runner := s.start(t)
	s.gitlab.awaitWrote(t, runs, begins)
	for _, pid := range s.plugins(t) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	s.awaitSaid(t, "connect: connection refused")
	waits := s.gitlab.add("waits", "echo not to be")
	writeFile(t, gate, "")
	s.gitlab.awaitSuccess(t, runs)
	if left := s.servers(t); s.serving(t) || len(left) != 1 {
		t.Errorf("a plugin serves: %v; servers: %v", s.serving(t), left)
	}
	if s.gitlab.wrote(waits, "not to be") {
		t.Error("a job ran without a plugin")
	}
	if err := runner.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of the runner", func() bool { return over(runner.Pid) })
	s.start(t)
	s.gitlab.awaitSuccess(t, s.gitlab.add("after", `echo "$HOSTNAME begins"`))
	s.awaitNone(t)
}

// over tells whether a process has ended, although nothing has waited for it yet.
func over(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}

func stateKept(t *testing.T, s *site) {
	runner := s.start(t)
	var before []string
	await(t, "two idle servers", func() bool { before = s.servers(t); return len(before) == 2 })
	s.awaitSaid(t, "instance discovery")
	await(t, "both ready", func() bool { return s.count(t, "instance is ready") >= 2 || s.count(t, "server is up") >= 2 })
	if err := runner.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	s.awaitSaid(t, "plugin process exited")
	j := func() *job { s.start(t); return s.gitlab.add("after", `echo "$HOSTNAME begins"`) }()
	ended := s.gitlab.awaitEnd(t, j)
	if host := ended.host(t, "begins"); ended.state != "success" || !slices.Contains(before, host) {
		t.Errorf("the job: %s, on %s, and the idle servers were %v", ended.verdict(), host, before)
	}
	if s.said(t, "no data on pre-existing instance") {
		t.Error("an idle server was removed")
	}
}

// count is how many lines of the runner's log have a text.
func (s *site) count(t *testing.T, text string) int {
	t.Helper()
	return strings.Count(readFile(t, s.log()), text)
}

// plugins are the processes of the plugin.
func (s *site) plugins(t *testing.T) []int {
	t.Helper()
	var pids []int
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, _ := os.ReadFile(file) // it may have ended
		var pid int
		if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err == nil && string(line) == s.l.program("fleeting-plugin-openstack")+"\x00" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// weather is something that goes wrong with the cloud.
type weather struct {
	name   string
	jobs   int
	faults []string
	// later are set once the first job has begun.
	later []string
}

// weathers repeat nothing at random: each n-th call or server is met. Their names
// have no percent signs: they become part of folders, and a runner that is started
// in one with such a sign ends at once.
func weathers() []weather {
	const create = ",match=compute:server.create"
	return []weather{
		{name: "none", jobs: 20},
		{name: "one creation in ten answered 503", jobs: 20, faults: []string{"error,every=10" + create}},
		{name: "one creation in ten reset before anything is made", jobs: 20, faults: []string{"reset,every=10" + create}},
		{name: "one answer in ten lost, half of the servers made", jobs: 20, faults: []string{"reset,every=20" + create, "lost,every=20,skip=10" + create}},
		{name: "one server in seven born in ERROR", jobs: 20, faults: []string{"build-error,every=7"}},
		{name: "one server in three born in ERROR", jobs: 20, faults: []string{"build-error,every=3"}},
		{name: "one of two hosts fails all builds", jobs: 20, faults: []string{"build-error,match=host:compute-b"}},
		{name: "quota of 2", jobs: 15, faults: []string{"quota,instances=2"}},
		{name: "soft delete", jobs: 20, faults: []string{"soft-delete"}},
		{name: "down for two minutes", jobs: 20, later: []string{"reset,for=2m"}},
		{name: "all at once, one in ten of everything", jobs: 20, faults: []string{
			"error,every=10", "reset,every=10,skip=3", "lost,every=10,skip=7", "delay:10%,by=2s", "build-error,every=10", "delete-error,every=10", "stuck-deleting,every=10,skip=5",
		}},
	}
}

// result is what jobs had of a weather.
type result struct {
	software, weather string
	jobs, creations   int
	took              time.Duration
	waits             []time.Duration
}

// measure runs jobs, five at a time, and sees that none is lost, none shares its
// server, and no server is left.
func (w weather) measure(t *testing.T, l *lab, runner, software string) result {
	t.Helper()
	flags := usualPort()
	for _, fault := range w.faults {
		flags = append(flags, "--fault", fault)
	}
	const policy = "[[runners.autoscaler.policy]]\nidle_count = 0\nidle_time = \"5s\"\n" // or 16.11 keeps idle servers
	s := l.siteOf(t, runner, flags, "concurrent = 4", "concurrent = 5\ncheck_interval = 1", "max_instances = 3", "max_instances = 5\n"+policy,
		`cloud = "simulator"`, "cloud = \"simulator\"\ndelete_timeout = \"30s\"") // or the end of what hangs in deletion would not be seen
	jobs := []*job{}
	for i := range w.jobs {
		jobs = append(jobs, s.gitlab.add(fmt.Sprintf("job-%d", i+1), `echo "$HOSTNAME begins"`))
	}
	begin := time.Now()
	s.start(t)
	if len(w.later) > 0 {
		s.gitlab.awaitWrote(t, jobs[0], begins)
		s.addFaults(t, w.later...)
	}
	r := result{software: software, weather: w.name, jobs: w.jobs}
	hosts := map[string]bool{}
	for _, j := range jobs {
		ended := s.gitlab.awaitEnd(t, j)
		if ended.state != "success" {
			t.Errorf("job %s: %s:\n%s", ended.name, ended.verdict(), ended.trace)
			continue
		}
		hosts[ended.host(t, "begins")] = true
		r.took = max(r.took, ended.over.Sub(begin))
		r.waits = append(r.waits, ended.begun.Sub(ended.taken))
	}
	if len(hosts) != w.jobs {
		t.Errorf("%d jobs ran on %d servers", w.jobs, len(hosts))
	}
	s.addFaults(t) // ends all
	s.awaitNone(t)
	r.creations = strings.Count(readFile(t, filepath.Join(s.dir, "simulator.log")), "operation=compute:server.create")
	return r
}

// addFaults has the simulator fail, too, or, without a fault, not at all.
func (s *site) addFaults(t *testing.T, faults ...string) {
	t.Helper()
	found := regexp.MustCompile(`answers at (\S+) `).FindStringSubmatch(readFile(t, filepath.Join(s.dir, "simulator.log")))
	if found == nil {
		t.Fatal("the simulator does not say where it is")
	}
	method := http.MethodPost
	if len(faults) == 0 {
		method = http.MethodDelete
	}
	request, err := http.NewRequestWithContext(t.Context(), method, found[1]+"/faults", strings.NewReader(strings.Join(faults, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", method, request.URL, answer.Status)
	}
}

// printWeather writes the table to the test's log, and to the file that
// E2E_REPORT names.
func printWeather(t *testing.T, results []result) {
	t.Helper()
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RUNNER\tWEATHER\tJOBS\tSECONDS\tRATIO\tCREATIONS\tWAIT p50\tWAIT MAX")
	fair := map[string]time.Duration{} // a job, in seconds, without faults
	for _, r := range results {
		if r.jobs == 0 || len(r.waits) == 0 {
			continue
		}
		if r.weather == "none" {
			fair[r.software] = r.took / time.Duration(r.jobs)
		}
		ratio := "-"
		if usual := fair[r.software]; usual > 0 {
			ratio = fmt.Sprintf("%.2f", float64(r.took)/float64(usual)/float64(r.jobs))
		}
		slices.Sort(r.waits)
		fmt.Fprintf(table, "%s\t%s\t%d\t%.1f\t%s\t%d\t%.1f\t%.1f\n", r.software, r.weather, r.jobs, r.took.Seconds(), ratio,
			r.creations, r.waits[len(r.waits)/2].Seconds(), r.waits[len(r.waits)-1].Seconds())
	}
	if err := table.Flush(); err != nil {
		t.Error(err)
	}
	t.Logf("weather\n%s", text.String())
	if file := os.Getenv("E2E_REPORT"); file != "" {
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Error(err)
		}
	}
}
