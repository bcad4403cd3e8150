package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/store"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
)

// Upgrade installs what the reference of an installed version stands for now,
// under the name that it has. Older versions stay beside it, and newer ones, too,
// unless opts allow a downgrade: then they are removed, since the runner would
// take them. What is against the order of things is refused: [ErrRefused] (downgrade),
// [ErrRefused] (signer-changed), [ErrRefused] (moved); opts allow some. [ErrRefused] (shadowed) as in
// [Installer.Install], [ErrRefused] (needed) as in [WithReferenced].
func (i *Installer) Upgrade(ctx context.Context, from Installed, opts ChangeOptions) (Installed, error) {
	ref := from.Receipt.Reference
	if err := i.needFolder(); err != nil {
		return Installed{}, failed("upgrading", from.Receipt.Name, err)
	}
	if from.Foreign {
		return Installed{}, failed("upgrading", from.Receipt.Name, fmt.Errorf("%w: nothing says where it came from", errNotInstalled))
	}
	if ref.Pinned() {
		// A digest stays what it is, if the files do.
		return from, failed("upgrading", ref.String(), from.Verify(ctx))
	}
	as := ""
	if from.Receipt.Name != ref.Name() {
		as = from.Receipt.Name
	}
	plugin, err := storePlugin(ref, as)
	if err != nil {
		return Installed{}, failed("upgrading", ref.String(), err)
	}
	verified, err := i.Verify(ctx, ref)
	if err != nil {
		return Installed{}, err
	}
	before := chosen{from.Receipt.Version, from.Receipt.Digest(), from.Receipt.Verification.Signers()}
	if err := opts.check(before, verified); err != nil {
		return Installed{}, failed("upgrading", ref.String(), err)
	}
	installed, err := i.placeUnder(ctx, plugin, verified, InstallOptions{}, opts.AllowDowngrade)
	return installed, failed("upgrading", ref.String(), err)
}

// Outdated is what could be installed in place of a version.
type Outdated struct {
	Installed Installed `json:"installed"`
	// Wanted is the version that the reference stands for now.
	Wanted version.Version `json:"wanted"`
	// Latest is the greatest release, whatever the reference asks for; nil if there
	// is none.
	Latest *version.Version `json:"latest,omitempty"`
	// Upgradable says that an upgrade would install a newer version.
	Upgradable bool `json:"upgradable"`
}

// IsHeldBack reports whether there is a newer release that the reference does not
// allow, so that no upgrade installs it.
func (o Outdated) IsHeldBack() bool {
	return o.Latest != nil && o.Latest.Compare(o.Wanted) > 0 && o.Latest.Compare(o.Installed.Receipt.Version) > 0
}

// Outdated asks the registry what there is in place of an installed version.
// Nothing is verified.
func (i *Installer) Outdated(ctx context.Context, installed Installed) (Outdated, error) {
	ref := installed.Receipt.Reference
	wanted, err := i.Resolve(ctx, ref)
	if err != nil {
		return Outdated{}, err
	}
	out := Outdated{Installed: installed, Wanted: wanted.Version}
	out.Upgradable = out.Wanted.Compare(installed.Receipt.Version) > 0
	latest, err := i.Resolve(ctx, ref.withConstraint(version.Latest()))
	if err == nil {
		out.Latest = &latest.Version
	} else if errors.Is(err, errNoPlatform) || !errors.Is(err, ErrNotFound) && !errors.Is(err, errMismatch) {
		return Outdated{}, err
	}
	return out, nil
}

// Newest gives the greatest installed version of every plugin that this package
// installed.
func (f *Folder) Newest() ([]Installed, error) {
	list, err := f.List()
	if err != nil {
		return nil, err
	}
	var newest []Installed
	for _, installed := range list { // by name and version
		if installed.Foreign {
			continue
		}
		if n := len(newest); n > 0 && newest[n-1].Receipt.Name == installed.Receipt.Name {
			newest[n-1] = installed
			continue
		}
		newest = append(newest, installed)
	}
	return newest, nil
}

// Rollback removes the version that a reference stands for, if an older one that
// satisfies it is installed and unchanged; that is what the reference stands for
// then. It gives the version that was removed and the one that is left. What one
// of referenced stands for and the older version does not satisfy is not removed:
// [ErrRefused] (needed).
func (f *Folder) Rollback(ctx context.Context, ref Reference, referenced ...Reference) (removed, left Installed, err error) {
	removed, left, err = f.rollback(ctx, ref, referenced)
	return removed, left, failed("rolling back", ref.String(), err)
}

