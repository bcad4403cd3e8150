package rebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/scratch"
)

// Request is what is to be built again, and how.
type Request struct {
	// Reference is what was published, Policy what it has to satisfy. Its
	// provenance has to, too, unless Source brings the source.
	Reference installer.Reference
	Policy    installer.Policy
	// Installer makes an installer by which it is fetched: one for a platform,
	// "os/arch[/variant]", that installs into the folder dir.
	Installer func(ctx context.Context, policy installer.Policy, platform, dir string) (*installer.Installer, error)
	// Platforms are those to build for, all if there are none.
	Platforms []string
	// Source is a checkout to build from, in place of a clone of the repository
	// that the provenance names.
	Source string
	// Keep is a folder in which what was built stays, as os/arch[variant]/plugin.
	Keep string
	// Options are those of each build.
	Options Options
	// Status tells of the next step, Warn of what the report may owe itself to.
	Status, Warn func(format string, args ...any)
}

// rebuilding is one request being worked on.
type rebuilding struct {
	Request
	// work is a folder for everything that is fetched and built.
	work string
	// verified is what was published, for one of its platforms.
	verified installer.Verified
	// admitting is the installer that verified it.
	admitting *installer.Installer
	// otherFlags are linker flags that are signed, too, and not the likeliest.
	otherFlags []string
	report     Report
}

// Run fetches and verifies what was published, builds it again for each platform
// and compares. That something differs or cannot be built is in the report; the
// error says that nothing could be reported: it matches [ErrOrigin], [ErrFetch],
// [ErrNoCommit], or is the installer's.
func Run(ctx context.Context, request Request) (report Report, err error) {
	work, err := scratch.New()
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	r := &rebuilding{Request: request, work: work.Dir}
	all, partial, err := r.fetch(ctx)
	if err != nil {
		return Report{}, err
	}
	source, err := r.checkout(ctx)
	if err != nil {
		return Report{}, err
	}
	r.report.Same = true
	for _, p := range all {
		if err := r.build(ctx, source, p); err != nil {
			return Report{}, err
		}
	}
	err = r.index(ctx, all, partial)
	return r.report, err
}

// built is the folder for what is built.
func (r *rebuilding) built() string { return cmp.Or(r.Keep, filepath.Join(r.work, "rebuilt")) }

// build builds for one platform. The error is of the context or the disk; that it
// cannot be built is an outcome.
func (r *rebuilding) build(ctx context.Context, source Source, from published) error {
	p, err := artifact.ReadPlatform(from.platform)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(filepath.Join(r.built(), filepath.FromSlash(p.Dir())))
	if err != nil {
		return err
	}
	one := Platform{Platform: from.platform}
	if one.Copied, err = copyCompanions(from.installed, dir); err != nil {
		return err
	}
	r.Status("building  %s", from.platform)
	source.Version, source.Revision = r.report.Version, r.report.Source.Revision
	target := Target{OS: p.OS(), Arch: p.Arch(), Variant: p.Variant(), Executable: from.installed.Path, LDFlags: r.report.Source.LDFlags}
	one.Comparison, err = r.try(ctx, source, target, filepath.Join(dir, p.Executable()))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		one.Problem = err.Error()
	}
	r.report.Same = r.report.Same && one.Same
	r.report.Platforms = append(r.report.Platforms, one)
	return nil
}

// try builds with the linker flags that were said last, and if that is something
// else, with those that were said before. The outcome of the former is told, unless
// one of the latter is the same.
func (r *rebuilding) try(ctx context.Context, source Source, target Target, output string) (Comparison, error) {
	likeliest := target.LDFlags
	c, err := Build(ctx, source, target, output, r.Options)
	if err == nil && c.Same || len(r.otherFlags) == 0 || r.Options.LDFlags != "" || r.Options.Command != "" {
		return c, err
	}
	for _, target.LDFlags = range r.otherFlags {
		if c, err := Build(ctx, source, target, output, r.Options); ctx.Err() != nil || err == nil && c.Same {
			return c, err
		}
	}
	target.LDFlags = likeliest
	return Build(ctx, source, target, output, r.Options) // once more, as it is kept
}

// index compares the artifact around the executables, where that says something.
func (r *rebuilding) index(ctx context.Context, all []published, partial bool) error {
	onWindows := false
	for _, p := range all {
		onWindows = onWindows || strings.Contains(p.platform, ":")
	}
	reason := ""
	switch {
	case !r.report.Same:
		reason = "not all executables are the same"
	case partial:
		reason = "not all platforms were built"
	case onWindows:
		reason = "it is built on images of Windows"
	case r.verified.Executable == "":
		reason = "another tool packaged it"
	default:
		return r.pack(ctx)
	}
	r.report.Index = Index{Outcome: NotCompared, Reason: reason}
	return nil
}

// pack packages what was built as the publisher did, and compares the digest.
func (r *rebuilding) pack(ctx context.Context) error {
	packed, err := Pack(ctx, r.built(), r.work, r.report.Version, r.verified.Annotation)
	if err != nil {
		return fmt.Errorf("packaging what was built: %w", err)
	}
	r.report.Index = Index{Outcome: Same, Rebuilt: packed.Digest.String()}
	if packed.Digest.String() != r.report.Digest {
		r.report.Same = false
		r.report.Index.Outcome = Differs
		r.report.Index.Reason = "the executables are the same: layers or annotations are not, as when another version of fleeting-plugin packaged them"
	}
	return nil
}
