package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// leaves are the commands that do something, by what follows the program's name.
func leaves(cmd *cobra.Command, visit func(name string, cmd *cobra.Command)) {
	for _, child := range cmd.Commands() {
		if child.HasSubCommands() {
			leaves(child, visit)
			continue
		}
		_, name, _ := strings.Cut(child.CommandPath(), " ")
		visit(name, child)
	}
}

// TestWrongUsage holds that every command ends with the same code for what is
// wrong with a command line.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	leaves(NewRootCmd(cli.New(nil, nil, nil, nil)), func(name string, _ *cobra.Command) {
		for _, wrong := range []string{"--no-such-flag", "--output=xml", "--quiet=maybe"} {
			app := cli.New(nil, nil, nil, nil)
			if code := app.Run(t.Context(), NewRootCmd(app), append(strings.Fields(name), wrong)); code != cli.Usage {
				t.Errorf("%s %s: exit code %d, want %d", name, wrong, code, cli.Usage)
			}
		}
	})
}

// TestExitCodesAreShown holds that for every command some script shows each of
// the exit codes that docs/reference/exit-codes.md promises for its kind: 2 where
// something can be wrong with what it is given, 3 where a policy decides, 4 where
// a reference can stand for nothing, 5 where a registry is asked.
func TestExitCodesAreShown(t *testing.T) {
	t.Parallel()
	shown := shownCodes(t)
	// These look at credentials and ask nobody; package asks for base images only.
	offline := []string{"doctor", "logout", "package"}
	// These show what the policy would say, or ask it only whose versions count.
	undecided := []string{"resolve", "outdated", "push", "release"}
	leaves(NewRootCmd(cli.New(nil, nil, nil, nil)), func(name string, cmd *cobra.Command) {
		if slices.Contains([]string{"help", "version", "man"}, name) {
			return
		}
		has := func(flag string) bool { return cmd.Flags().Lookup(flag) != nil }
		asks := has("registry-config") && !slices.Contains(offline, name)
		want := map[cli.Code]bool{
			cli.Usage:    true,
			cli.Refused:  has("policy") && asks && !slices.Contains(undecided, name),
			cli.NotFound: regexp.MustCompile(`\bREF\b`).MatchString(cmd.Use) && name != "release",
			cli.Network:  asks,
		}
		for code, wanted := range want {
			if wanted && !slices.Contains(shown[name], code) {
				t.Errorf("no script shows that %s ends with exit code %d", name, code)
			}
		}
	})
}

// shownCodes collects the codes that scripts check, by command.
func shownCodes(t *testing.T) map[string][]cli.Code {
	t.Helper()
	line := regexp.MustCompile(`(?m)^exits (\d) fleeting-plugin ((?:policy )?[a-z-]+)`)
	shown := map[string][]cli.Code{}
	err := filepath.WalkDir(filepath.Join("testdata", "script"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, m := range line.FindAllStringSubmatch(string(content), -1) {
			code, _ := strconv.Atoi(m[1])
			shown[m[2]] = append(shown[m[2]], cli.Code(code))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return shown
}
