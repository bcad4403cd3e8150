package installer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unicode/utf16"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/store"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/diskfull"
)

// RunnerTakes gives what GitLab Runner takes for a reference: the greatest folder
// whose name satisfies it, whoever put it there, whether there is anything in it
// or not. So the result may be Foreign, incomplete, or not exist at all where a
// folder of another plugin beneath this one's, or a number with a leading zero,
// misleads the runner.
//
// Without any the error is [ErrNotFound] (not-installed), and so it is for a reference with a
// digest, which the runner cannot look up.
func (f *Folder) RunnerTakes(ref Reference) (Installed, error) {
	taken, err := f.runnerTakes(ref)
	return taken, failed("looking for", ref.String(), err)
}

func (f *Folder) runnerTakes(ref Reference) (Installed, error) {
	if ref.Pinned() {
		return Installed{}, fmt.Errorf("%w: the runner looks up versions, not digests", errNotInstalled)
	}
	plugin, err := storePlugin(ref, "")
	if err != nil {
		return Installed{}, err
	}
	entries, err := f.store.Seen(plugin)
	if err != nil {
		return Installed{}, err
	}
	matching := matchingEntries(entries, ref)
	if len(matching) == 0 {
		return Installed{}, fmt.Errorf("%w in %s", errNotInstalled, f.Dir())
	}
	return readOrForeign(matching[len(matching)-1]), nil
}

func matchingEntries(entries []store.Entry, ref Reference) []store.Entry {
	constraint, _ := ref.Constraint()
	var matching []store.Entry
	for _, entry := range entries {
		if constraint.Match(entry.Version) {
			matching = append(matching, entry)
		}
	}
	return matching
}

// shadowing gives what the runner would take for a reference in place of a
// version of the plugin, smallest first.
func (f *Folder) shadowing(plugin store.Plugin, ref Reference, v version.Version) ([]Installed, error) {
	if ref.Pinned() {
		return nil, nil // which the runner cannot look up in any case
	}
	entries, err := f.store.Seen(plugin)
	if err != nil {
		return nil, err
	}
	var shadows []Installed
	for _, entry := range matchingEntries(entries, ref) {
		if entry.Version.Core().Compare(v.Core()) > 0 {
			shadows = append(shadows, readOrForeign(entry))
		}
	}
	return shadows, nil
}

// refuseShadowed fails if the runner would take something in place of the version
// that is not known to be verified, or, with remove, that would have to go and is
// needed. What somebody else put there is theirs to remove.
func (i *Installer) refuseShadowed(ctx context.Context, plugin store.Plugin, ref Reference, v version.Version, remove bool) error {
	shadows, err := i.folder.shadowing(plugin, ref, v)
	if err != nil {
		return err
	}
	var problems []error
	for _, shadow := range shadows {
		name := plugin.Name() + " " + shadow.Receipt.Version.String()
		needed := neededBy(plugin, i.referenced, shadow.Receipt.Version, v)
		_, statErr := os.Lstat(shadow.Dir)
		switch {
		case errors.Is(statErr, os.ErrNotExist):
			i.log.WarnContext(ctx, "the runner takes a folder beneath this plugin's for a version of it, which is not there",
				"plugin", plugin.Name(), "version", shadow.Receipt.Version.String())
		case shadow.Foreign:
			problems = append(problems, fmt.Errorf("%w: %s, which something else installed and which satisfies %s, too", errShadowed, name, ref))
		case shadow.complete() != nil:
			problems = append(problems, fmt.Errorf("%w: %s, which is damaged and satisfies %s, too", errShadowed, name, ref))
		case remove && needed != nil:
			problems = append(problems, needed)
		}
	}
	return errors.Join(problems...)
}

// neededBy says which reference stands for a version of the plugin and would not
// be served by the one that is to take its place; nil if none does.
func neededBy(plugin store.Plugin, referenced []Reference, going, staying version.Version) error {
	for _, ref := range referenced {
		other, err := storePlugin(ref, "")
		constraint, constrained := ref.Constraint()
		if err != nil || other != plugin || !constrained || ref.Pinned() {
			continue // which the runner does not look up here
		}
		if constraint.Match(going.Core()) && !constraint.Match(staying.Core()) {
			return fmt.Errorf("%w: %s %s would have to be removed, and %s resolves to it", errNeeded, plugin.Name(), going, ref)
		}
	}
	return nil
}

