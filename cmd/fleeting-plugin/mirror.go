package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// mirrorCmd has the flags of mirror.
type mirrorCmd struct {
	app       *cli.App
	flags     *installFlags
	config    string
	platforms []string
}

// layoutPrefix tells the folder of a layout from a registry's name; flags and
// arguments that name a folder anyway take it, too.
const layoutPrefix = "oci:"

// newMirrorCmd copies plugins with what vouches for them.
func newMirrorCmd(app *cli.App) *cobra.Command {
	c := &mirrorCmd{app: app}
	cmd := &cobra.Command{
		Use:   "mirror [REF...] DESTINATION",
		Short: "Copy plugins with their signatures, SBOMs and provenance",
		Long: `Verify plugins and copy them, byte for byte, with the signatures and attestations
of the policy's signers, and with the SBOMs and other documents that these signers
attest or sign. Anything else that is attached is not copied, and is named.
Signatures at the destination stay; new ones are added to them.

DESTINATION is a tar file (FILE.tar), an OCI layout folder (oci:DIR), or a
registry with a path. One plugin is copied to exactly that repository. Several
plugins, and plugins from a tar file or layout, are copied to repositories below
it, named by the last part of their name. If two plugins have the same last part,
copy one at a time. If the destination has a version's tag with other content,
nothing is copied. With --from and without REF, the whole mirror is copied.

With --only-platform the index stays as it is, because the index is what was
signed, and names platforms that are not there. Layouts and tar files accept that.
Registries accept it only if they are configured to; if not, nothing is tagged.`,
		Example: `  fleeting-plugin mirror registry.example.com/team/plugin:1 mirror.tar
  fleeting-plugin mirror --config config.toml mirror.tar
  fleeting-plugin mirror --from mirror.tar registry.internal.example/plugins`,
		Args: cli.Args(1, -1),
	}
	c.flags = newFetchFlags(app, cmd)
	cmd.Flags().StringVar(&c.config, "config", "", "mirror every plugin that this runner configuration `FILE` names")
	cmd.Flags().StringArrayVar(&c.platforms, "only-platform", nil, "copy only this `PLATFORM` (repeatable)")
	cmd.RunE = c.flags.closing(func(cmd *cobra.Command, args []string) error {
		return c.run(cmd.Context(), args[:len(args)-1], args[len(args)-1])
	})
	return cmd
}

func (c *mirrorCmd) run(ctx context.Context, args []string, to string) error {
	if err := checkDestination(to); err != nil {
		return err
	}
	refs, err := c.references(ctx, args)
	if err != nil {
		return err
	}
	i, err := c.flags.mirrorInstaller(ctx)
	if err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(to, layoutPrefix):
		return c.toLayout(ctx, i, refs, strings.TrimPrefix(to, layoutPrefix))
	case strings.HasSuffix(to, ".tar"):
		return c.toTar(ctx, i, refs, to)
	}
	return c.toRegistry(ctx, i, refs, to)
}

// checkDestination says, before anything is fetched for it, that a destination is
// none.
func checkDestination(to string) error {
	const next = "name FILE.tar, oci:DIR, or a registry with a path, as in registry.example.com/plugins"
	if dir, ok := strings.CutPrefix(to, layoutPrefix); ok {
		if info, err := os.Stat(dir); dir == "" || err == nil && !info.IsDir() {
			return cli.Hint(cli.Usagef("destination %q: not a folder", to), next)
		}
		return nil
	}
	if strings.HasSuffix(to, ".tar") {
		return canHold(to)
	}
	ref, err := installer.ParseReference(to)
	if err != nil {
		return cli.Hint(cli.WithCode(fmt.Errorf("destination: %w", err), cli.Usage), next)
	}
	host, rest, _ := strings.Cut(to, "/")
	switch {
	case ref.Registry() == installer.DefaultRegistry && host != installer.DefaultRegistry:
		return cli.Hint(cli.Usagef("destination %q: it names no registry", to), next)
	case strings.ContainsAny(rest, ":@"):
		return cli.Hint(cli.Usagef("destination %q: omit the tag: the plugins keep their own tags", to), next)
	}
	return nil
}

// canHold says, before anything is fetched for it, that a file cannot be written
// for lack of its folder.
func canHold(file string) error {
	_, err := os.Stat(filepath.Dir(file))
	return cli.Hint(cli.WithCode(err, cli.Usage), "make the folder first, or name another file")
}

func (c *mirrorCmd) references(ctx context.Context, args []string) ([]installer.Reference, error) {
	if len(args) > 0 || c.config != "" || c.flags.from == "" {
		if len(args) == 0 && c.config == "" {
			return nil, cli.Usagef("nothing to copy: name a REF, --config or --from")
		}
		return wanted(c.app, args, c.config)
	}
	layout, err := c.flags.layout(ctx)
	if err != nil {
		return nil, err
	}
	return layout.References(ctx)
}

// mirrorInstaller verifies, and has no folder to install into.
func (f *installFlags) mirrorInstaller(ctx context.Context) (*installer.Installer, error) {
	policy, err := f.policy()
	if err != nil {
		return nil, err
	}
	source, err := f.source(ctx)
	if err != nil {
		return nil, err
	}
	i, err := installer.New(policy, append(f.signaturePlace(), installer.WithSource(source), showing(f.app),
		installer.WithClock(f.app.Now), installer.WithLogger(f.app.Logger()))...)
	return i, cli.WithCode(err, cli.Usage)
}

