package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/scratch"
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
	from := strings.TrimPrefix(f.from, layoutPrefix)
	info, err := os.Stat(from)
	if err != nil {
		return nil, cli.Hint(cli.WithCode(fmt.Errorf("--from %s: %w", f.from, err), cli.Usage), nextMirror)
	}
	if info.IsDir() {
		layout, err := installer.OpenLayout(ctx, from)
		return layout, f.noMirror(ctx, err)
	}
	archive, err := os.Open(from)
	if err != nil {
		return nil, cli.Hint(cli.WithCode(err, cli.Usage), nextMirror)
	}
	defer func() { _ = archive.Close() }()
	dir, err := f.temporary()
	if err != nil {
		return nil, err
	}
	if err := installer.ExtractLayoutTar(ctx, archive, dir); err != nil {
		return nil, f.noMirror(ctx, err)
	}
	layout, err := installer.OpenLayout(ctx, dir)
	return layout, f.noMirror(ctx, err)
}

// noMirror says of --from that it is no mirror: a file of the user's is wrong,
// whatever is wrong with it. What this machine fails at is something else.
func (f *installFlags) noMirror(ctx context.Context, err error) error {
	ofFile := []error{installer.Reason("corrupt"), installer.Reason("hostile"), installer.Reason("limit"), installer.ErrNotFound, installer.ErrAnswer, installer.Reason("too-large")}
	if err == nil || ctx.Err() != nil || !slices.ContainsFunc(ofFile, func(e error) bool { return errors.Is(err, e) }) {
		return err
	}
	return cli.Hint(cli.WithCode(fmt.Errorf("--from %s: %w", f.from, err), cli.Usage), nextMirror)
}

// temporary makes a folder that close removes.
func (f *installFlags) temporary() (string, error) {
	work, err := scratch.New()
	if err != nil {
		return "", err
	}
	f.cleanup = append(f.cleanup, work.Close)
	dir := filepath.Join(work.Dir, "layout")
	return dir, os.Mkdir(dir, 0o700)
}

func (f *installFlags) close() error {
	var problems []error
	for _, clean := range f.cleanup {
		problems = append(problems, clean())
	}
	f.cleanup = nil
	return errors.Join(problems...)
}