// giveWay sees to it that the runner takes a version that was just installed, or
// found, by removing the greater ones that this package installed. Without
// remove they stay, and the log says that the runner takes them.
func (i *Installer) giveWay(ctx context.Context, plugin store.Plugin, ref Reference, v version.Version, remove bool) error {
	if err := i.refuseShadowed(ctx, plugin, ref, v, remove); err != nil {
		return err
	}
	shadows, err := i.folder.shadowing(plugin, ref, v)
	if err != nil {
		return err
	}
	for _, shadow := range shadows {
		if shadow.Foreign {
			continue // was told of
		}
		attrs := []any{"plugin", plugin.Name(), "version", v.String(), "newer", shadow.Receipt.Version.String()}
		if !remove {
			i.log.WarnContext(ctx, "the runner goes on taking a newer version", attrs...)
			continue
		}
		if err := i.folder.removeVersion(ctx, plugin.Name(), shadow.Receipt.Version); err != nil && !errors.Is(err, errNotInstalled) {
			return err
		}
		i.log.WarnContext(ctx, "removed a newer version, so that the runner takes this one", attrs...)
	}
	return nil
}

// settle is giveWay for an installed version that nothing needs to be done for.
func (i *Installer) settle(ctx context.Context, installed Installed, ref Reference) error {
	plugin, err := store.NewPlugin(installed.Receipt.Name)
	if err != nil {
		return err
	}
	return i.giveWay(ctx, plugin, ref, installed.Receipt.Version, false)
}

// place installs a verified version, so that the runner takes it for the
// reference; see giveWay for remove. It fails before anything is downloaded if
// something else would be taken.
func (i *Installer) place(ctx context.Context, plugin store.Plugin, verified Verified, opts InstallOptions, remove bool) (Installed, error) {
	if err := i.refuseShadowed(ctx, plugin, verified.Reference, verified.Version, remove); err != nil {
		return Installed{}, err
	}
	if err := i.startable(plugin, verified); err != nil {
		return Installed{}, err
	}
	installed, err := i.install(ctx, plugin, verified, opts)
	if diskfull.Is(err) {
		err = fmt.Errorf("%w in %s: %s %s takes more than the %d bytes of its layer: %w",
			ErrNoSpace, i.folder.Dir(), plugin.Name(), verified.Version, verified.Size, err)
	}
	if err != nil {
		return Installed{}, err
	}
	return installed, i.giveWay(ctx, plugin, verified.Reference, verified.Version, remove)
}

// conflict fails if another entry of the lock names a greater version that the
// runner would take in place of this one's.
func (l Lock) conflict(entry Locked) error {
	constraint, constrained := entry.Reference.Constraint()
	if !constrained || entry.Reference.Pinned() {
		return nil
	}
	for _, other := range l.plugins {
		if other.Name() == entry.Name() && other.Version.Compare(entry.Version) > 0 && constraint.Match(other.Version) {
			return fmt.Errorf("%w: the lock has %s for %s, which satisfies %s, too", errShadowed, other.Version, other.Reference, entry.Reference)
		}
	}
	return nil
}

// startable refuses an executable that Windows could not start for the length of
// its path. The files could be written: the limit is that of starting programs.
// https://learn.microsoft.com/en-us/windows/win32/api/processthreadsapi/nf-processthreadsapi-createprocessw
func (i *Installer) startable(plugin store.Plugin, verified Verified) error {
	if runtime.GOOS != "windows" {
		return nil
	}
	dir, err := i.folder.store.Path(plugin, verified.Version)
	if err != nil {
		return err
	}
	return shortEnough(filepath.Join(dir, verified.payload.executable))
}

func shortEnough(path string) error {
	if n := len(utf16.Encode([]rune(path))); n > maxProgramPath {
		return fmt.Errorf("%w: %s has %d characters, and Windows starts no program whose path has more than %d", errLongPath, path, n, maxProgramPath)
	}
	return nil
}

// maxProgramPath is MAX_PATH without the zero at its end.
const maxProgramPath = 259
