package installer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/store"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/untar"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/progress"
)

// InstallOptions are the choices for one installation. The zero value is right
// for most.
type InstallOptions struct {
	// As is a name to install under instead of the reference's own: registry and
	// repository, as config.toml will name the plugin. It is needed for names that
	// the runner cannot look up, such as those of registries with a port. The policy
	// has to allow the plugin under both names.
	As string
	// Reinstall replaces a version that is there already and is the same.
	Reinstall bool
}

// Install resolves and verifies a reference and installs what it stands for.
// What is installed already, with every file as what was verified says, stays as
// it is. If a signed index announces the digest of the executable and there are no
// other files, nothing but manifests and signatures is downloaded for that;
// otherwise the layer is, and compared. Changed files are replaced, with a warning
// in the log.
//
// The version appears in the folder complete or not at all, and replaces one of
// the same number. If the runner would take something else for the reference, of
// which nothing is known, nothing is installed. Errors are those of
// [Installer.Verify], and [ErrInvalid] (name), [ErrBadContent] (mismatch), [ErrBadContent] (not-plugin), [ErrNoSpace],
// [ErrRefused] (shadowed).
func (i *Installer) Install(ctx context.Context, ref Reference, opts InstallOptions) (Installed, error) {
	if err := i.needFolder(); err != nil {
		return Installed{}, failed("installing", ref.String(), err)
	}
	plugin, err := storePlugin(ref, opts.As)
	// Report what the policy lacks together with the name, so that users mend both
	// at once.
	if err := errors.Join(err, i.ruled(ref, plugin)); err != nil {
		return Installed{}, failed("installing", ref.String(), err)
	}
	verified, err := i.Verify(ctx, ref)
	if err != nil {
		return Installed{}, err
	}
	installed, err := i.placeUnder(ctx, plugin, verified, opts, false)
	return installed, failed("installing", fmt.Sprintf("%s:%s", ref.Name(), verified.Version), err)
}

// ruled says whether the policy has a rule for each name of a plugin.
func (i *Installer) ruled(ref Reference, plugin store.Plugin) error {
	_, err := i.policy.ruleFor(ref.Name())
	if as := plugin.Name(); as != "" && as != ref.Name() {
		_, asErr := i.policy.ruleFor(as)
		err = errors.Join(err, asErr)
	}
	return err
}

// placeUnder is place if the rule of the name to install under allows it.
func (i *Installer) placeUnder(ctx context.Context, plugin store.Plugin, verified Verified, opts InstallOptions, remove bool) (Installed, error) {
	verified, err := i.under(ctx, plugin, verified)
	if err != nil {
		return Installed{}, err
	}
	return i.place(ctx, plugin, verified, opts, remove)
}

// InstallVerified is the second half of [Installer.Install]: it installs what
// [Installer.Verify] gave, perhaps after somebody was asked about it, and asks for
// no tag or signature again. A value that was verified under another policy is
// refused with [ErrRefused].
func (i *Installer) InstallVerified(ctx context.Context, v Verified, opts InstallOptions) (Installed, error) {
	installed, err := i.installVerified(ctx, v, opts)
	return installed, failed("installing", v.Reference.String(), err)
}

func (i *Installer) installVerified(ctx context.Context, v Verified, opts InstallOptions) (Installed, error) {
	if err := i.needFolder(); err != nil {
		return Installed{}, err
	}
	kept, err := i.accepts(v)
	if err != nil {
		return Installed{}, err
	}
	plugin, err := storePlugin(kept.Reference, opts.As)
	if err != nil {
		return Installed{}, err
	}
	return i.placeUnder(ctx, plugin, kept, opts, false)
}

// unpackedName is in a domain that is reserved for having no names (RFC 2606), so
// that no reference of a runner is meant by it.
const unpackedName = "unpacked.invalid/plugin"

