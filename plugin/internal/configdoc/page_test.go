package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPageIsUpToDate fails when a setting changed and the page did not.
func TestPageIsUpToDate(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../config.go")
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(source)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run go generate ./plugin (-want +got):\n%s", diff)
	}
	for _, key := range []string{"`cloud`", "`server.image`", "`server.metadata`", "`build_timeout`"} {
		if !strings.Contains(string(got), "| "+key+" |") {
			t.Errorf("the page has no row for %s", key)
		}
	}
}

func TestSettingWithoutCommentIsRefused(t *testing.T) {
	t.Parallel()
	_, err := generate([]byte("package p\ntype Config struct {\n\tCloud string `json:\"cloud\"`\n}\n"))
	if err == nil || !strings.Contains(err.Error(), "cloud") {
		t.Errorf("got %v, want an error that names the setting", err)
	}
}

// TestCloudsPageIsFresh: every key that is understood has a row.
func TestCloudsPageIsFresh(t *testing.T) {
	t.Parallel()
	got, err := os.ReadFile("../../../docs/reference/clouds-yaml.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, cloudsPage()) {
		t.Error("docs/reference/clouds-yaml.md is stale: go generate ./plugin")
	}
}
