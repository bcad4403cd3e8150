package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestArguments: what is left over or missing ends the command before anything
// is built.
func TestArguments(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		want string
	}{
		{nil, "usage"},
		{[]string{"make"}, `unknown command "make"`},
		// What `make dist` ran when the version was empty.
		{[]string{"build", "-version", "-revision", "abc", "-platforms", "linux/amd64"}, `unexpected argument "abc"`},
		{[]string{"build", "-version", "1.2.3", "linux/amd64"}, `unexpected argument "linux/amd64"`},
		{[]string{"build", "-version", "1.2.3", "-platform", "linux/amd64"}, "did you mean --platforms?"},
		{[]string{"build"}, `-version: invalid version ""`},
		{[]string{"build", "-version", "v1.2.3"}, `invalid version "v1.2.3"`},
		{[]string{"build", "-version", "1.2.3+abc"}, "cannot hold the +abc"},
		{[]string{"build", "-version", "1.2.3`id`"}, "invalid version"},
		{[]string{"repro", "-version", "1.2.3", "again"}, `unexpected argument "again"`},
		{[]string{"compare", "a"}, "takes 2 folders, not 1"},
		{[]string{"compare", "a", "b", "c"}, "takes 2 folders, not 3"},
		{[]string{"compare", "-version", "1.2.3", "a", "b"}, "unknown flag --version"},
		{[]string{"sums"}, "takes 1 folders, not 0"},
		{[]string{"sums", "a", "b"}, "takes 1 folders, not 2"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), tt.args, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	write := func(dir, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ a, b, want string }{
		{"same", "same", ""},
		{"one", "other", "differ, or are empty: file"},
	} {
		write(a, tt.a)
		write(b, tt.b)
		err := run(t.Context(), []string{"compare", a, b}, io.Discard)
		if got := err != nil; got != (tt.want != "") || got && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q and %q: error = %v, want %q", tt.a, tt.b, err, tt.want)
		}
	}
	if err := run(t.Context(), []string{"compare", t.TempDir(), t.TempDir()}, io.Discard); err == nil {
		t.Error("two empty folders are the same")
	}
}