func (f *Folder) rollback(ctx context.Context, ref Reference, referenced []Reference) (removed, left Installed, err error) {
	plugin, err := storePlugin(ref, "")
	if err != nil {
		return Installed{}, Installed{}, err
	}
	lock, err := f.store.Lock(ctx, plugin)
	if err != nil {
		return Installed{}, Installed{}, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	fitting, _, err := f.fitting(ref, "")
	if err != nil {
		return Installed{}, Installed{}, err
	}
	if len(fitting) < 2 {
		return Installed{}, Installed{}, fmt.Errorf("%w: no older version that satisfies it in %s", errNotInstalled, f.Dir())
	}
	removed, left = fitting[len(fitting)-1], fitting[len(fitting)-2]
	if err := left.Verify(ctx); err != nil {
		return Installed{}, Installed{}, fmt.Errorf("the older version cannot be used: %w", err)
	}
	if err := neededBy(plugin, referenced, removed.Receipt.Version, left.Receipt.Version); err != nil {
		return Installed{}, Installed{}, err
	}
	return removed, left, f.store.Remove(lock, removed.Receipt.Version)
}

// PruneOptions say what [Folder.Prune] leaves.
type PruneOptions struct {
	// Keep is how many of the greatest versions of each plugin stay, at least
	// one.
	Keep int
	// Referenced versions stay in any case: for each reference the greatest
	// version that satisfies it.
	Referenced []Reference
	// Locked versions stay in any case.
	Locked Lock
	// DryRun removes nothing.
	DryRun bool
}

// Prune removes old versions and what killed processes left behind, and gives
// the versions that it removed, or with DryRun would. What others installed is
// never removed.
func (f *Folder) Prune(ctx context.Context, opts PruneOptions) ([]Installed, error) {
	removed, err := f.prune(ctx, opts)
	return removed, failed("pruning", f.Dir(), err)
}

func (f *Folder) prune(ctx context.Context, opts PruneOptions) ([]Installed, error) {
	list, err := f.List()
	if err != nil {
		return nil, err
	}
	kept, err := f.kept(opts)
	if err != nil {
		return nil, err
	}
	var removed []Installed
	later := map[string]int{}
	for _, installed := range slices.Backward(list) {
		if installed.Foreign {
			continue
		}
		later[installed.Receipt.Name]++
		if later[installed.Receipt.Name] <= max(1, opts.Keep) || kept[installed.Dir] {
			continue
		}
		if !opts.DryRun {
			if err := f.removeVersion(ctx, installed.Receipt.Name, installed.Receipt.Version); err != nil {
				return removed, err
			}
		}
		removed = append(removed, installed)
	}
	if opts.DryRun {
		return removed, nil
	}
	_, err = f.store.Sweep()
	return removed, err
}

// kept gives the folders of versions that something names. What cannot be told
// is an error, so that nothing goes that might have to stay; only what the folder
// cannot have is passed over.
func (f *Folder) kept(opts PruneOptions) (map[string]bool, error) {
	kept := map[string]bool{}
	for _, ref := range opts.Referenced {
		fitting, _, err := f.fitting(ref, "")
		if errors.Is(err, errName) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("what %s needs: %w", ref, err)
		}
		if len(fitting) > 0 {
			kept[fitting[len(fitting)-1].Dir] = true
		}
	}
	for _, entry := range opts.Locked.plugins {
		plugin, err := storePlugin(entry.Reference, entry.As)
		if errors.Is(err, errName) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("what the lock has for %s: %w", entry.Reference, err)
		}
		dir, err := f.store.Path(plugin, entry.Version)
		if err != nil {
			return nil, err
		}
		kept[dir] = true
	}
	return kept, nil
}

// removeVersion removes one version of a plugin, whatever it is.
func (f *Folder) removeVersion(ctx context.Context, name string, v version.Version) (err error) {
	plugin, err := store.NewPlugin(name)
	if err != nil {
		return err
	}
	lock, err := f.store.Lock(ctx, plugin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	return f.store.Remove(lock, v)
}
