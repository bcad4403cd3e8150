package lifecycle_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const (
	// prepareTo names a folder to build into, prepareFor the platform that the life
	// is to be tried on; see [TestPrepare].
	prepareTo, prepareFor = "LIFECYCLE_PREPARE", "LIFECYCLE_PLATFORM"
	// prepared names a folder that was prepared.
	prepared = "LIFECYCLE_PREPARED"
)

// versions are published one after the other.
var versions = []string{"1.0.0", "1.1.0"}

// TestPrepare builds what the life is tried with, for a system without a go
// command. It is not a test.
func TestPrepare(t *testing.T) {
	if dir := os.Getenv(prepareTo); dir != "" {
		prepare(t, dir, os.Getenv(prepareFor))
	}
}

// things returns the folder with the tool and the plugins, prepared before or now.
func things(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv(prepared); dir != "" {
		whole, err := filepath.Abs(dir)
		if err != nil {
			t.Fatal(err)
		}
		return whole
	}
	dir := t.TempDir()
	prepare(t, dir, runtime.GOOS+"/"+runtime.GOARCH)
	return dir
}

// prepare builds the tool, and in a folder for each version the plugin for the
// platform, and for another system, with companions of which one is executable.
func prepare(t *testing.T, dir, platform string) {
	t.Helper()
	build(t, filepath.Join(dir, named("fleeting-plugin", platform)), platform, "0.0.0", "../../../cmd/fleeting-plugin")
	other := "linux/amd64"
	if platform == other {
		other = "windows/amd64"
	}
	for _, version := range versions {
		dist := filepath.Join(dir, version)
		build(t, filepath.Join(dist, platform, named("plugin", platform)), platform, version, "../../../cmd/fleeting-plugin-openstack")
		build(t, filepath.Join(dist, other, named("plugin", other)), other, version, "../../../cmd/fleeting-plugin-openstack")
		for _, companion := range []struct {
			name string
			mode os.FileMode
		}{{"NOTICE", 0o644}, {"helper", 0o755}} {
			path := filepath.Join(dist, "linux/amd64", companion.name)
			err := os.MkdirAll(filepath.Dir(path), 0o755)
			if err := errors.Join(err, os.WriteFile(path, []byte("#!/bin/sh\n"), companion.mode)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func named(program, platform string) string {
	if strings.HasPrefix(platform, "windows/") {
		return program + ".exe"
	}
	return program
}

func build(t *testing.T, path, platform, version, pkg string) {
	t.Helper()
	system, arch, _ := strings.Cut(platform, "/")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+version, "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s for %s: %v\n%s", pkg, platform, err, out)
	}
}
