package installer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/store"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/untar"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// Installer resolves, verifies and installs plugins under one policy. It is
// safe for concurrent use, also by several processes on one folder.
type Installer struct {
	policy   Policy
	folder   *Folder
	open     Opener
	platform artifact.Platform
	// anyPlatform takes another platform where there is nothing for this one.
	anyPlatform bool
	limits      untar.Limits
	now         func() time.Time
	log         *slog.Logger
	events      func(Event)
	// signatures is where evidence is besides; zero for nowhere.
	signatures Reference
	// referenced must not lose the versions that they stand for.
	referenced []Reference
}

// Option changes how an [Installer] works.
type Option func(*Installer) error

// New makes an installer. The policy comes first, because it must be chosen;
// its zero value refuses every plugin. Without options the installer reads
// public plugins from registries, for the platform it runs on, and cannot
// install for lack of a folder; see [WithFolder].
func New(policy Policy, opts ...Option) (*Installer, error) {
	i := &Installer{
		policy:   policy,
		platform: artifact.HostPlatform(),
		now:      time.Now,
		log:      slog.New(slog.DiscardHandler),
		events:   func(Event) {},
	}
	for _, opt := range opts {
		if err := opt(i); err != nil {
			return nil, err
		}
	}
	if i.open == nil {
		registries, err := NewRegistries(RegistryOptions{Logger: i.log})
		if err != nil {
			return nil, err
		}
		i.open = registries.Open
	}
	return i, nil
}

// WithFolder installs into a folder; see [DefaultFolder] for the runner's.
func WithFolder(dir string) Option {
	return func(i *Installer) error {
		folder, err := OpenFolder(dir)
		i.folder = folder
		return err
	}
}

// WithSource sets where plugins come from. Default: registries, with no
// credentials.
func WithSource(open Opener) Option {
	return func(i *Installer) error {
		if open == nil {
			return errors.New("no source was given")
		}
		i.open = open
		return nil
	}
}

// WithPlatform chooses for another platform than the one this process runs on,
// such as linux/arm/v7 or linux/armv7. What is none is [ErrInvalid] (platform).
func WithPlatform(platform string) Option {
	return func(i *Installer) error {
		p, err := artifact.ParsePlatform(platform)
		i.platform = p
		return err
	}
}

// Limits bound what one plugin may cost. A zero field means its default.
type Limits struct {
	// Files and folders in the archive. Default 10,000.
	Files int
	// Bytes, uncompressed. Default 2 GiB.
	Bytes int64
	// Ratio of uncompressed to compressed bytes, above 16 MiB. Default 100.
	Ratio int64
}

// WithLimits changes the limits.
func WithLimits(l Limits) Option {
	return func(i *Installer) error {
		if l.Files < 0 || l.Bytes < 0 || l.Ratio < 0 {
			return fmt.Errorf("limits %+v: below zero", l)
		}
		i.limits = untar.Limits{Entries: l.Files, Bytes: l.Bytes, Ratio: l.Ratio}
		return nil
	}
}

// WithClock sets the clock for receipts and minimum ages. Default: time.Now.
func WithClock(now func() time.Time) Option {
	return func(i *Installer) error {
		if now == nil {
			return errors.New("no clock was given")
		}
		i.now = now
		return nil
	}
}

// WithLogger receives warnings and debug records. Default: discarded.
func WithLogger(l *slog.Logger) Option {
	return func(i *Installer) error {
		if l == nil {
			return errors.New("no logger was given")
		}
		i.log = l
		return nil
	}
}

// WithEvents receives what happens, as it happens, from the goroutine that it
// happens in. The function must be quick.
func WithEvents(f func(Event)) Option {
	return func(i *Installer) error {
		if f == nil {
			return errors.New("no function for events was given")
		}
		i.events = f
		return nil
	}
}

// WithReferenced names what else the folder is for, such as the other plugins of
// the runner's configuration; see [References]. A version that one of them stands
// for is never removed to make the runner take an older one that does not satisfy
// it: that is [ErrRefused] (needed), and nothing is changed.
func WithReferenced(refs ...Reference) Option {
	return func(i *Installer) error {
		i.referenced = append(i.referenced, refs...)
		return nil
	}
}

// Folder is the folder that the installer installs into, nil without
// [WithFolder].
func (i *Installer) Folder() *Folder { return i.folder }

// needFolder is for those who cannot do without a folder.
func (i *Installer) needFolder() error {
	if i.folder == nil {
		return errNoFolder
	}
	return nil
}

// Platform is the platform that the installer chooses for.
func (i *Installer) Platform() string { return i.platform.String() }

// source opens where a reference is read from, for one artifact.
func (i *Installer) source(ctx context.Context, ref Reference) (Source, error) {
	if ref.IsZero() {
		return nil, fmt.Errorf("%w: empty", errInvalidReference)
	}
	src, err := i.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	return ociregistry.NewBounded(src), nil
}

// Step is a stage of an installation.
type Step string

// The steps, in order; StepCopying is that of [Installer.Mirror].
const (
	StepResolved    Step = "resolved"
	StepVerified    Step = "verified"
	StepDownloading Step = "downloading"
	StepCopying     Step = "copying"
	StepInstalled   Step = "installed"
)

// Event says how far an installation or a copy is. The first is that something was resolved.
type Event struct {
	Step      Step
	Reference Reference
	// Version is what the reference stands for.
	Version version.Version
	// Done and Total are bytes, for StepDownloading and, of each blob, StepCopying.
	Done, Total int64
}

// storePlugin is the name that a plugin is installed under.
func storePlugin(ref Reference, as string) (store.Plugin, error) {
	if as == "" {
		p, err := store.NewPlugin(ref.Name())
		return p, err
	}
	alias, err := ParseReference(as)
	if err != nil {
		return store.Plugin{}, err
	}
	if alias.Pinned() || alias.String() != alias.Name()+":latest" {
		return store.Plugin{}, fmt.Errorf("%w %q: a name to install under has no version and no digest", errInvalidReference, as)
	}
	return store.NewPlugin(alias.Name())
}
