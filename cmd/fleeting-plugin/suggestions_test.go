package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// TestSuggestions holds that a mistyped name, or one of another tool, leads to ours.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"update":                   "did you mean upgrade?",
		"info":                     "did you mean inspect?",
		"ls":                       "did you mean list?",
		"rm":                       "did you mean uninstall?",
		"publish":                  "did you mean release?",
		"instal":                   "did you mean install?",
		"search":                   "registries have no search",
		"tags":                     "fleeting-plugin resolve --explain REF",
		"policy chek":              "did you mean check?",
		"policy show":              "did you mean check?",
		"policy create":            "did you mean init?",
		"xyzzy":                    "see fleeting-plugin --help",
		"help xyzzy":               "see fleeting-plugin --help",
		"help instal":              "did you mean install?",
		"completion tcsh":          "fleeting-plugin completion bash",
		"verify x --kye y":         "did you mean --key?",
		"install x --identity y":   "--certificate-identity",
		"install x --json":         "--output json",
		"install x -o json":        "--output json",
		"install x --yes":          "no command asks for confirmation",
		"push x y --force":         "--replace",
		"install x --insecure":     "--insecure-plain-http HOST[:PORT]",
		"install x --no-verify":    "--insecure-no-verification",
		"install x --version 1":    "write the version after the name",
		"install x --tag 1":        "write the version after the name",
		"install x --platfrom a":   "did you mean --platform", //nolint:misspell // on purpose
		"install x --dry-run":      "fleeting-plugin verify x",
		"list --format json":       "--output json",
		"list --xyzzy":             "see fleeting-plugin list --help",
		"install x --prefix /opt":  "--dir DIR",
		"release x y --debug":      "--verbose",
		"package x --bundle y":     "fleeting-plugin verify-files",
		"uninstall x --platform y": "see fleeting-plugin uninstall --help",
	} {
		var stderr bytes.Buffer
		app := cli.New(nil, nil, &stderr, nil)
		code := app.Run(t.Context(), NewRootCmd(app), strings.Fields(line))
		if code != cli.Usage || !strings.Contains(stderr.String(), "\nnext: ") || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit code %d, want %d\n%s\nwant %q", line, code, cli.Usage, &stderr, want)
		}
	}
}

// TestSuggestedFlagsExist holds that hints name flags and commands that there are,
// and that no hint hides a flag that a command has.
func TestSuggestedFlagsExist(t *testing.T) {
	t.Parallel()
	root := NewRootCmd(cli.New(nil, nil, nil, nil))
	flags := map[string]bool{"bundle": true}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
	leaves(root, func(_ string, cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
	})
	for other, hint := range flagsElsewhere() {
		for _, m := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(hint, -1) {
			if !flags[m[1]] {
				t.Errorf("the hint for --%s names --%s, which no command has", other, m[1])
			}
		}
	}
}
