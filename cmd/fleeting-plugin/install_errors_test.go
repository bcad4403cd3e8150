package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// TestInstallerHints: what was refused for a reason that its user can mend says
// how, although it is a refusal like others.
func TestInstallerHints(t *testing.T) {
	t.Parallel()
	app := cli.New(nil, nil, &bytes.Buffer{}, func(string) (string, bool) { return "", false })
	mapInstallerErrors(app)
	for err, want := range map[error]string{
		installer.Reason("unknown-log"): "--trusted-root",
		installer.Reason("too-large"):   "the registry's administrator",
		installer.Reason("unsigned"):    "ask the publisher",
		errors.New("other"):             "compare what is published",
	} {
		refusal := fmt.Errorf("verifying x: %w", errors.Join(installer.ErrRefused, fmt.Errorf("key: %w", err)))
		if hint := app.HintOf(refusal); app.CodeOf(refusal) != cli.Refused || !strings.Contains(hint, want) {
			t.Errorf("%v: exit code %d, hint %q; want %q in it", err, app.CodeOf(refusal), hint, want)
		}
	}
}

// TestReasonsAreKnown: the reasons that commands look for are those that package
// installer documents, and all of them that end a command have a hint.
func TestReasonsAreKnown(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	table, err := os.ReadFile(filepath.Join("..", "..", "installer", "errors.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^//\t(?:Err\w+)? +([a-z-]+)  +\w`).FindAllSubmatch(table, -1) {
		documented[string(m[1])] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(documented) == 0 {
		t.Fatal(err, documented)
	}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`installer\.Reason\("([^"]*)"\)`).FindAllSubmatch(source, -1) {
			if !documented[string(m[1])] {
				t.Errorf("%s: no reason %q is documented", name, m[1])
			}
		}
	}
	app := cli.New(nil, nil, &bytes.Buffer{}, func(string) (string, bool) { return "", false })
	mapInstallerErrors(app)
	// These are mistakes of the program, or of doctor's findings only.
	inside := []string{"no-folder", "other-policy", "receipt"}
	for word := range documented {
		if hinted := app.HintOf(installer.Reason(word)) != ""; hinted == slices.Contains(inside, word) {
			t.Errorf("reason %s has a hint: %t", word, hinted)
		}
	}
}

func TestNameFor(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"registry.example.com:5050/team/plugin:1": "registry.example.com/team/plugin",
		"127.0.0.1:5050/team/plugin":              "127.0.0.1/team/plugin",
		"localhost:5050/plugin":                   "registry.example.com/team/plugin",
		"[::1]:5050/plugin":                       "registry.example.com/team/plugin",
		"registry.example.com/con":                "registry.example.com/team/plugin",
	} {
		ref, err := installer.ParseReference(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := nameFor(ref); got != want {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
	}
}
