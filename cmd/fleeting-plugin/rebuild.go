package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/rebuild"
)

// The verdicts: what was built is not what is published, which is a finding, and
// it could not be built here, which is none.
var (
	errDiffers  = errors.New("what was built is not what is published")
	errNotBuilt = errors.New("it could not be built, so nothing is known")
)

// rebuilding is one run of the command.
type rebuilding struct {
	app       *cli.App
	flags     *installFlags
	opts      rebuild.Options
	source    string
	keep      string
	platforms []string

	// work is a folder for everything that is fetched and built.
	work   string
	report rebuildReport
	// verified is what was published, for one of its platforms.
	verified installer.Verified
	ldflags  string
}

// newRebuildCmd builds what is published again.
func newRebuildCmd(app *cli.App) *cobra.Command {
	r := &rebuilding{app: app}
	cmd := &cobra.Command{
		Use:   "rebuild REF",
		Short: "Build a published plugin again from its source, and compare",
		Long: `Build what REF stands for again, for every platform, and say whether the result
is what was published: the executables byte by byte, then the artifact's digest.

REF is held against the policy first, and so is its SLSA provenance, which names
the repository and the commit. They are cloned over https, unless --source names
a checkout. What a Go executable says about its build is repeated: Go version,
build tags, processor settings. go build downloads the modules of go.sum and
runs no code of the source: cgo is off, go.mod is not changed, and the Go
version is the one that is there; --allow-cgo and --download-toolchain change
that. --command runs what it is given, and with it whatever the source makes of
it, with all your rights.

Files beside an executable are not built: they are taken over, and named.

Exit code 0 says that everything that was built is the same, and 1 that something
differs. With 2 it could not be built here or no source is named, with 3 it is
not signed as the policy wants, with 4 the repository does not have the commit,
and with 5 registry or repository could not be reached: nothing is known then.`,
		Example: `  fleeting-plugin rebuild registry.example.com/team/plugin:1.2.3
  fleeting-plugin rebuild registry.example.com/team/plugin:1.2.3 --source . --platform linux/amd64`,
		Args: cobra.ExactArgs(1),
	}
	r.flags = newFetchFlags(app, cmd)
	mapPackagerErrors(app)
	app.MapError(exec.ErrNotFound, cli.Usage, "install git, or give the source: --source DIR")
	app.MapError(rebuild.ErrOrigin, cli.Usage, "give the source: --source DIR")
	app.MapError(rebuild.ErrFetch, cli.Network, "try again, or give a checkout: --source DIR")
	app.MapError(rebuild.ErrNoCommit, cli.NotFound, "ask the publisher where the source is, or give a checkout: --source DIR")
	app.MapError(errDiffers, cli.Failed, "--keep DIR keeps what was built, to look at both")
	app.MapError(errNotBuilt, cli.Usage, "the table says why; --source, --ldflags, --allow-cgo, --download-toolchain and --command change how it is built")
	cmd.Flags().StringVar(&r.source, "source", "", "build from this checkout, in place of a clone of the repository that the provenance names")
	cmd.Flags().StringSliceVar(&r.platforms, "platform", nil, "build only for this platform, such as linux/arm64 (repeatable; default: all)")
	cmd.Flags().StringVar(&r.keep, "keep", "", "keep what was built in this folder, as os/arch/plugin")
	cmd.Flags().StringVar(&r.opts.LDFlags, "ldflags", "", "-ldflags of the go command (default: those that executable or provenance say)")
	cmd.Flags().StringVar(&r.opts.Command, "command", "", "build with this shell command, which writes to $OUTPUT; it gets VERSION, REVISION, PLATFORM, GOOS, GOARCH and GOARM")
	cmd.Flags().BoolVar(&r.opts.AllowCgo, "allow-cgo", false, "build with cgo what was built with it: runs the C compiler with flags of the source")
	cmd.Flags().BoolVar(&r.opts.DownloadToolchain, "download-toolchain", false, "let the go command download the Go version that was used")
	cmd.RunE = r.flags.closing(func(cmd *cobra.Command, args []string) error {
		ref, err := installer.ParseReference(args[0])
		if err != nil {
			return err
		}
		if r.work, err = os.MkdirTemp("", "fleeting-plugin-rebuild-"); err != nil {
			return err
		}
		defer os.RemoveAll(r.work) //nolint:errcheck // a temporary folder
		if err := r.run(cmd.Context(), ref); err != nil {
			return explained(ref, err)
		}
		if err := app.Print(r.report, r.report.write); err != nil {
			return err
		}
		return r.report.verdict()
	})
	return cmd
}

