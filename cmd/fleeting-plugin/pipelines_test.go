//go:build unix

package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/rehearsal/actions"
)

// TestPipelines runs the scripts of the GitHub Action and of the GitLab component,
// as their definitions say: the same folder makes the same artifact.
func TestPipelines(t *testing.T) {
	t.Parallel()
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	prepare := publishing(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script/pipelines",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TOP", top)
			return prepare(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "action": runAction, "component": runComponent},
	})
}

// inputs reads NAME=VALUE arguments; a value of @FILE is what the file holds.
func inputs(ts *testscript.TestScript, args []string) map[string]string {
	all := map[string]string{}
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		if !found {
			ts.Fatalf("%s: want NAME=VALUE", arg)
		}
		if file, ok := strings.CutPrefix(value, "@"); ok {
			value = ts.ReadFile(file)
		}
		all[name] = value
	}
	return all
}

// start runs a script with variables, and puts those back that were there.
func start(ts *testscript.TestScript, neg bool, env map[string]string, script string) {
	before := map[string]string{}
	for name, value := range env {
		before[name] = ts.Getenv(name)
		ts.Setenv(name, value)
	}
	err := ts.Exec("bash", "-e", "-c", script)
	for name, value := range before {
		ts.Setenv(name, value)
	}
	if (err != nil) != neg {
		ts.Fatalf("the script ends with %v", err)
	}
}

// runAction runs the action: action NAME=VALUE..., and outputs in $OUTPUT.
func runAction(ts *testscript.TestScript, neg bool, args []string) {
	folder := filepath.Join(ts.Getenv("TOP"), ".github", "actions", "publish")
	content, err := os.ReadFile(filepath.Join(folder, "action.yml"))
	ts.Check(err)
	action, err := actions.ParseAction(content)
	ts.Check(err)
	script, env, err := action.Script(inputs(ts, args), map[string]string{
		"github.action_path": folder, "github.actor": "actor", "github.token": "token",
	})
	ts.Check(err)
	env["GITHUB_ACTION_PATH"], env["GITHUB_OUTPUT"] = folder, ts.MkAbs("output")
	env["TOOL"] = tool(ts)
	start(ts, neg, env, script)
}

// runComponent runs the job of the component: component NAME=VALUE..., where names
// in capitals are variables that the including pipeline sets for the job.
func runComponent(ts *testscript.TestScript, neg bool, args []string) {
	content, err := os.ReadFile(filepath.Join(ts.Getenv("TOP"), "templates", "publish.yml"))
	ts.Check(err)
	given := inputs(ts, args)
	variables := map[string]string{}
	for name, value := range given {
		if strings.ToUpper(name) == name {
			variables[name] = value
			delete(given, name)
		}
	}
	script, env, err := actions.Component(content, "publish-fleeting-plugin", given, map[string]string{
		"CI_REGISTRY_USER": "actor", "CI_REGISTRY_PASSWORD": "token", "CI_REGISTRY_IMAGE": "registry.example.com/group/plugin", "CI_COMMIT_TAG": "v1.2.3",
	})
	ts.Check(err)
	maps.Copy(env, variables)
	// What go install would bring is there: the tool, and the module.
	root := ts.MkAbs("go")
	module := filepath.Join(root, "mod", "github.com", "radome-io")
	ts.Check(os.MkdirAll(module, 0o750))
	ts.Check(os.MkdirAll(filepath.Join(root, "bin"), 0o750))
	stand := "#!/bin/sh\ncase \"$*\" in\n'env GOPATH') echo '" + root + "' ;;\n'env GOMODCACHE') echo '" + root + "/mod' ;;\ninstall*) echo \"$@\" >>'" + root + "/log' ;;\n*) exit 1 ;;\nesac\n"
	ts.Check(os.WriteFile(filepath.Join(root, "bin", "go"), []byte(stand), 0o700)) // #nosec G306 -- it is executed
	_ = os.Remove(filepath.Join(root, "bin", "fleeting-plugin"))
	ts.Check(os.Symlink(tool(ts), filepath.Join(root, "bin", "fleeting-plugin")))
	link := filepath.Join(module, "fleeting-plugin-openstack@"+given["tool-version"])
	_ = os.Remove(link)
	ts.Check(os.Symlink(ts.Getenv("TOP"), link))
	env["PATH"] = filepath.Join(root, "bin") + string(os.PathListSeparator) + ts.Getenv("PATH")
	start(ts, neg, env, script)
}

// tool returns the fleeting-plugin in the script's path.
func tool(ts *testscript.TestScript) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, "fleeting-plugin")
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	ts.Fatalf("there is no fleeting-plugin in the path")
	return ""
}
