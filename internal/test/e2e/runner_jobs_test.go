//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"go.yaml.in/yaml/v3"
)

// site is what the tutorial's reader has: a simulated cloud in a folder, the
// config.toml that the simulator wrote beside it, and here a GitLab of our own.
type site struct {
	l      *lab
	gitlab *gitlab
	runner string // the executable of GitLab Runner
	dir    string
	cloud  string // its entry in clouds.yaml
	// runs counts the runner's starts; each has a log of its own.
	runs int
}

// smallest is a cloud with a quota of two servers.
const smallest = "simulator-tiny"

// newSite starts a cloud and configures the runner as the tutorial says, with
// changes: pairs of what the simulator wrote and what is to be there instead.
func (l *lab) newSite(t *testing.T, changes ...string) *site {
	t.Helper()
	return l.siteOf(t, l.program("gitlab-runner"), []string{"--ssh-port", "0", "--quiet"}, changes...)
}

// siteOf is newSite for one executable of GitLab Runner and flags of the simulator.
func (l *lab) siteOf(t *testing.T, runner string, flags []string, changes ...string) *site {
	t.Helper()
	s := &site{l: l, gitlab: newGitLab(t), runner: runner, dir: t.TempDir(), cloud: "simulator"}
	log := filepath.Join(s.dir, "simulator.log")
	serveIn(t, s.dir, log, l.program("openstack-simulator"), append([]string{"--dir", "cloud", "--listen", "127.0.0.1:0"}, flags...)...)
	await(t, "the simulator", func() bool { return strings.Contains(readFile(t, log), "answers at") })
	text := readFile(t, filepath.Join(s.dir, "cloud", "config.toml"))
	for pair := range slices.Chunk(append([]string{"https://gitlab.com", s.gitlab.url, "glrt-...", runnerToken}, changes...), 2) {
		if n := strings.Count(text, pair[0]); n != 1 {
			t.Fatalf("%q is in config.toml %d times, not once:\n%s", pair[0], n, text)
		}
		text = strings.Replace(text, pair[0], pair[1], 1)
	}
	if strings.Contains(text, smallest) {
		s.cloud = smallest
	}
	writeFile(t, filepath.Join(s.dir, "config.toml"), text)
	return s
}

// serving tells whether a process of the plugin is there.
func (s *site) serving(t *testing.T) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		line, _ := os.ReadFile(file) // it may have ended
		return string(line) == s.l.program("fleeting-plugin-openstack")+"\x00"
	})
}

// start starts the runner as the tutorial says.
func (s *site) start(t *testing.T) *os.Process {
	t.Helper()
	s.runs++
	return serveIn(t, s.dir, s.log(), s.runner, "run", "--config", "config.toml")
}

func (s *site) log() string { return filepath.Join(s.dir, fmt.Sprintf("runner-%d.log", s.runs)) }

// said tells whether the runner's log, without its colours, has all of some texts
// in one line.
func (s *site) said(t *testing.T, texts ...string) bool {
	t.Helper()
	for line := range strings.Lines(regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(readFile(t, s.log()), "")) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			return true
		}
	}
	return false
}

// awaitSaid waits until the runner's log has all of some texts in one line.
func (s *site) awaitSaid(t *testing.T, texts ...string) {
	t.Helper()
	await(t, fmt.Sprintf("%q in the runner's log", texts), func() bool { return s.said(t, texts...) })
}

