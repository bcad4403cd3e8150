//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// procedures are what the guide to Kubernetes has operators do, and what happens to
// a manager there without them: each with a job that runs. The process of the
// runner stands for its Pod: a kubelet that ends a Pod sends the signal that the
// image names, SIGQUIT, and SIGKILL when the grace period is over.
func procedures() []change {
	return []change{
		{"a drain waits for the job, and the next manager begins with nothing", "16.11.0", nil, drained},
		{"an eviction without grace loses the job, and the next manager removes its server", "16.11.0", nil, evicted},
		{"another plugin, then another start: the job ends with the old one", "16.11.0", nil, pluginUpgraded},
		{"another runner takes over when the old one has ended", "16.11.0", nil, runnerUpgraded},
		{"a Secret that the kubelet writes anew, with another token, loses no job", "16.11.0", nil, secretRotated},
		{"a second manager elsewhere takes the job's server", "16.11.0", nil, managerDoubled},
	}
}

// working starts a runner with a job that runs until the gate is opened.
func (s *site) working(t *testing.T, gate string) (runner *os.Process, running *job, host string) {
	t.Helper()
	running = s.gitlab.add("runs", `echo "$HOSTNAME begins"`, until(gate))
	runner = s.start(t)
	s.gitlab.awaitWrote(t, running, begins)
	host = s.gitlab.look(running).host(t, "begins")
	s.mustHave(t, "with the job", host)
	return runner, running, host
}

// mustHave wants exactly these servers, and logs them.
func (s *site) mustHave(t *testing.T, when string, want ...string) {
	t.Helper()
	list := s.servers(t)
	t.Logf("%s: servers %v", when, list)
	if !slices.Equal(slices.Sorted(slices.Values(list)), slices.Sorted(slices.Values(want))) {
		t.Errorf("%s: the cloud has the servers %v, want %v", when, list, want)
	}
}

// another has a job succeed with a runner that was started anew, and the cloud
// empty afterwards. It returns the job's server.
func (s *site) another(t *testing.T) string {
	t.Helper()
	next := s.gitlab.add("next", `echo "$HOSTNAME begins"`)
	s.gitlab.awaitSuccess(t, next)
	s.awaitNone(t)
	return s.gitlab.look(next).host(t, "begins")
}

func drained(t *testing.T, s *site) {
	gate := filepath.Join(s.dir, "gate")
	runner, running, host := s.working(t, gate)
	if err := runner.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	s.awaitSaid(t, "stop-signal=quit")
	waits := s.gitlab.add("waits", `echo "$HOSTNAME begins"`)
	s.mustHave(t, "told to end", host)
	writeFile(t, gate, "")
	s.gitlab.awaitSuccess(t, running)
	await(t, "the end of the runner", func() bool { return over(runner.Pid) })
	s.mustHave(t, "the runner has ended")
	if taken := s.gitlab.look(waits).state; taken != "" {
		t.Errorf("a runner that ends took a job: %s", taken)
	}
	s.start(t)
	s.gitlab.awaitSuccess(t, waits)
	s.awaitNone(t)
}

func evicted(t *testing.T, s *site) {
	gate := filepath.Join(s.dir, "gate")
	runner, running, host := s.working(t, gate)
	if err := runner.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	s.awaitSaid(t, "stop-signal=quit")
	if err := runner.Kill(); err != nil { // the grace period is over
		t.Fatal(err)
	}
	await(t, "the end of the runner and its plugin", func() bool { return over(runner.Pid) && !s.serving(t) })
	s.mustHave(t, "the runner was killed", host)
	if state := s.gitlab.look(running).state; ended(state) {
		t.Errorf("GitLab was told that the job has ended: %s", state)
	}
	s.start(t)
	if next := s.another(t); next == host {
		t.Errorf("the next job runs on the server of the last, %s", host)
	}
	if state := s.gitlab.look(running).state; ended(state) {
		t.Errorf("the next manager says of the job: %s", state)
	}
}

func pluginUpgraded(t *testing.T, s *site) {
	gate, old := filepath.Join(s.dir, "gate"), s.l.program("fleeting-plugin-openstack")
	installed := filepath.Join(s.dir, "plugin")
	writeFile(t, installed, readFile(t, old))
	if err := os.Chmod(installed, 0o755); err != nil {
		t.Fatal(err)
	}
	s.rewriteConfig(t, old, installed)
	runner, running, host := s.working(t, gate)
	// As installing does it: another file is renamed to the name.
	compile(t, architectures()[0], "-X main.version=0.2.1", installed+".new", openstackPackage)
	if err := os.Rename(installed+".new", installed); err != nil {
		t.Fatal(err)
	}
	if err := runner.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	s.awaitSaid(t, "stop-signal=quit")
	s.mustHave(t, "upgraded, and told to end", host)
	writeFile(t, gate, "")
	s.gitlab.awaitSuccess(t, running)
	await(t, "the end of the runner", func() bool { return over(runner.Pid) })
	if s.said(t, "0.2.1") {
		t.Error("the old runner started the new plugin")
	}
	s.mustHave(t, "the runner has ended")
	s.start(t)
	s.another(t)
	s.awaitSaid(t, "plugin", "0.2.1")
}

