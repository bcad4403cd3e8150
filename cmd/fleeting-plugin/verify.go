package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
)

// newVerifyCmd holds the policy against a remote artifact, or receipts against
// what is on disk.
func newVerifyCmd(app *cli.App) *cobra.Command {
	var all, platforms bool
	var lockFile string
	cmd := &cobra.Command{
		Use:   "verify REF | PATH | --installed",
		Short: "Check a published plugin, or what is installed",
		Long: `With REF: resolve it and verify it against the policy. Only manifests, signatures
and attestations are downloaded. The result is for one platform, and says whether
the evidence covers the index or only that platform's manifest. If you pass the
digest of an index on, to a cluster for instance, use --all-platforms: then only
evidence about the index counts.

With PATH or --installed: read the installed files again and compare every file
with its receipt. No network is used. Anyone who can change a plugin can change its
receipt, too. With --lock, the plugins are also compared with the lock, and
everything that the lock has must be installed.`,
		Example: `  fleeting-plugin verify registry.example.com/team/plugin:1.2
  fleeting-plugin verify --installed
  fleeting-plugin verify --installed --lock /etc/gitlab-runner/fleeting-plugins.lock`,
		Args: cli.Args(0, 1),
	}
	flags := newInstallFlags(app, cmd)
	cmd.Flags().BoolVar(&all, "installed", false, "check everything that is installed")
	cmd.Flags().BoolVar(&platforms, "all-platforms", false, "require evidence about the index, so that its digest is verified for every platform")
	cmd.Flags().StringVar(&lockFile, "lock", "", "with --installed or PATH: compare with this lock `FILE`, too")
	cmd.RunE = flags.closing(func(cmd *cobra.Command, args []string) error {
		switch {
		case all == (len(args) == 1):
			return cli.Usagef("want either REF, or PATH, or --installed")
		case platforms && (all || places.IsPath(args[0])):
			return cli.Usagef("--all-platforms is for a published plugin; what is installed is for one platform")
		case all || places.IsPath(args[0]):
			v := installedCheck{app: app, checks: []check{}}
			if lockFile != "" {
				lock, err := readLock(lockFile, false)
				if err != nil {
					return err
				}
				v.lock = lock
			}
			return v.run(cmd.Context(), flags, args)
		case lockFile != "":
			return cli.Usagef("--lock is for what is installed; fleeting-plugin lock REF compares a published plugin")
		}
		return verifyRemote(cmd.Context(), app, flags, args[0], platforms)
	})
	return cmd
}

func verifyRemote(ctx context.Context, app *cli.App, flags *installFlags, arg string, allPlatforms bool) error {
	if flags.insecure {
		return cli.Hint(cli.Usagef("verify cannot skip verification"), "omit --insecure-no-verification; to see what a reference resolves to: fleeting-plugin resolve REF")
	}
	ref, err := installer.ParseReference(arg)
	if err != nil {
		return err
	}
	i, err := flags.installer(ctx)
	if err != nil {
		return err
	}
	verify := i.Verify
	if allPlatforms {
		verify = i.VerifyAllPlatforms
	}
	verified, err := verify(ctx, ref)
	if err != nil {
		return err
	}
	return app.Print(verified, func(p *cli.Page) { writeVerified(p, verified, flags.rule(verified.Verification.Rule)) })
}

func writeVerified(p *cli.Page, v installer.Verified, rule string) {
	p.Printf("%s\n", v.Reference)
	line := func(label, value string) { p.Field(15, "  "+label, value) }
	line("version", v.Version.String())
	line("digest", v.Digest().String())
	line("covers", covers(v))
	line("platform", v.Platform)
	line("rule", rule)
	line("verdict", signedBy(v.Verification))
	for _, e := range v.Verification.Evidence {
		line(e.Kind, strings.TrimSuffix(e.Format+", "+e.PredicateType, ", "))
		line("  about", e.Subject.String())
		writeEvidence(line, e)
	}
}

// writeEvidence says from what, when and where somebody signed.
func writeEvidence(line func(label, value string), e installer.Evidence) {
	line("  from", strings.TrimSuffix(e.SourceRepository+" at "+e.SourceRef, " at "))
	line("  run", e.Run)
	if e.Time != nil {
		line("  signed", e.Time.UTC().Format("2006-01-02 15:04:05Z"))
	}
	if e.LogIndex != nil {
		line("  log entry", strconv.FormatInt(*e.LogIndex, 10))
	}
}

