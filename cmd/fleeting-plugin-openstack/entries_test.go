package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// TestNoSuchEntry: whoever has no entry, or several, is told what to write.
func TestNoSuchEntry(t *testing.T) {
	t.Parallel()
	const entry = "[[runners]]\nname = \"a\"\n[runners.autoscaler]\nplugin = \"openstack\"\n[runners.autoscaler.plugin_config]\ncloud = \"x\"\n"
	for text, row := range map[string]struct {
		args []string
		says string
	}{
		"":                      {nil, "there is no [[runners]] entry in it"},
		"concurrent = 1\n":      {[]string{"--runner", "a"}, "there is no [[runners]] entry in it"},
		"[[runners]]\n":         {[]string{"--runner", "a"}, "no [[runners]] entry in it has a section [runners.autoscaler.plugin_config]"},
		"[runners]\nname='a'":   {nil, "must be written [[runners]]"},
		"runners = [1]":         {nil, "must be a list of [[runners]]"},
		"runners = 'a'":         {nil, "must be a list of [[runners]]"},
		entry + "# named":       {[]string{"--runner", "b"}, "these do: a\n"},
		entry + entry + "# too": {[]string{"--runner", "a"}, "2 entries are named \"a\"; give each a name of its own"},
		strings.Replace(entry, "openstack", "other", 1): {nil, "choose one with --runner: a\n"},
	} {
		d := newDesk(t, goodServer)
		if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := d.run(t, append([]string{"check"}, row.args...)...); code != exitUsage || !strings.Contains(errs, row.says) {
			t.Errorf("%q %v: exit code %d, want %d and %q: %s%s", text, row.args, code, exitUsage, row.says, out, errs)
		}
	}
}

// TestSeveralEntries: check looks at all that use the plugin, the others at one.
func TestSeveralEntries(t *testing.T) {
	t.Parallel()
	d := newDesk(t, goodServer)
	content, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	_, entry, _ := strings.Cut(string(content), "[[runners]]\nname = \"docker\"\n")
	second := strings.NewReplacer("name = \"openstack\"", "name = \"second\"", "name = \"runner\"", "name = \"another\"", "m1.small", "m1.smal").Replace(entry)
	if err := os.WriteFile(d.config, []byte(string(content)+second), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := d.run(t, "check")
	first, then, both := strings.Cut(out, "\n[[runners]] second\n")
	if code != exitFailed || !both || !strings.Contains(first, "\n[[runners]] openstack\n") || strings.Contains(first, "WRONG") || !strings.Contains(then, "WRONG  server.flavor") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	code, out, errs = d.run(t, "check", "--runner", "openstack")
	if code != exitOK || strings.Contains(out, "[[runners]]") {
		t.Errorf("one of them: exit code %d: %s%s", code, out, errs)
	}
	code, out, _ = d.run(t, "check", "--output", "json")
	var findings []plugin.Finding
	if err := json.Unmarshal([]byte(out), &findings); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	wrong := map[string]int{}
	for _, f := range findings {
		if !f.OK {
			wrong[f.Runner]++
		}
	}
	if code != exitFailed || wrong["openstack"] != 0 || wrong["second"] != 1 {
		t.Errorf("exit code %d: %v\n%s", code, wrong, out)
	}
	for _, command := range []string{"plan", "list", "cleanup"} {
		if code, _, errs := d.run(t, command); code != exitUsage || !strings.Contains(errs, "choose one with --runner: openstack, second\n") {
			t.Errorf("%s: exit code %d: %s", command, code, errs)
		}
	}
}

// TestSharedGroups: two entries whose servers are told apart by nothing.
func TestSharedGroups(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change []string
		shared bool
	}{
		"the same":                    {nil, true},
		"the tag set to the default":  {[]string{"name = \"runner\"", "name = \"runner\"\ntag = \"fleeting:runner\""}, true},
		"the same cloud, by a link":   {[]string{"clouds.yaml", "link.yaml"}, true},
		"another name":                {[]string{"name = \"runner\"", "name = \"other\""}, false},
		"another project":             {[]string{sim.CloudTiny, sim.CloudPassword}, false},
		"another tag":                 {[]string{"name = \"runner\"", "name = \"runner\"\ntag = \"other\""}, false},
		"a cloud that is not reached": {[]string{"cloud = \"" + sim.CloudTiny, "cloud = \"nowhere"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, goodServer)
			content, err := os.ReadFile(d.config)
			if err != nil {
				t.Fatal(err)
			}
			clouds := filepath.Join(filepath.Dir(d.config), "clouds.yaml")
			if err := os.Symlink(clouds, filepath.Join(filepath.Dir(clouds), "link.yaml")); err != nil {
				t.Fatal(err)
			}
			_, entry, _ := strings.Cut(string(content), "[[runners]]\nname = \"docker\"\n")
			second := strings.NewReplacer(append(row.change, "name = \"openstack\"", "name = \"second\"")...).Replace(entry)
			if err := os.WriteFile(d.config, []byte(string(content)+second), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"check"}, {"check", "--runner", "second"}} {
				if len(args) > 1 && strings.Contains(second, "link.yaml") {
					continue // only a login tells that
				}
				_, out, errs := d.run(t, args...)
				if got := strings.Contains(out, `the [[runners]] entry "openstack" has the group runner, too`); got != row.shared {
					t.Errorf("%v: shared %v, want %v:\n%s%s", args, got, row.shared, out, errs)
				}
			}
		})
	}
}
