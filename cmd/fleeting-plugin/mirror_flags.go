package main

import (
	"context"
	"errors"
	"os"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// registries opens registries with what the flags, the environment and the
// credential files say.
func (f *installFlags) registries() (*installer.Registries, error) {
	opts, err := f.registry.Options()
	if err != nil {
		return nil, err
	}
	return installer.NewRegistries(opts)
}

// layout opens the mirror of --from. A tar file is unpacked into a temporary
// folder, which close removes.
func (f *installFlags) layout(ctx context.Context) (*installer.Layout, error) {
	info, err := os.Stat(f.from)
	if err != nil {
		return nil, cli.Hint(cli.WithCode(err, cli.Usage), nextMirror)
	}
	if info.IsDir() {
		return installer.OpenLayout(ctx, f.from)
	}
	archive, err := os.Open(f.from)
	if err != nil {
		return nil, cli.Hint(cli.WithCode(err, cli.Usage), nextMirror)
	}
	defer func() { _ = archive.Close() }()
	dir, err := f.temporary()
	if err != nil {
		return nil, err
	}
	if err := installer.ExtractLayoutTar(ctx, archive, dir); err != nil {
		return nil, err
	}
	return installer.OpenLayout(ctx, dir)
}

// temporary makes a folder that close removes.
func (f *installFlags) temporary() (string, error) {
	dir, err := os.MkdirTemp("", "fleeting-plugin-")
	if err == nil {
		f.cleanup = append(f.cleanup, func() error { return os.RemoveAll(dir) })
	}
	return dir, err
}

func (f *installFlags) close() error {
	var problems []error
	for _, clean := range f.cleanup {
		problems = append(problems, clean())
	}
	f.cleanup = nil
	return errors.Join(problems...)
}
