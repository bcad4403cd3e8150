//go:build e2e

package e2e_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// fixedFolders are where container software works whatever it is told.
func fixedFolders() []string {
	return []string{
		"/opt/containerd", "/run/containerd", "/run/nri", "/run/runc", "/run/libpod", // containerd, its shims and podman
		"/var/lib/kubelet", "/var/log/containers", // the kubelet
	}
}

// controlGroups are what container software makes below each hierarchy of
// control groups, or in the one that there is.
func controlGroups() []string {
	var found []string
	for _, name := range []string{"default", "k8s.io", "libpod_parent"} {
		for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
			groups, _ := filepath.Glob(filepath.Join(root, name)) // the pattern is a good one
			found = append(found, groups...)
		}
	}
	return found
}

// leaveNoTrace removes, after the test, what was not there before it.
func leaveNoTrace(t *testing.T) {
	t.Helper()
	folders := slices.DeleteFunc(fixedFolders(), exists)
	groups := controlGroups()
	t.Cleanup(func() {
		for _, folder := range folders {
			if err := os.RemoveAll(folder); err != nil {
				t.Error(err)
			}
		}
		for _, group := range controlGroups() {
			if slices.Contains(groups, group) {
				continue
			}
			if err := removeGroup(group); err != nil {
				t.Error(err)
			}
		}
	})
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// removeGroup removes a control group and those in it. Only their folders can be
// removed, and only when nothing runs in them.
func removeGroup(group string) error {
	var groups []string
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return err
	})
	slices.Reverse(groups) // the innermost first
	for _, path := range groups {
		if removed := os.Remove(path); !errors.Is(removed, fs.ErrNotExist) { // several hierarchies may be one
			err = errors.Join(err, removed)
		}
	}
	return err
}
