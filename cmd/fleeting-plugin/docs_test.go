package main

import (
	"slices"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/docstest"
)

// TestDocumentedCommands parses every fleeting-plugin command of the
// documentation: the command, its flags and its arguments have to exist.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	const repository = "../.."
	pages, err := docstest.Pages(repository)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range pages {
		blocks, err := docstest.Blocks(repository, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks {
			for _, line := range block.Commands() {
				words := docstest.Words(line)
				program := slices.Index(words, "fleeting-plugin")
				if program < 0 {
					continue
				}
				checked++
				if err := parses(words[program+1:]); err != nil {
					t.Errorf("%s: %s: %v", block.Where(), line, err)
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d commands found", checked)
	}
}

// parses takes a command line as far as just before it would be run.
func parses(args []string) error {
	root := NewRootCmd(cli.New(nil, nil, nil, nil))
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if cmd == root {
		return cli.Usagef("no such command")
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
