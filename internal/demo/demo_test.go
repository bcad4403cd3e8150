package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// TestRun tells the whole story, built for this machine only.
func TestRun(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	var out strings.Builder
	err := Run(t.Context(), Options{
		Source: "../..", Out: &out, Environ: os.Environ(),
		Platforms: []artifact.Platform{artifact.HostPlatform()},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"refused, with exit code 3",
		"signed by key",
		"hello from runner-",
		"the cloud has no server left",
		"11. Scale to zero",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the story does not say %q:\n%s", want, out.String())
		}
	}
	checkRecording(t, out.String())
	left, err := filepath.Glob(filepath.Join(tmp, "*demo*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRunInterrupted(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	err := Run(ctx, Options{Source: "../..", Out: &out, Environ: os.Environ()})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that of the context", err)
	}
	left, err := filepath.Glob(filepath.Join(tmp, "*demo*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestStoryRefused(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &story{out: &out}
	for _, tt := range []struct {
		name, script string
		want         string
	}{
		{"with the code", "exit 3", ""},
		{"with another code", "echo no >&2; exit 1", "exit code 3 expected"},
		{"not at all", "exit 0", "should have been refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := s.refused(t.Context(), command{program: "/bin/sh", args: []string{"-c", tt.script}}, 3)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
		})
	}
}
