package main

import (
	"bytes"
	"errors"
	"fmt"
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
		installer.ErrUnknownLog: "--trusted-root",
		installer.ErrTooLarge:   "the registry's administrator",
		installer.ErrUnsigned:   "ask the publisher",
		errors.New("other"):     "compare what is published",
	} {
		refusal := fmt.Errorf("verifying x: %w", errors.Join(installer.ErrRefused, fmt.Errorf("key: %w", err)))
		if hint := app.HintOf(refusal); app.CodeOf(refusal) != cli.Refused || !strings.Contains(hint, want) {
			t.Errorf("%v: exit code %d, hint %q; want %q in it", err, app.CodeOf(refusal), hint, want)
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
