package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"fleeting-plugin": func() {
			if err := confine(os.Getenv("TEST_FILE_SIZE")); err != nil {
				panic(err)
			}
			os.Exit(mainChecked())
		},
		"measured": runMeasured,
	})
}

// mainChecked is the program, which also checks what it writes with --output json.
func mainChecked() int {
	var root *cobra.Command
	var app *cli.App
	var out bytes.Buffer
	code := cli.Main(func(a *cli.App) *cobra.Command {
		app = a
		app.Out = io.MultiWriter(app.Out, &out)
		root = NewRootCmd(app)
		return root
	})
	cmd, _, err := root.Find(os.Args[1:])
	if err != nil || app.Output != cli.JSON || out.Len() == 0 || slices.Contains(os.Args, "--help") {
		return code
	}
	if err := checkOutput(strings.TrimPrefix(cmd.CommandPath(), "fleeting-plugin "), out.Bytes()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	return code
}

// update rewrites the golden parts of the scripts.
var update = flag.Bool("update", false, "rewrite golden parts of testdata/script")

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               publishing(t),
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "serve": serve, "readenv": readenv},
	})
}

// exits runs a program and checks its exit code: exits CODE PROGRAM ARG...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("running %s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