// Unpack puts what [Installer.Verify] gave into the folder for whoever looks at
// its files: under a name of its own, so that it needs no rule of the policy and no
// runner finds it.
func (i *Installer) Unpack(ctx context.Context, v Verified) (Installed, error) {
	installed, err := i.unpack(ctx, v)
	return installed, failed("unpacking", v.Reference.String(), err)
}

func (i *Installer) unpack(ctx context.Context, v Verified) (Installed, error) {
	if err := i.needFolder(); err != nil {
		return Installed{}, err
	}
	kept, err := i.accepts(v)
	if err != nil {
		return Installed{}, err
	}
	plugin, err := store.NewPlugin(unpackedName)
	if err != nil {
		return Installed{}, err
	}
	return i.place(ctx, plugin, kept, InstallOptions{Reinstall: true}, false)
}

// Ensure is [Installer.Install] that asks nobody when an installed version
// satisfies the reference already, its files are what its receipt says, and the
// rule of the policy that let it in has not changed since.
func (i *Installer) Ensure(ctx context.Context, ref Reference, opts InstallOptions) (Installed, error) {
	if i.folder != nil {
		installed, err := i.folder.find(ref, opts.As)
		if err == nil && i.runs(installed) && i.allows(installed) {
			err = installed.Verify(ctx)
			if err == nil {
				return installed, failed("looking for", ref.String(), i.settle(ctx, installed, ref))
			}
			i.warnChanged(ctx, err)
		}
		if err != nil && !errors.Is(err, errNotInstalled) && !errors.Is(err, errChanged) && !errors.Is(err, errForeign) {
			return Installed{}, failed("looking for", ref.String(), err)
		}
	}
	return i.Install(ctx, ref, opts)
}

// runs says whether what is installed is for the installer's platform: a folder
// can be prepared for another machine.
func (i *Installer) runs(installed Installed) bool { return installed.runsOn(i.platform) }

// RunsHere reports whether what is installed is for this machine's platform, or
// for one whose executables it runs, as linux/arm/v6 on linux/arm/v7.
func (i Installed) RunsHere() bool { return i.runsOn(artifact.HostPlatform()) }

func (i Installed) runsOn(host artifact.Platform) bool {
	platform, err := artifact.ReadPlatform(i.Receipt.Platform)
	return err == nil && rankOf(host, platform) >= 0
}

// allows says whether the policy that decided about what is installed is still
// the policy. If it is not, it must be verified again.
func (i *Installer) allows(installed Installed) bool {
	return i.policy.Allows(installed) == nil
}