// servers asks the cloud itself, for those of anybody in the project.
func (s *site) servers(t *testing.T) []string {
	t.Helper()
	var file struct {
		Clouds map[string]struct {
			Auth struct {
				URL      string `yaml:"auth_url"`
				Username string `yaml:"username"`
				Password string `yaml:"password"`
				Project  string `yaml:"project_name"`
			} `yaml:"auth"`
		} `yaml:"clouds"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, filepath.Join(s.dir, "cloud", "clouds.yaml"))), &file); err != nil {
		t.Fatal(err)
	}
	auth := file.Clouds[s.cloud].Auth
	provider, err := openstack.AuthenticatedClient(t.Context(), gophercloud.AuthOptions{
		IdentityEndpoint: auth.URL, Username: auth.Username, Password: auth.Password, TenantName: auth.Project, DomainName: "Default",
	})
	if err != nil {
		t.Fatal(err)
	}
	client, err := openstack.NewComputeV2(provider, gophercloud.EndpointOpts{})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := servers.List(client, servers.ListOpts{}).AllPages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, err := servers.ExtractServers(pages)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, server := range list {
		names = append(names, server.Name)
	}
	return names
}

// awaitNone waits until the cloud has no server left.
func (s *site) awaitNone(t *testing.T) {
	t.Helper()
	await(t, "a cloud without servers", func() bool { return len(s.servers(t)) == 0 })
}

// host is the server on which a job runs, by a line of its own that has it before
// what the job does. Later runners put the time before each line.
func (j job) host(t *testing.T, does string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)(?:^| )(runner-\S+) ` + does + `$`).FindStringSubmatch(string(j.trace))
	if found == nil {
		t.Fatalf("job %s does not say where it is that it %s:\n%s", j.name, does, j.trace)
	}
	return found[1]
}

// verdict is how a job ended.
func (j job) verdict() string { return fmt.Sprintf("%s %s %d", j.state, j.reason, j.exitCode) }

// jobRun is something that the runner does with jobs.
type jobRun struct {
	what    string
	changes []string
	run     func(t *testing.T, s *site)
}

func runs() []jobRun {
	return []jobRun{
		{"jobs that succeed, fail and are cancelled, each on a server of its own", nil, eachItsOwn},
		{"a runner that is killed leaves no plugin and, once it is back, no server behind", nil, killed},
		{"a runner that is asked to end lets its job end, and leaves no server behind", nil, quits},
		{"a quota of two servers: two jobs run, the third waits", []string{`cloud = "simulator"`, `cloud = "` + smallest + `"`}, quotaOfTwo},
		{"a flavor for which there is no room: the log says why scale-ups pause", []string{"m1.small", "m1.toobig"}, noRoom},
		{"a server that does not get ready: the log says why", []string{"max_instances = 3", "max_instances = 3\ninstance_ready_command = \"exit 3\""}, neverReady},
		{"a flavor that is misspelt: the log says what comes nearest", []string{"m1.small", "m1.smal"}, misspelt},
	}
}

func eachItsOwn(t *testing.T, s *site) {
	succeeds := s.gitlab.add("succeeds", `echo "$HOSTNAME greets"`)
	fails := s.gitlab.add("fails", `echo "$HOSTNAME fails"`, "exit 3")
	waits := s.gitlab.add("waits", `echo "$HOSTNAME waits"`, "sleep 600", "echo too late")
	s.start(t)
	hosts := []string{}
	for _, c := range []struct {
		job           *job
		does, verdict string
	}{{succeeds, "greets", "success  0"}, {fails, "fails", "failed script_failure 3"}, {waits, "waits", "failed job_canceled 0"}} {
		s.gitlab.awaitWrote(t, c.job, c.does)
		if c.job == waits {
			s.gitlab.awaitWrote(t, waits, " waits\n")
			s.gitlab.cancel(waits)
		}
		ended := s.gitlab.awaitEnd(t, c.job)
		if got := ended.verdict(); got != c.verdict {
			t.Errorf("job %s: %s, want %s:\n%s", ended.name, got, c.verdict, ended.trace)
		}
		hosts = append(hosts, ended.host(t, c.does))
	}
	slices.Sort(hosts)
	if len(slices.Compact(slices.Clone(hosts))) != 3 {
		t.Errorf("the jobs ran on %v", hosts)
	}
	s.awaitNone(t)
}

