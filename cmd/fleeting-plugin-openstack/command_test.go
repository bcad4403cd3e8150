package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// desk is a simulated cloud and a runner's config.toml that uses it.
type desk struct {
	cloud  *sim.Simulator
	config string
}

func newDesk(t *testing.T, server string) desk {
	t.Helper()
	cloud, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	clouds := filepath.Join(folder, "clouds.yaml")
	if err := os.WriteFile(clouds, cloud.CloudsYAML("https://cloud.example"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := desk{cloud: cloud, config: filepath.Join(folder, "config.toml")}
	text := fmt.Sprintf(`concurrent = 3
[[runners]]
name = "docker"
[[runners]]
name = "openstack"
executor = "instance"
[runners.autoscaler]
plugin = "registry.example/fleeting-plugin-openstack:1"
max_instances = 3
[runners.autoscaler.connector_config]
username = "runner"
password = "secret"
use_static_credentials = true
[runners.autoscaler.plugin_config]
cloud = %q
clouds_config = %q
name = "runner"
[runners.autoscaler.plugin_config.server]
%s
`, sim.CloudTiny, clouds, server)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

const goodServer = "flavor = \"m1.small\"\nimage = \"Ubuntu 24.04\"\nnetworks = [\"private\"]\n"

// run runs a command and returns its exit code and its output.
func (d desk) run(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	if _, ok := commands()[args[0]]; ok {
		args = append(args, "--config", d.config)
	}
	code = runForPeople(t.Context(), args, &o, &e, plugin.WithTransport(d.cloud.Transport()))
	return code, o.String(), e.String()
}

func (d desk) add(t *testing.T, name string, metadata map[string]string) {
	t.Helper()
	_, err := d.cloud.AddServer(sim.ServerSpec{
		Name: name, Project: sim.TinyProject, Flavor: "m1.small", Tags: []string{"fleeting:runner"}, Metadata: metadata,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCheckTellsWhatItFound(t *testing.T) {
	t.Parallel()
	d := newDesk(t, goodServer+"key_name = \"fleeting\"\nsecurity_groups = [\"default\"]\nuser_data = \"#cloud-config\"\n")
	code, out, errs := d.run(t, "check")
	if code != exitOK || errs != "" {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	for _, part := range []string{
		"project tiny (", "in region RegionOne", "2.93", "m1.small (", "VCPUs 1, RAM 512 MiB, disk 1 GiB", "Ubuntu 24.04 (", "linux/amd64", "private (", "default (",
		"fleeting, of the user", "13 bytes", "servers with the group's tag: 0",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("the output does not say %q:\n%s", part, out)
		}
	}
	if strings.Contains(out, sim.DefaultPassword) {
		t.Error("the output has the password")
	}
}

func TestCheckTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	code, out, _ := newDesk(t, "flavor = \"m1.smal\"\nimage = \"Ubuntu\"\nnetworks = [\"private\"]\n").run(t, "check", "--output", "json")
	var findings []plugin.Finding
	if err := json.Unmarshal([]byte(out), &findings); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	wrong := map[string]bool{}
	for _, f := range findings {
		wrong[f.Subject] = !f.OK
	}
	if code != exitFailed || !wrong["server.flavor"] || !wrong["server.image"] || wrong["configuration"] {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// Nova would refuse every creation.
func TestCheckTellsThatAFlavorIsTooSmall(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		server string
		wrong  []string
	}{
		"RAM and disk":            {"flavor = \"m1.small\"\n", []string{"512 MiB of RAM, but the image needs 1024", "disk of 1 GiB, but the image needs 20"}},
		"RAM, and a large volume": {"flavor = \"m1.small\"\nvolume_size = 20\n", []string{"512 MiB of RAM"}},
		"a small volume":          {"flavor = \"m1.large\"\nvolume_size = 19\n", []string{"is 19 GiB, but the image needs 20"}},
		"neither":                 {"flavor = \"m1.large\"\n", nil},
	} {
		code, out, errs := newDesk(t, row.server+"image = \"Needs 20 GB\"\nnetworks = [\"private\"]\n").run(t, "check")
		if (code == exitOK) != (row.wrong == nil) || strings.Count(out, "WRONG") != len(row.wrong) {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errs)
		}
		for _, part := range row.wrong {
			if !strings.Contains(out, part) {
				t.Errorf("%s: the output does not say %q:\n%s", name, part, out)
			}
		}
	}
}

func TestPlanTellsTheRoom(t *testing.T) {
	t.Parallel()
	d := newDesk(t, goodServer+"user_data = \"#cloud-config\"\n")
	d.add(t, "other", nil)
	code, out, errs := d.run(t, "plan")
	if code != exitOK || !strings.Contains(out, "Such servers that fit into the project's limits: 1; instances would run out first.") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	for _, part := range []string{`"name": "runner-RANDOM"`, `"fleeting:runner"`, "20 of 65535 characters", "max_instances is 3"} {
		if !strings.Contains(out, part) {
			t.Errorf("the output does not say %s:\n%s", part, out)
		}
	}
	if len(d.cloud.Snapshot().Servers) != 1 {
		t.Error("plan made a server")
	}
}

// TestPlanTellsItsDoubts: what the limits allow may be refused all the same.
func TestPlanTellsItsDoubts(t *testing.T) {
	t.Parallel()
	for server, says := range map[string]string{
		strings.Replace(goodServer, "m1.small", "m1.nodisk", 1): "Perhaps not: server.volume_size: the flavor has no root disk",
		strings.Replace(goodServer, "private", "public", 1):     "Perhaps not: server.networks: public (",
	} {
		if code, out, errs := newDesk(t, server).run(t, "plan"); code != exitOK || !strings.Contains(out, says) {
			t.Errorf("exit code %d, want %q: %s%s", code, says, out, errs)
		}
	}
	if _, out, _ := newDesk(t, goodServer).run(t, "plan"); strings.Contains(out, "Perhaps") {
		t.Errorf("nothing is in doubt:\n%s", out)
	}
}

func TestListAndCleanup(t *testing.T) {
	t.Parallel()
	d := newDesk(t, goodServer)
	code, out, errs := d.run(t, "list")
	if code != exitOK || !strings.Contains(out, "No server carries the tag fleeting:runner.") {
		t.Errorf("list of none: exit code %d: %s%s", code, out, errs)
	}
	d.add(t, "runner-abcd1234", map[string]string{"fleeting:group": "fleeting:runner"})
	d.add(t, "database", nil)
	code, out, errs = d.run(t, "list")
	if code != exitOK || !strings.Contains(out, "runner-abcd1234") || !strings.Contains(out, "foreign") {
		t.Errorf("list: exit code %d: %s%s", code, out, errs)
	}
	code, out, _ = d.run(t, "cleanup")
	if code != exitOK || !strings.Contains(out, "would be deleted: 1.") || d.cloud.Count(sim.OpServerDelete) != 0 {
		t.Errorf("cleanup without --yes: exit code %d: %s", code, out)
	}
	code, out, _ = d.run(t, "cleanup", "--yes")
	if code != exitOK || !strings.Contains(out, "being deleted: 1.") || d.cloud.Count(sim.OpServerDelete) != 1 {
		t.Errorf("cleanup: exit code %d: %s", code, out)
	}
	if _, left := d.cloud.Snapshot().Server("database"); !left {
		t.Error("cleanup deleted a server that is not the group's")
	}
}

// TestCleanupCountsWhatTheCloudTook: a deletion that was refused is no deletion.
func TestCleanupCountsWhatTheCloudTook(t *testing.T) {
	t.Parallel()
	d := newDesk(t, goodServer)
	for _, name := range []string{"runner-abcd1234", "runner-efgh5678"} {
		d.add(t, name, map[string]string{"fleeting:group": "fleeting:runner"})
	}
	d.cloud.FailNth(sim.OpServerDelete, 1, sim.Fault{Status: http.StatusForbidden, Message: "not today"})
	code, out, errs := d.run(t, "cleanup", "--yes")
	if code != exitFailed || !strings.Contains(out, "being deleted: 1.") || strings.Count(out, "runner-") != 1 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if strings.Count(errs, "runner-") != 1 || !strings.Contains(errs, "not today") {
		t.Errorf("errors: %s", errs)
	}
}

// TestWaitingIsSaid: a cloud that does not answer costs seconds, and whoever
// waits is told what for, once.
func TestWaitingIsSaid(t *testing.T) {
	t.Parallel()
	for operation, waits := range map[sim.Operation]string{sim.OpTokenCreate: "check: authenticate: ", sim.OpFlavorList: "check: list flavors: "} {
		t.Run(string(operation), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, goodServer)
				d.cloud.Inject(sim.Rule{Operation: operation, Times: 2, Fault: sim.Fault{Status: http.StatusServiceUnavailable, Message: "asleep"}})
				code, out, errs := d.run(t, "check")
				if code != exitOK || !strings.HasPrefix(errs, waits) || !strings.HasSuffix(errs, "; trying again\n") || strings.Count(errs, "\n") != 1 {
					t.Errorf("exit code %d: %s%s", code, out, errs)
				}
				if code, _, errs := d.run(t, "check"); code != exitOK || errs != "" {
					t.Errorf("a cloud that answers: exit code %d: %s", code, errs)
				}
			})
		})
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	d := newDesk(t, goodServer)
	for name, row := range map[string]struct {
		args []string
		code int
		says string
	}{
		"unknown flag":   {[]string{"check", "--nope"}, exitUsage, "check: unknown flag --nope; see fleeting-plugin-openstack check --help\n"},
		"mistyped flag":  {[]string{"check", "--confg", "x"}, exitUsage, "did you mean --config?"},
		"a format":       {[]string{"list", "--json"}, exitUsage, "did you mean --output json?"},
		"extra argument": {[]string{"check", "nope"}, exitUsage, `unexpected argument "nope"`},
		"after man":      {[]string{"man", "x"}, exitUsage, `man: unexpected argument "x"`},
		"after a flag":   {[]string{"-version", "x"}, exitUsage, `-version: unexpected argument "x"`},
		"after help":     {[]string{"help", "check", "x"}, exitUsage, `help: unexpected argument "check"`},
		"help for what":  {[]string{"help", "chek"}, exitUsage, "did you mean check?"},
		"after serve":    {[]string{"serve", "x"}, exitUsage, `serve: unexpected argument "x"`},
		"bad output":     {[]string{"list", "--output", "xml"}, exitUsage, `unknown format "xml"`},
		"yes elsewhere":  {[]string{"check", "--yes"}, exitUsage, "unknown flag --yes"},
		"typo":           {[]string{"chek"}, exitUsage, `unknown command "chek"; did you mean check?`},
		"other runner":   {[]string{"list", "--runner", "nope"}, exitUsage, `no runner named "nope"`},
	} {
		code, out, errs := d.run(t, row.args...)
		if code != row.code || !strings.Contains(errs, row.says) {
			t.Errorf("%s: exit code %d, want %d and %q: %s%s", name, code, row.code, row.says, out, errs)
		}
	}
	if code, out, _ := d.run(t, "help"); code != exitOK || !strings.Contains(out, "cleanup") {
		t.Errorf("help: exit code %d: %s", code, out)
	}
	if code, out, _ := d.run(t, "help", "cleanup"); code != exitOK || !strings.Contains(out, "--yes") {
		t.Errorf("help cleanup: exit code %d: %s", code, out)
	}
	for args, want := range map[string]bool{
		"": false, "serve": false, "version": false, "-version": false, "version --help": true, "-version x": true, "serve x": true, "bootstrap": true, "check": true, "chek": true, "help": true, "--help": true,
	} {
		if got := isForPeople(strings.Fields(args)); got != want {
			t.Errorf("%q for people: got %v, want %v", args, got, want)
		}
	}
}

// A table of no servers would read as "there are none".
func TestCleanupThatCannotLookSaysNothingElse(t *testing.T) {
	t.Parallel()
	d := newDesk(t, goodServer)
	d.cloud.Inject(sim.Rule{Operation: sim.OpServerDetail, Fault: sim.Refuse(http.StatusForbidden, "Policy doesn't allow it")})
	code, out, errs := d.run(t, "cleanup")
	if code != exitFailed || out != "" || !strings.Contains(errs, "Policy doesn't allow it") {
		t.Errorf("exit code %d: %q, %q", code, out, errs)
	}
}

func TestMistakesInTheFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t, goodServer)
	for text, says := range map[string]string{
		"[[runners]]\nname = [": "config.toml:2:",
		"[[runners]]\n[runners.autoscaler]\nplugin = \"openstack\"\n[runners.autoscaler.plugin_config]\nnmae = \"x\"\n": "did you mean name?", //nolint:misspell // the mistake is what is tried
	} {
		if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := d.run(t, "plan"); code != exitUsage || !strings.Contains(errs, says) {
			t.Errorf("%s: exit code %d, want %d and %q: %s%s", text, code, exitUsage, says, out, errs)
		}
	}
}