// published is what was published for one platform, fetched and verified.
type published struct {
	platform  string
	installed installer.Installed
}

func (r *rebuilding) run(ctx context.Context, ref installer.Reference) error {
	// 1. What is published, and by whom.
	all, partial, err := r.verify(ctx, ref)
	if err != nil {
		return err
	}
	// 2. The source.
	checkout, err := r.checkout(ctx)
	if err != nil {
		return err
	}
	// 3. Each platform.
	r.report.Same = true
	onWindows := false
	for _, p := range all {
		onWindows = onWindows || strings.Contains(p.platform, ":")
		if err := r.platform(ctx, checkout, p); err != nil {
			return err
		}
	}
	// 4. The artifact around them.
	switch {
	case !r.report.Same:
		r.report.Index = rebuiltIndex{Outcome: "not compared", Reason: "not all executables are the same"}
	case partial:
		r.report.Index = rebuiltIndex{Outcome: "not compared", Reason: "not all platforms were built"}
	case onWindows:
		r.report.Index = rebuiltIndex{Outcome: "not compared", Reason: "it is built on images of Windows"}
	case r.verified.Executable == "":
		r.report.Index = rebuiltIndex{Outcome: "not compared", Reason: "another tool packaged it"}
	default:
		return r.pack(ctx)
	}
	return nil
}

// verify holds the reference against the policy and fetches what is to be built
// again; partial says that this is not all of it.
func (r *rebuilding) verify(ctx context.Context, ref installer.Reference) (found []published, partial bool, err error) {
	policy, err := r.flags.policy()
	if err != nil {
		return nil, false, err
	}
	i, err := r.installer(ctx, policy, "", "")
	if err != nil {
		return nil, false, err
	}
	pinned, all, err := i.Platforms(ctx, ref)
	if err != nil {
		return nil, false, err
	}
	platforms, err := r.choose(all)
	if err != nil {
		return nil, false, err
	}
	if policy, err = r.provenance(ctx, policy, pinned, platforms[0]); err != nil {
		return nil, false, err
	}
	for _, platform := range platforms {
		i, err := r.installer(ctx, policy, platform, filepath.Join(r.work, "published", platformDir(platform)))
		if err != nil {
			return nil, false, err
		}
		installed, err := i.Install(ctx, pinned, installer.InstallOptions{As: publishedName})
		if err != nil {
			return nil, false, err
		}
		found = append(found, published{platform, installed})
	}
	r.report.Reference, r.report.Version, r.report.Digest = ref, r.verified.Version.String(), r.verified.Resolution.Digest().String()
	r.report.Signers = append([]string{}, r.verified.Verification.Signers()...)
	return found, len(platforms) < len(all), nil
}

// provenance verifies one platform, with a provenance, and returns the policy
// that let it in. Whoever brings the source can do without.
func (r *rebuilding) provenance(ctx context.Context, policy installer.Policy, pinned installer.Reference, platform string) (installer.Policy, error) {
	policies := []installer.Policy{policy.WithProvenance()}
	if r.source != "" {
		policies = append(policies, policy)
	}
	var err error
	for _, policy = range policies {
		var i *installer.Installer
		if i, err = r.installer(ctx, policy, platform, ""); err != nil {
			return policy, err
		}
		if r.verified, err = i.Verify(ctx, pinned); !errors.Is(err, installer.ErrRefused) {
			break
		}
	}
	return policy, err
}

// publishedName is what published plugins are installed as in the work folder.
const publishedName = "published.invalid/plugin"

func (r *rebuilding) installer(ctx context.Context, policy installer.Policy, platform, dir string) (*installer.Installer, error) {
	r.flags.platform, _, _ = strings.Cut(platform, ":")
	r.flags.dir = cmp.Or(dir, r.work)
	return r.flags.withPolicy(ctx, policy)
}

// choose gives the platforms that are asked for, and refuses others.
func (r *rebuilding) choose(all []string) ([]string, error) {
	if len(r.platforms) == 0 {
		return all, nil
	}
	var chosen []string
	for _, word := range r.platforms {
		p, err := artifact.ParsePlatform(word)
		if err != nil {
			return nil, cli.WithCode(err, cli.Usage)
		}
		if !slices.Contains(all, p.String()) {
			return nil, fmt.Errorf("%w: want %s, published for %s", installer.ErrNoPlatform, p, strings.Join(all, " "))
		}
		chosen = append(chosen, p.String())
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), nil
}

