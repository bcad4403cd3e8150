package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// lockName is the file beside the runner's configuration.
const lockName = "fleeting-plugins.lock"

// readLock reads a lock; one that is not there is empty if that is allowed.
func readLock(name string, mayMiss bool) (installer.Lock, error) {
	content, err := readInput(name, "write it first: fleeting-plugin lock")
	if errors.Is(err, fs.ErrNotExist) && mayMiss {
		return installer.Lock{}, nil
	}
	if err != nil {
		return installer.Lock{}, err
	}
	lock, err := installer.ParseLock(content)
	if err != nil {
		return installer.Lock{}, fmt.Errorf("%s: %w", name, err)
	}
	return lock, nil
}

// changeFlags allow changes against what was chosen before.
func changeFlags(cmd *cobra.Command) *installer.ChangeOptions {
	var opts installer.ChangeOptions
	cmd.Flags().BoolVar(&opts.AcceptSignerChange, "accept-signer-change", false, "let another signer of the policy take over")
	cmd.Flags().BoolVar(&opts.AllowDowngrade, "allow-downgrade", false, "let an older version follow a newer one")
	return &opts
}

// newLockCmd writes down what was chosen and verified.
func newLockCmd(app *cli.App) *cobra.Command {
	var file, config, as string
	var acceptDigests bool
	cmd := &cobra.Command{
		Use:   "lock [REF...]",
		Short: "Verify references and write their digests for all platforms into a lock",
		Long: `Resolve and verify references, or every plugin that the runner's configuration
names, and write the digests of all platforms into a lock. No layers are
downloaded. Entries for other references stay.

Compared with the entry in the lock, lock refuses other digests of the same
version, another signer, and an older version, and writes nothing. It prints what
changed in the lock, before and after.`,
		Example: `  fleeting-plugin lock --config /etc/gitlab-runner/config.toml
  fleeting-plugin install --locked --config /etc/gitlab-runner/config.toml`,
		Args: cli.Args(0, -1),
	}
	flags := newInstallFlags(app, cmd)
	opts := changeFlags(cmd)
	cmd.Flags().BoolVar(&acceptDigests, "accept-digest-change", false, "let the same version have other digests than in the lock")
	cmd.Flags().StringVar(&file, "lock", "", "lock `FILE` (default "+lockName+" beside the configuration)")
	cmd.Flags().StringVar(&config, "config", "", "lock every plugin that this runner configuration `FILE` names (default where the runner has it)")
	cmd.Flags().StringVar(&as, "as", "", "`NAME` that the plugin is installed under")
	cmd.RunE = flags.closing(func(cmd *cobra.Command, args []string) error {
		if as != "" && len(args) != 1 {
			return cli.Usagef("--as is for one REF")
		}
		refs, err := wanted(app, args, config)
		if err != nil {
			return err
		}
		name := placeOf(app, config).lock(file)
		if err := canHold(name); err != nil {
			return err
		}
		lock, err := readLock(name, true)
		if err != nil {
			return err
		}
		i, err := flags.installer(cmd.Context())
		if err != nil {
			return err
		}
		before := lock
		locked, err := together(cmd.Context(), refs, func(ref installer.Reference) (installer.Locked, error) {
			after, err := i.Lock(cmd.Context(), before, ref, installer.LockOptions{As: as, ChangeOptions: *opts, AcceptDigestChange: acceptDigests})
			if errors.Is(err, installer.Reason("moved")) {
				err = cli.Hint(err, "a version never changes. Ask the publisher why it did, or whether the lock was edited. To write what is published now, add --accept-digest-change")
			}
			if err != nil {
				return installer.Locked{}, err
			}
			return after.Find(ref)
		})
		if err != nil {
			return err // all or nothing: a lock of half the plugins would mislead
		}
		for _, one := range locked {
			lock = lock.With(one)
		}
		if err := writeLock(name, lock); err != nil {
			return err
		}
		return printLock(app, name, before, lock)
	})
	return cmd
}

// lockedEntry is an entry of a lock, with what was changed in it.
type lockedEntry struct {
	installer.Locked
	// Changes are the differences from the entry that the lock had before.
	Changes []installer.Change `json:"changes,omitempty"`
}

func printLock(app *cli.App, name string, before, lock installer.Lock) error {
	entries := []lockedEntry{}
	for _, locked := range lock.Plugins() {
		entry := lockedEntry{Locked: locked}
		if earlier, err := before.Find(locked.Reference); err == nil {
			entry.Changes = earlier.Changes(locked)
		}
		entries = append(entries, entry)
	}
	return app.Print(entries, func(p *cli.Page) {
		for _, entry := range entries {
			platforms := "1 platform"
			if n := len(entry.Platforms); n != 1 {
				platforms = strconv.Itoa(n) + " platforms"
			}
			p.Printf("locked %s at %s for %s\n", entry.Reference, entry.Version, platforms)
			for _, c := range entry.Changes {
				p.Printf("  %s: %s → %s\n", c.What, cmp.Or(c.Before, "none"), cmp.Or(c.After, "none"))
			}
		}
		p.Printf("wrote %s\n", name)
	})
}

func writeLock(name string, lock installer.Lock) error {
	content, err := lock.Encode()
	if err != nil {
		return err
	}
	return durable.WriteFile(name, content, 0o644)
}

// installLocked installs exactly what a lock has.
func installLocked(ctx context.Context, app *cli.App, i *installer.Installer, lock installer.Lock, refs []installer.Reference) error {
	return installAll(ctx, app, refs, func(ref installer.Reference) (installer.Installed, error) {
		installed, err := i.InstallLocked(ctx, lock, ref)
		return installed, explainLocked(ref, lock, err)
	})
}

// gone reports whether a registry does not have what it had: not another version,
// nor something of this machine.
func gone(err error) bool {
	others := []error{installer.Reason("no-version"), installer.Reason("no-platform"), installer.Reason("not-installed"), installer.Reason("not-locked")}
	return errors.Is(err, installer.ErrNotFound) && !slices.ContainsFunc(others, func(other error) bool { return errors.Is(err, other) })
}

// explainLocked says how to lock again what is no longer published as it was locked.
func explainLocked(ref installer.Reference, lock installer.Lock, err error) error {
	again := "fleeting-plugin lock " + ref.String()
	if entry, found := lock.Find(ref); found == nil && entry.As != "" {
		again = "fleeting-plugin lock --as " + entry.As + " " + ref.String()
	}
	switch {
	case errors.Is(err, installer.Reason("signer-changed")):
		return cli.Hint(err, "if the new signer is right, accept it and install again: "+again+" --accept-signer-change")
	case errors.Is(err, installer.Reason("moved")):
		return cli.Hint(err, "a version never changes. Ask the publisher why it did, or whether the lock was edited. To lock what is published now: "+again+" --accept-digest-change")
	case gone(err):
		return cli.Hint(err, "it was deleted or moved, or the lock was edited. To lock what is published now: "+again+" --accept-digest-change")
	}
	return err
}
