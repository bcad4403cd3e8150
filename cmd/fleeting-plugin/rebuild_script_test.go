package main

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// serve serves a folder over HTTP for the rest of the script, as git's dumb
// protocol wants it, and sets $SERVER: serve DIR.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve DIR")
	}
	server := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	ts.Defer(server.Close)
	ts.Setenv("SERVER", server.URL)
}

// goCaches are the folders of the go command that this test runs under; scripts
// have no home to find them in.
func goCaches(t *testing.T) map[string]string {
	t.Helper()
	caches := map[string]string{}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		caches[name] = strings.TrimSpace(string(out))
	}
	return caches
}

// readenv sets a variable to the only line of a file: readenv NAME FILE.
func readenv(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: readenv NAME FILE")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}