// covers says what the evidence vouches for.
func covers(v installer.Verified) string {
	switch {
	case v.Verification.Covers == "":
		return "nothing: no evidence was asked for"
	case v.Index == "":
		return v.Platform + ", the single manifest that was published"
	case v.Digest() == v.Index:
		return "the index, and so every platform in it"
	}
	return v.Platform + " only; no signature covers the index " + v.Index.String()
}

// check is the outcome for one installed version.
type check struct {
	installer.Installed
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
	err     error
	// state is what the table says.
	state string
}

func (c *check) note(err error) {
	if err != nil {
		c.OK, c.Problem, c.err = false, err.Error(), err
	}
}

// installedCheck compares what is installed with its receipts and with a lock.
type installedCheck struct {
	app      *cli.App
	lock     installer.Lock
	checks   []check
	problems []error
	rows     [][]string
}

func (v *installedCheck) run(ctx context.Context, flags *installFlags, args []string) error {
	list, err := installedAt(flags, args)
	if err != nil {
		return err
	}
	read := reading(v.app, list)
	checks, err := together(ctx, list, func(installed installer.Installed) (check, error) {
		defer read(installed)
		return v.check(ctx, installed), nil
	})
	if err != nil {
		return err
	}
	for _, c := range checks {
		v.add(c)
	}
	none := ""
	if len(args) == 0 {
		folder, err := flags.folder()
		if err != nil {
			return err
		}
		v.missing(folder)
		none = nothingIn(folder)
	}
	if err := v.app.PrintTable(v.checks, []string{"plugin", "version", "files", "signer"}, v.rows, none); err != nil {
		return err
	}
	return errors.Join(v.problems...)
}

// check compares one version. It may be called from several goroutines.
func (v *installedCheck) check(ctx context.Context, installed installer.Installed) check {
	c := check{Installed: installed, OK: true, state: "as installed"}
	if locked, ok := v.lock.For(installed); ok {
		c.state = "as locked"
		c.note(installed.VerifyLocked(ctx, locked))
	} else {
		c.note(installed.Verify(ctx))
	}
	switch {
	case c.OK:
	case installed.Foreign:
		c.state = "NO RECEIPT"
	case errors.Is(c.err, installer.Reason("lock-differs")):
		c.state = "NOT AS LOCKED"
	default:
		c.state = "CHANGED"
	}
	return c
}

func (v *installedCheck) add(c check) {
	v.checks = append(v.checks, c)
	if c.err != nil {
		v.problems = append(v.problems, c.err)
	}
	v.rows = append(v.rows, []string{c.Receipt.Name, c.Receipt.Version.String(), c.state, signerColumn(c.Installed)})
}

// reading shows how much of what is installed was read again, each time that it is
// called.
func reading(app *cli.App, list []installer.Installed) func(installer.Installed) {
	var done atomic.Int64
	var total int64
	for _, one := range list {
		total += sizeOf(one)
	}
	return func(one installer.Installed) { app.Progress("reading", "", done.Add(sizeOf(one)), total) }
}

func sizeOf(one installer.Installed) (total int64) {
	for _, file := range one.Receipt.Files {
		total += file.Size
	}
	return total
}

// missing reports what the lock names and the folder does not have.
func (v *installedCheck) missing(folder *installer.Folder) {
	for _, locked := range v.lock.Plugins() {
		if _, err := folder.Locked(locked); err != nil {
			c := check{Installed: installer.Installed{Receipt: installer.Receipt{Name: locked.Name(), Reference: locked.Reference, Version: locked.Version}}}
			c.note(err)
			v.checks = append(v.checks, c)
			v.problems = append(v.problems, err)
			v.rows = append(v.rows, []string{locked.Name(), locked.Version.String(), "MISSING", strings.Join(locked.Signers, ", ")})
		}
	}
}

func installedAt(flags *installFlags, args []string) ([]installer.Installed, error) {
	if len(args) == 1 {
		one, err := installer.InstalledAt(args[0])
		if errors.Is(err, installer.Reason("not-installed")) {
			err = cli.Hint(err, nextInstalled)
		}
		return []installer.Installed{one}, err
	}
	folder, err := flags.folder()
	if err != nil {
		return nil, err
	}
	// A wrong folder must not look like one in which all is well.
	if _, err := os.Stat(folder.Dir()); errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Hint(cli.WithCode(err, cli.NotFound), nextFolder)
	}
	return folder.List()
}

func signerColumn(installed installer.Installed) string {
	switch {
	case installed.Foreign:
		return "unknown"
	case installed.Receipt.Verification.Unsafe:
		return "not verified"
	}
	return strings.Join(installed.Receipt.Verification.Signers(), ", ")
}