func (i *Installer) install(ctx context.Context, plugin store.Plugin, verified Verified, opts InstallOptions) (_ Installed, err error) {
	files := i.folder.store
	if _, err := files.Sweep(); err != nil {
		i.log.WarnContext(ctx, "leftovers of earlier installations stay", "error", err)
	}
	installed, err := i.present(ctx, plugin, verified, opts)
	if err == nil || !replaceable(err) {
		return installed, err
	}
	lock, err := files.Lock(ctx, plugin)
	if err != nil {
		return Installed{}, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	// Another process may have installed it while this one waited.
	there, err := i.present(ctx, plugin, verified, opts)
	if err == nil || !replaceable(err) {
		return there, err
	}
	if errors.Is(err, errOtherReceipt) {
		return i.amend(lock, there, newReceipt(plugin, verified, verified.payload.layers[0], nil))
	}
	i.warnChanged(ctx, err)
	return i.replace(ctx, lock, there, errors.Is(err, errUnproven), plugin, verified)
}

// replace installs in place of what is there. What is there and unproven stays if
// its files are those of the layer.
func (i *Installer) replace(ctx context.Context, lock *store.Lock, there Installed, unproven bool, plugin store.Plugin, verified Verified) (_ Installed, err error) {
	staging, err := i.folder.store.Stage(lock, verified.admission)
	if err != nil {
		return Installed{}, err
	}
	defer func() { err = errors.Join(err, staging.Drop()) }()
	receipt, err := i.fill(ctx, staging, plugin, verified)
	if err != nil {
		return Installed{}, err
	}
	switch same := slices.Equal(there.Receipt.Files, receipt.Files); {
	case unproven && same && there.Receipt.Layer == receipt.Layer && there.Receipt.says(verified):
		return there, nil
	case unproven && same:
		return i.amend(lock, there, receipt)
	case unproven:
		i.warnChanged(ctx, fmt.Errorf("%s: %w: its files are not those of layer %s", there.Dir, errChanged, receipt.Layer))
	}
	content, err := receipt.encode()
	if err != nil {
		return Installed{}, err
	}
	path, err := staging.Commit(verified.Version, content)
	if err != nil {
		return Installed{}, err
	}
	i.events(Event{Step: StepInstalled, Reference: verified.Reference, Version: verified.Version})
	return newInstalled(path, receipt, true), nil
}

// fill extracts what was verified into a staging folder and gives its receipt.
func (i *Installer) fill(ctx context.Context, staging *store.Staging, plugin store.Plugin, verified Verified) (Receipt, error) {
	extracted, layer, err := i.extract(ctx, staging, verified)
	if err != nil {
		return Receipt{}, err
	}
	receipt := newReceipt(plugin, verified, layer, extracted)
	if got := receipt.executableDigest(); verified.Executable != "" && got != verified.Executable {
		return Receipt{}, fmt.Errorf("%w: the executable in layer %s is %s, announced was %s", errMismatch, layer.Digest, got, verified.Executable)
	}
	receipt.Installed = i.now().UTC().Truncate(time.Second)
	return receipt, nil
}

// amend replaces the receipt of an installed version whose files are proven.
func (i *Installer) amend(lock *store.Lock, there Installed, receipt Receipt) (Installed, error) {
	receipt.Files, receipt.Installed = there.Receipt.Files, there.Receipt.Installed
	content, err := receipt.encode()
	if err != nil {
		return Installed{}, err
	}
	return newInstalled(there.Dir, receipt, false), i.folder.store.Amend(lock, receipt.Version, content)
}

var (
	// errUnproven is an installed version of which nothing that was verified says
	// what its files are: only the layer does.
	errUnproven = errors.New("not proven by what was verified")
	// errOtherReceipt is an installed version whose files are what was verified, and
	// whose receipt says something else of it.
	errOtherReceipt = errors.New("its receipt is not about what was verified")
)

// present gives what is installed if it is exactly what was verified, with every
// file as it was. A receipt proves nothing about that: whoever can change a file
// can change it, too. Otherwise the error says why not; see replaceable.
func (i *Installer) present(ctx context.Context, plugin store.Plugin, verified Verified, opts InstallOptions) (Installed, error) {
	if opts.Reinstall {
		return Installed{}, errNotInstalled
	}
	entry, err := i.folder.store.Version(plugin, verified.Version)
	if err != nil {
		return Installed{}, err
	}
	installed, err := readInstalled(entry)
	if err != nil {
		return Installed{}, err
	}
	receipt := installed.Receipt
	if !installed.Foreign && (receipt.Manifest != verified.Manifest || receipt.Platform != verified.Platform) {
		return Installed{}, errNotInstalled
	}
	if err := installed.Verify(ctx); err != nil {
		return Installed{}, err
	}
	got := receipt.executableDigest()
	switch {
	case verified.Executable != "" && got != verified.Executable:
		return Installed{}, fmt.Errorf("%s: %w: the executable is %s, its signed index announces %s", installed.Dir, errChanged, got, verified.Executable)
	case verified.Executable == "" || len(receipt.Files) > 1:
		return installed, errUnproven
	case !receipt.says(verified):
		return installed, errOtherReceipt
	}
	return installed, nil
}

// says reports whether a receipt is about what was verified, and says the same of
// it; what it says of its files is another question.
func (r Receipt) says(verified Verified) bool {
	own, err := json.Marshal(r.Verification.withoutNames())
	now, nowErr := json.Marshal(verified.Verification.withoutNames())
	return err == nil && nowErr == nil && bytes.Equal(own, now) &&
		r.Manifest == verified.Manifest && r.Index == verified.Index && r.Platform == verified.Platform && r.Version.Equal(verified.Version) &&
		r.Reference.Name() == verified.Reference.Name() && r.Executable == verified.payload.executable &&
		slices.ContainsFunc(verified.payload.layers, func(l ocispec.Descriptor) bool { return l.Digest == r.Layer })
}

// replaceable says whether what is in the way of an installation is replaced by
// it: nothing, or something that is not what was installed. What could not be
// read is none of these.
func replaceable(err error) bool {
	return errors.Is(err, errNotInstalled) || errors.Is(err, errChanged) || errors.Is(err, errForeign) || errors.Is(err, errInvalidReceipt) ||
		errors.Is(err, errUnproven) || errors.Is(err, errOtherReceipt)
}

// warnChanged tells of installed files that are not what was installed: somebody
// wrote into the folder, which runs with the credentials of a cloud.
func (i *Installer) warnChanged(ctx context.Context, err error) {
	if errors.Is(err, errForeign) {
		i.log.WarnContext(ctx, "takes over what something else installed", "error", err)
	}
	if errors.Is(err, errChanged) || errors.Is(err, errInvalidReceipt) {
		i.log.WarnContext(ctx, "an installed plugin was changed", "error", err)
	}
	if errors.Is(err, errLockDiffers) {
		i.log.WarnContext(ctx, "an installed plugin is not the locked one", "error", err)
	}
}

func newReceipt(plugin store.Plugin, v Verified, layer ocispec.Descriptor, files []untar.File) Receipt {
	return Receipt{
		Schema: receiptSchema, Name: plugin.Name(), Reference: v.Reference, Version: v.Version, Tag: v.Tag,
		Platform: v.Platform, Index: v.Index, Manifest: v.Manifest, Layer: layer.Digest,
		Executable: v.payload.executable, Files: receiptFiles(files), Verification: v.Verification,
	}
}

// extract downloads the layers that may hold the plugin, one after the other,
// until one does. Only layers of the admitted chain are touched.
func (i *Installer) extract(ctx context.Context, staging *store.Staging, v Verified) ([]untar.File, ocispec.Descriptor, error) {
	var missing error
	for _, layer := range v.payload.layers {
		if !staging.Admission().Chain().Contains(layer) {
			return nil, layer, fmt.Errorf("%w: layer %s was not verified", ErrRefused, layer.Digest)
		}
		files, err := i.extractLayer(ctx, staging, v, layer)
		if err == nil {
			return files, layer, nil
		}
		if !errors.Is(err, untar.ErrNoExecutable) {
			return nil, layer, fmt.Errorf("layer %s: %w", layer.Digest, err)
		}
		missing = err
		if err := staging.Empty(); err != nil {
			return nil, layer, err
		}
	}
	return nil, ocispec.Descriptor{}, fmt.Errorf("%w: %w", errNotPlugin, missing)
}

func (i *Installer) extractLayer(ctx context.Context, staging *store.Staging, v Verified, layer ocispec.Descriptor) (_ []untar.File, err error) {
	content, err := v.source.Fetch(ctx, layer)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	counted := progress.Reader(content, layer.Size, i.moving(StepDownloading, v, layer.Size))
	opts := untar.Options{Selection: v.payload.selection, Size: layer.Size, Limits: i.limits}
	if v.payload.raw {
		return untar.Copy(ctx, staging.Root(), counted, v.payload.executable, opts)
	}
	return untar.Extract(ctx, staging.Root(), counted, opts)
}

// moving returns a function that tells how many bytes of total were moved.
func (i *Installer) moving(step Step, v Verified, total int64) func(done int64) {
	return func(done int64) {
		i.events(Event{Step: step, Reference: v.Reference, Version: v.Version, Done: done, Total: total})
	}
}
