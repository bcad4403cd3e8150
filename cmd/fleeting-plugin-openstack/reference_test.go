package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// TestReferenceShowsTheHelp: the page about the commands shows what they print
// about themselves.
func TestReferenceShowsTheHelp(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/fleeting-plugin-openstack.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--help"}, {"check", "--help"}, {"plan", "--help"}, {"list", "--help"}, {"bootstrap", "--help"}} {
		var out, errs bytes.Buffer
		if code := runForPeople(t.Context(), args, &out, &errs); code != exitOK {
			t.Fatalf("%v: exit code %d: %s", args, code, errs.String())
		}
		help := out.String()
		if _, flags, ok := strings.Cut(out.String(), "Flags:\n"); ok {
			help = flags
		}
		if help == "" || !strings.Contains(string(page), "\n"+help+"```\n") {
			t.Errorf("%v: the page does not show\n%s", args, help)
		}
	}
}

// TestTutorialShowsCheck: what the first tutorial shows of check is what check
// prints, but for IDs, times and the name of the project.
func TestTutorialShowsCheck(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/tutorials/first-job.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(page), "$ build/bin/fleeting-plugin-openstack check --config config.toml\n")
	shown, _, closed := strings.Cut(after, "```")
	if !ok || !closed {
		t.Fatal("the tutorial shows no check")
	}
	d := newDesk(t, goodServer+"key_name = \"fleeting\"\n")
	key := filepath.Join(filepath.Dir(d.config), "id_ed25519")
	if err := os.WriteFile(key, []byte("-----BEGIN OPENSSH PRIVATE KEY-----\n-----END OPENSSH PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.rewrite(t, "password = \"secret\"", fmt.Sprintf("key_path = %q", key))
	program := filepath.Join(filepath.Dir(d.config), program)
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	d.rewrite(t, `"registry.example/fleeting-plugin-openstack:1"`, "'"+program+"'")
	d.rewrite(t, "concurrent = 3", "concurrent = 4")
	d.rewrite(t, "cloud = \""+sim.CloudTiny, "cloud = \""+sim.CloudPassword)
	d.rewrite(t, "username = \"runner\"\n", "username = \"runner\"\nprotocol_port = 2222\n")
	code, out, errs := d.run(t, "check")
	out = strings.ReplaceAll(out, key, "cloud/id_ed25519")
	out = strings.ReplaceAll(out, program, "/home/you/fleeting-plugin-openstack/build/bin/fleeting-plugin-openstack")
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	varies := regexp.MustCompile(`\([0-9a-f-]{32,36}\)|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|project \w+`)
	if diff := cmp.Diff(varies.ReplaceAllString(shown, "…"), varies.ReplaceAllString(out, "…")); diff != "" {
		t.Errorf("check (-tutorial +printed):\n%s", diff)
	}
}