// checkout gives the folder with the source, and fills in what is known of it.
func (r *rebuilding) checkout(ctx context.Context) (string, error) {
	origin := rebuild.Origin{
		Repository: r.verified.Annotation(ocispec.AnnotationSource), Revision: r.verified.Annotation(ocispec.AnnotationRevision),
	}
	if predicate, by, ok := r.verified.Provenance(); ok {
		var err error
		if origin, err = rebuild.ReadProvenance(predicate); err != nil {
			return "", err
		}
		// The authority vouches for the certificate; the predicate is what the
		// signer wrote.
		if by.SourceDigest != "" && by.SourceDigest != origin.Revision {
			return "", fmt.Errorf("%w: the provenance names commit %s, its signer's certificate %s", installer.ErrRefused, origin.Revision, by.SourceDigest)
		}
	}
	r.report.Source, r.ldflags = origin, origin.LDFlags
	if r.source == "" {
		if err := origin.Check(); err != nil {
			return "", err
		}
		r.app.Statusf("cloning   %s at %s", origin.Repository, origin.Revision)
		dir := filepath.Join(r.work, "source")
		return dir, origin.Clone(ctx, dir)
	}
	if info, err := os.Stat(r.source); err != nil || !info.IsDir() {
		return "", cli.Usagef("--source %s: there is no such folder", r.source)
	}
	head, modified := rebuild.Head(ctx, r.source)
	r.report.Checkout, r.report.Modified = r.source, modified
	switch {
	case head == "":
		r.app.Warnf("%s is no git checkout, so its commit cannot be told", r.source)
	case origin.Revision != "" && head != origin.Revision:
		r.app.Warnf("%s is at commit %s, published is %s", r.source, head, origin.Revision)
	case modified:
		r.app.Warnf("files in %s differ from its commit", r.source)
	}
	return filepath.Abs(r.source)
}

// platform builds for one platform. The error is of the context or the disk;
// that it cannot be built is an outcome.
func (r *rebuilding) platform(ctx context.Context, checkout string, from published) error {
	p, err := artifact.ReadPlatform(from.platform)
	if err != nil {
		return err
	}
	dir := filepath.Join(cmp.Or(r.keep, filepath.Join(r.work, "rebuilt")), filepath.FromSlash(p.Dir()))
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	one := rebuiltPlatform{Platform: from.platform}
	if one.Copied, err = copyCompanions(from.installed, dir); err != nil {
		return err
	}
	r.app.Statusf("building  %s", from.platform)
	one.Comparison, err = rebuild.Build(ctx,
		rebuild.Source{Dir: checkout, Version: r.report.Version, Revision: r.report.Source.Revision},
		rebuild.Target{OS: p.OS(), Arch: p.Arch(), Variant: p.Variant(), Executable: from.installed.Path, LDFlags: r.ldflags},
		filepath.Join(dir, p.Executable()), r.opts)
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

func platformDir(platform string) string {
	return strings.NewReplacer("/", "-", ":", "-").Replace(platform)
}

// pack packages what was built as the publisher did, and compares the digest.
func (r *rebuilding) pack(ctx context.Context) error {
	packed, err := rebuild.Pack(ctx, cmp.Or(r.keep, filepath.Join(r.work, "rebuilt")), r.work, r.report.Version, r.verified.Annotation)
	if err != nil {
		return fmt.Errorf("packaging what was built: %w", err)
	}
	r.report.Index = rebuiltIndex{Outcome: "same", Rebuilt: packed.Digest.String()}
	if packed.Digest.String() == r.report.Digest {
		return nil
	}
	r.report.Same = false
	r.report.Index.Outcome = "differs"
	r.report.Index.Reason = "the executables are the same: layers or annotations are not, as when another version of fleeting-plugin packaged them"
	return nil
}

// copyCompanions copies what lies beside the executable, which no build makes,
// and names it.
func copyCompanions(installed installer.Installed, to string) (names []string, err error) {
	if err := os.MkdirAll(to, 0o750); err != nil {
		return nil, err
	}
	for _, f := range installed.Receipt.Files {
		if f.Name == installed.Receipt.Executable {
			continue
		}
		name := filepath.FromSlash(f.Name)
		if err := copyFile(filepath.Join(installed.Dir, name), filepath.Join(to, name)); err != nil {
			return nil, err
		}
		names = append(names, f.Name)
	}
	return names, nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm()) //nolint:gosec // the mode is that of the published file
}