func (c *mirrorCmd) toTar(ctx context.Context, i *installer.Installer, refs []installer.Reference, to string) error {
	dir, err := c.flags.temporary()
	if err != nil {
		return err
	}
	copied, err := c.copyToLayout(ctx, i, refs, dir)
	if err != nil {
		return err
	}
	err = durable.Write(to, 0o644, func(w io.Writer) error { return installer.WriteLayoutTar(ctx, dir, w) })
	if err != nil {
		return err
	}
	return c.print(copied, func(installer.Reference) string { return to })
}

func (c *mirrorCmd) toLayout(ctx context.Context, i *installer.Installer, refs []installer.Reference, dir string) error {
	copied, err := c.copyToLayout(ctx, i, refs, dir)
	if err != nil {
		return err
	}
	return c.print(copied, func(installer.Reference) string { return dir })
}

func (c *mirrorCmd) copyToLayout(ctx context.Context, i *installer.Installer, refs []installer.Reference, dir string) ([]installer.Mirrored, error) {
	layout, err := installer.CreateLayout(ctx, dir)
	if err != nil {
		return nil, err
	}
	// Who imports the mirror needs it to verify what was signed without a key; it
	// is to be named in their policy, nothing takes it from here by itself.
	root := filepath.Join(dir, "trusted-root.json")
	if err := durable.NoLink(root); err != nil {
		return nil, err
	}
	if err := durable.WriteFile(root, installer.PublicTrustedRootJSON(), 0o644); err != nil {
		return nil, err
	}
	return c.copyAll(ctx, i, refs, func(ref installer.Reference) (installer.Destination, error) {
		return layout.Destination(ref), nil
	})
}

func (c *mirrorCmd) toRegistry(ctx context.Context, i *installer.Installer, refs []installer.Reference, to string) error {
	registries, err := c.flags.registries()
	if err != nil {
		return err
	}
	repository := func(ref installer.Reference) string {
		if len(refs) > 1 || len(c.flags.from) > 0 {
			return path.Join(to, path.Base(ref.Repository()))
		}
		return to
	}
	if err := apart(refs, repository); err != nil {
		return err
	}
	copied, err := c.copyAll(ctx, i, refs, func(ref installer.Reference) (installer.Destination, error) {
		return registries.Destination(repository(ref))
	})
	if err != nil {
		return err
	}
	return c.print(copied, repository)
}

// apart refuses two plugins that would go to one repository.
func apart(refs []installer.Reference, repository func(installer.Reference) string) error {
	names := map[string]string{}
	for _, ref := range refs {
		to := repository(ref)
		if other, ok := names[to]; ok && other != ref.Name() {
			return cli.Hint(cli.Usagef("%s and %s would both go to %s", other, ref.Name(), to),
				"copy one at a time, each to a place of its own: fleeting-plugin mirror REF DESTINATION")
		}
		names[to] = ref.Name()
	}
	return nil
}

func (c *mirrorCmd) copyAll(ctx context.Context, i *installer.Installer, refs []installer.Reference, to func(installer.Reference) (installer.Destination, error)) ([]installer.Mirrored, error) {
	var copied []installer.Mirrored
	err := each(ctx, refs, func(ref installer.Reference) error {
		destination, err := to(ref)
		if err != nil {
			return err
		}
		one, err := i.Mirror(ctx, ref, destination, installer.MirrorOptions{Platforms: c.platforms})
		if err == nil {
			copied = append(copied, one)
			c.app.Statusf("copied %s %s: %d manifests, %d blobs, %d of them new", ref.Name(), one.Version, one.Manifests, one.Blobs, one.Uploaded)
			c.leftOut(one)
		}
		return err
	})
	return copied, err
}

// shownLeftOut is how much of what was left out is named on the terminal.
const shownLeftOut = 10

// leftOut names what was not copied.
func (c *mirrorCmd) leftOut(one installer.Mirrored) {
	for n, left := range one.LeftOut {
		if n == shownLeftOut {
			c.app.Statusf("not copied: %d more; --output json names them", len(one.LeftOut)-n)
			return
		}
		c.app.Statusf("not copied: %s, attached to %s: %s", cmp.Or(left.Digest.String(), "what could not be read"), left.Subject, left.Reason)
	}
}

// vouching says so where the digest that was copied is not what was verified.
func vouching(m installer.Mirrored) string {
	if m.Verification.Covers == "" || m.Digest() == m.Resolution.Digest() {
		return ""
	}
	return "; the index is not signed, each copied platform is"
}

func (c *mirrorCmd) print(copied []installer.Mirrored, to func(installer.Reference) string) error {
	return c.app.Print(copied, func(p *cli.Page) {
		for _, one := range copied {
			p.Printf("%s@%s to %s as %s%s\n", one.Reference.Name(), one.Resolution.Digest(), to(one.Reference), strings.Join(one.Tags, ", "), vouching(one))
		}
	})
}