// TestWordsOfTheLibrary: whoever asks for help gets it, and nothing is copied.
func TestWordsOfTheLibrary(t *testing.T) {
	target := t.TempDir()
	t.Setenv("FLEETING_PLUGIN_PATH", target)
	for args, row := range map[string]struct {
		code int
		says string
	}{
		"bootstrap --help":       {exitOK, "bootstrap REPO: copy the plugin"},
		"bootstrap -h":           {exitOK, "bootstrap REPO: copy the plugin"},
		"bootstrap":              {exitUsage, "takes one repository, not 0 arguments"},
		"bootstrap a b":          {exitUsage, "takes one repository, not 2 arguments"},
		"bootstrap --config x":   {exitUsage, "unknown flag --config"},
		"bootstrap -- --config":  {exitFailed, "begins with a dash"},
		"bootstrap a.example/-b": {exitFailed, "begins with a dash"},
		"bootstrap a?b":          {exitFailed, "cannot bootstrap"},
		"version --help":         {exitOK, "print the version"},
		"version --output json":  {exitUsage, "takes no arguments"},
		"version now":            {exitUsage, "takes no arguments"},
	} {
		var out, errs bytes.Buffer
		if code := runForPeople(t.Context(), strings.Fields(args), &out, &errs); code != row.code || !strings.Contains(out.String()+errs.String(), row.says) {
			t.Errorf("%s: exit code %d, want %d and %q: %s%s", args, code, row.code, row.says, out.String(), errs.String())
		}
	}
	if found, err := os.ReadDir(target); err != nil || len(found) != 0 {
		t.Errorf("copied: %v, %v", found, err)
	}
}
