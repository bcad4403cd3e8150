package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/docgen"
)

// referencePage is written from the command tree; `make docs` writes it anew.
const referencePage = "../../docs/reference/fleeting-plugin.md"

func TestReferenceIsFresh(t *testing.T) {
	t.Parallel()
	root := NewRootCmd(cli.New(nil, nil, nil, nil))
	got := docgen.Markdown(root, "<!-- Written by `make docs`; do not edit. -->", topics()...)
	if *update {
		if err := os.WriteFile(referencePage, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is stale, run make docs (-page +commands):\n%s", referencePage, diff)
	}
}