func runnerUpgraded(t *testing.T, s *site) {
	gate := filepath.Join(s.dir, "gate")
	runner, running, host := s.working(t, gate)
	old, next := s.runner, s.l.otherRunner(s.runner)
	if err := runner.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	s.awaitSaid(t, "stop-signal=quit")
	s.mustHave(t, "told to end", host)
	writeFile(t, gate, "")
	s.gitlab.awaitSuccess(t, running)
	await(t, "the end of the runner", func() bool { return over(runner.Pid) })
	s.mustHave(t, "the runner has ended")
	s.runner = next
	s.start(t)
	s.another(t)
	t.Logf("from %s to %s", version(t, old, "--version"), version(t, next, "--version"))
}

// otherRunner is a runner of another release, or the same if there is no other.
func (l *lab) otherRunner(runner string) string {
	for _, other := range l.runners {
		if other != runner {
			return other
		}
	}
	return runner
}

// secretRotated writes a mounted Secret as a kubelet does: a link is turned to
// another folder, all at once, and then the Pod is restarted.
func secretRotated(t *testing.T, s *site) {
	gate := filepath.Join(s.dir, "gate")
	config := filepath.Join(s.dir, "config.toml")
	text := readFile(t, config)
	publish := func(version, text string) {
		dir := filepath.Join(s.dir, version)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "config.toml"), text)
		link := filepath.Join(s.dir, "..data")
		if err := os.Symlink(version, link+"_tmp"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+"_tmp", link); err != nil {
			t.Fatal(err)
		}
	}
	publish("..first", text)
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..data", "config.toml"), config); err != nil {
		t.Fatal(err)
	}
	runner, running, host := s.working(t, gate)
	const renewed = "glrt-new0123456789abcdef"
	s.gitlab.accept(renewed)
	publish("..second", strings.Replace(text, runnerToken, renewed, 1))
	meanwhile := s.gitlab.add("meanwhile", `echo "$HOSTNAME begins"`)
	s.gitlab.awaitSuccess(t, meanwhile)
	if list := s.servers(t); !slices.Contains(list, host) {
		t.Errorf("the server of the job is gone: %v", list)
	}
	if err := runner.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	s.awaitSaid(t, "stop-signal=quit")
	writeFile(t, gate, "")
	s.gitlab.awaitSuccess(t, running)
	await(t, "the end of the runner", func() bool { return over(runner.Pid) })
	s.mustHave(t, "the runner has ended")
	s.start(t)
	s.another(t)
}

// managerDoubled starts a manager as on another node, where no lock file tells that
// the first one lives: what happens if a Pod of a lost node is removed by force
// while its node still runs.
func managerDoubled(t *testing.T, s *site) {
	gate := filepath.Join(s.dir, "gate")
	first, running, host := s.working(t, gate)
	elsewhere := *s
	elsewhere.dir = filepath.Join(s.dir, "elsewhere")
	if err := os.MkdirAll(filepath.Join(elsewhere.dir, "locks"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(s.dir, "cloud"), filepath.Join(elsewhere.dir, "cloud")); err != nil {
		t.Fatal(err)
	}
	const cloud = `cloud = "simulator"`
	text := readFile(t, filepath.Join(s.dir, "config.toml"))
	writeFile(t, filepath.Join(elsewhere.dir, "config.toml"),
		strings.Replace(text, cloud, cloud+"\nlock_dir = \""+filepath.Join(elsewhere.dir, "locks")+"\"", 1))
	second := elsewhere.start(t)
	elsewhere.awaitSaid(t, "no data on pre-existing instance", host)
	await(t, "the loss of the server "+host, func() bool { return !slices.Contains(s.servers(t), host) })
	if lost := s.gitlab.awaitEnd(t, running); lost.state != "failed" {
		t.Errorf("the job: %s", lost.verdict())
	}
	for _, manager := range []*os.Process{first, second} {
		if err := manager.Signal(syscall.SIGQUIT); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the end of both", func() bool { return over(first.Pid) && over(second.Pid) })
	s.awaitNone(t)
}