func killed(t *testing.T, s *site) {
	waits := s.gitlab.add("waits", `echo "$HOSTNAME waits"`, "sleep 600")
	runner := s.start(t)
	s.gitlab.awaitWrote(t, waits, " waits\n")
	left := s.servers(t)
	if host := s.gitlab.look(waits).host(t, "waits"); !slices.Equal(left, []string{host}) {
		t.Fatalf("the cloud has the servers %v, and the job runs on %s", left, host)
	}
	if !s.serving(t) {
		t.Error("the plugin has no process")
	}
	if err := runner.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of the plugin", func() bool { return !s.serving(t) })
	after := s.gitlab.add("after", `echo "$HOSTNAME greets"`)
	s.start(t)
	s.awaitSaid(t, "ready up preparation failed", "no data on pre-existing instance so removing for safety", left[0])
	ended := s.gitlab.awaitEnd(t, after)
	if host := ended.host(t, "greets"); ended.state != "success" || slices.Contains(left, host) {
		t.Errorf("the next job: %s, on %s, and the last on %v", ended.verdict(), host, left)
	}
	s.awaitNone(t)
}

func quits(t *testing.T, s *site) {
	gate := filepath.Join(s.dir, "gate")
	waits := s.gitlab.add("waits", `echo "$HOSTNAME waits"`, until(gate))
	runner := s.start(t)
	s.gitlab.awaitWrote(t, waits, " waits\n")
	if err := runner.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	s.awaitSaid(t, "stop-signal=quit")
	writeFile(t, gate, "")
	if ended := s.gitlab.awaitEnd(t, waits); ended.state != "success" {
		t.Errorf("the job: %s", ended.verdict())
	}
	s.awaitSaid(t, "plugin process exited")
	if left := s.servers(t); len(left) > 0 {
		t.Errorf("the cloud has the servers %v", left)
	}
}

// until is a command that ends once there is a file.
func until(file string) string { return "until [ -e " + file + " ]; do sleep 0.1; done" }

func quotaOfTwo(t *testing.T, s *site) {
	gate := filepath.Join(s.dir, "gate")
	jobs := []*job{}
	for _, name := range []string{"one", "two", "three"} {
		jobs = append(jobs, s.gitlab.add(name, `echo "$HOSTNAME begins"`, until(gate)))
	}
	begun := func() (n int) {
		for _, j := range jobs {
			if s.gitlab.wrote(j, " begins\n") {
				n++
			}
		}
		return n
	}
	s.start(t)
	await(t, "two jobs", func() bool { return begun() == 2 })
	s.awaitSaid(t, "scale-up limited", "Quota exceeded for instances")
	if list := s.servers(t); begun() != 2 || len(list) != 2 {
		t.Errorf("%d jobs began, on %v", begun(), list)
	}
	writeFile(t, gate, "")
	s.gitlab.awaitSuccess(t, jobs...)
	s.awaitNone(t)
}

func noRoom(t *testing.T, s *site) {
	waits := s.gitlab.add("waits", "echo not to be")
	runner := s.start(t)
	defer func() { _ = runner.Kill() }() // told to end, it would wait for the job
	s.awaitSaid(t, "scale-up limited", "No valid host was found")
	s.awaitNone(t) // the one that failed is deleted, too
	if s.gitlab.wrote(waits, "not to be") {
		t.Error("the job ran")
	}
}

func neverReady(t *testing.T, s *site) {
	waits := s.gitlab.add("waits", "echo not to be")
	runner := s.start(t)
	defer func() { _ = runner.Kill() }() // told to end, it would wait for the job
	s.awaitSaid(t, "ready up preparation failed", "ready command: run exit (exit code: 3)")
	s.awaitSaid(t, "backing off scale up due to ready up failures")
	if s.gitlab.wrote(waits, "not to be") {
		t.Error("the job ran")
	}
}

func misspelt(t *testing.T, s *site) {
	waits := s.gitlab.add("waits", "echo not to be")
	runner := s.start(t)
	defer func() { _ = runner.Kill() }() // told to end, it would wait for the job
	s.awaitSaid(t, "no servers can be created", "server.flavor", "m1.smal", `did you mean`, "m1.small")
	s.awaitNone(t)
	if s.gitlab.wrote(waits, "not to be") {
		t.Error("the job ran")
	}
}
