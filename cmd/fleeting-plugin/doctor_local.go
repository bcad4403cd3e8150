package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
)

// checkLocal looks at a plugin that the configuration names by its path, or by
// a name that the runner looks for in PATH, and starts it if start is set.
func (d *doctor) checkLocal(ctx context.Context, p installer.ConfigPlugin, start bool) {
	path, err := d.localPath(p.Text)
	if err != nil {
		d.add("configuration", "problem", fmt.Sprintf("runner %q: %v", p.Runner, err), "put the executable there, or name one that is there in plugin of [runners.autoscaler]")
		return
	}
	d.add("configuration", "ok", fmt.Sprintf("runner %q uses %s of this machine", p.Runner, path), "")
	if start {
		d.checkStart(ctx, path, path)
	}
}

// localPath finds the executable, or says why the runner would not.
func (d *doctor) localPath(text string) (string, error) {
	if places.IsPath(text) || strings.Contains(text, "/") {
		return text, executable(text)
	}
	for _, folder := range filepath.SplitList(d.app.Env("PATH")) {
		for _, ending := range d.endings() {
			if path := filepath.Join(folder, text+ending); filepath.IsAbs(path) && executable(path) == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s is in no folder of PATH", text)
}

// endings are what the name of a program may leave out.
func (d *doctor) endings() []string {
	if runtime.GOOS != "windows" {
		return []string{""}
	}
	return append([]string{""}, strings.Split(strings.ToLower(cmp.Or(d.app.Env("PATHEXT"), ".com;.exe;.bat;.cmd")), ";")...)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return &fs.PathError{Op: "start", Path: path, Err: fmt.Errorf("it is a folder")}
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return &fs.PathError{Op: "start", Path: path, Err: fmt.Errorf("it is not executable (%s)", info.Mode().Perm())}
	}
	return nil
}
