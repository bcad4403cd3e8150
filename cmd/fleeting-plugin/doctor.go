package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/access"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// finding is the outcome of one check.
type finding struct {
	Check string `json:"check"`
	// State is ok, warning or problem.
	State  string `json:"state"`
	Detail string `json:"detail"`
	// Next is what to try.
	Next string `json:"next,omitempty"`
}

// doctor collects findings.
type doctor struct {
	app      *cli.App
	folder   *folderFlags
	policy   *policyFlags
	registry *cli.RegistryFlags
	findings []finding
	// told are the files and folders that others may write and that were named.
	told map[string]bool
	// taken are the folders of the versions that the runner takes by its
	// configuration. Of those that something else installed, the user was told.
	taken map[string]bool
	// allowed says whether the policy lets in what is installed; nil without one.
	allowed func(installer.Installed) error
	// altered says that a problem is one for which other commands refuse.
	altered bool
}

func (d *doctor) add(check, state, detail, next string) {
	d.findings = append(d.findings, finding{check, state, detail, next})
}

// refuse adds a problem for which other commands refuse, with their exit code.
func (d *doctor) refuse(check, detail, next string) {
	d.altered = true
	d.add(check, "problem", detail, next)
}

// newDoctorCmd looks for what keeps plugins from working.
func newDoctorCmd(app *cli.App) *cobra.Command {
	var config string
	var noStart bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what keeps installed plugins from working",
		Long: `Check whether installed plugins work:

- the folder of plugins, and the policy
- the plugins that the runner's configuration names
- the user that is used to log in to each registry
- every installed file, against its receipt and the policy
- whether plugins start and answer as the runner expects: the versions that the
  runner uses, and the newest of each plugin. --no-start omits this.

Plugins are started with a minimal environment and stopped at once.

Report other users who may write the plugins, the policy, its keys, the lock, the
runner's configuration and the files with credentials, or a folder above them. An
executable that other users may write is not started.`,
	}
	folder, policy := newFolderFlags(app, cmd), newPolicyFlags(app, cmd)
	registry := app.RegistryFlags(cmd.Flags())
	cmd.Flags().StringVar(&config, "config", "", "runner configuration `FILE` to check (default where the runner has it)")
	cmd.Flags().BoolVar(&noStart, "no-start", false, "do not start the plugins")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d := &doctor{app: app, folder: folder, policy: policy, registry: registry, told: map[string]bool{}, taken: map[string]bool{}}
		d.checkPolicy()
		folder, there := d.checkFolder()
		if folder != nil {
			d.checkConfig(cmd.Context(), folder, config, !noStart)
		}
		if there {
			d.checkInstalled(cmd.Context(), folder, !noStart)
		}
		return d.report()
	}
	return cmd
}

func (d *doctor) report() error {
	problems := 0
	for _, f := range d.findings {
		if f.State == "problem" {
			problems++
		}
	}
	if err := d.app.Print(d.findings, d.write); err != nil {
		return err
	}
	code := cli.Failed
	if d.altered {
		code = cli.Refused
	}
	switch problems {
	case 0:
		return nil
	case 1:
		return cli.WithCode(errors.New("1 problem"), code)
	}
	return cli.WithCode(fmt.Errorf("%d problems", problems), code)
}

// write gives each finding its line, and what to try next one below it.
func (d *doctor) write(p *cli.Page) {
	const state, check = len("warning") + 2, len("configuration") + 2
	for _, f := range d.findings {
		p.State(state, f.State, check, f.Check, f.Detail)
		for line := range strings.Lines(f.Next) {
			p.Command(strings.Repeat(" ", state)+"next: ", strings.TrimSuffix(line, "\n"))
		}
	}
}

// guard looks at who else may change what lies at a path, and says whether nobody
// may.
func (d *doctor) guard(check, path, what string) bool {
	writers, err := access.Way(path)
	if err != nil {
		d.add(check, "problem", err.Error(), "")
		return false
	}
	for _, w := range writers {
		if d.told[w.Path] {
			continue
		}
		d.told[w.Path] = true
		d.add(check, "problem", fmt.Sprintf("%s may write %s, and so change %s", w.Who, w.Path, what), nextWriters(w.Path))
	}
	return len(writers) == 0
}

func nextWriters(path string) string {
	if runtime.GOOS == "windows" {
		return "let only administrators and the runner's user write it: icacls " + path
	}
	return "chmod go-w " + path + "; if it is another user's, run doctor as that user"
}

func (d *doctor) checkPolicy() {
	policy, err := d.policy.policy()
	guarded := true
	for _, anchor := range d.policy.anchors {
		guarded = d.guard("policy", anchor, anchor) && guarded
	}
	if err != nil {
		d.add("policy", "problem", err.Error(), d.app.HintOf(err))
		return
	}
	for _, rule := range policy.Rules() {
		if trustsClaims(rule) {
			d.add("policy", "warning", "a key may sign the provenance that the rule for "+rule.Scope+" asks for, and its holder writes builder and source", nextClaims)
		}
		if rule.Unsafe {
			d.add("policy", "warning", "nothing is verified in "+rule.Scope, "name a signer for it")
		}
	}
	count := "1 rule"
	if n := len(policy.Rules()); n != 1 {
		count = fmt.Sprintf("%d rules", n)
	}
	d.allowed = policy.Allows
	if guarded {
		d.add("policy", "ok", count, "")
	}
}

// checkAllowed holds an installed plugin against the policy, by its receipt.
func (d *doctor) checkAllowed(one installer.Installed, name string) {
	if d.allowed == nil {
		return // the policy is a problem of its own
	}
	err := d.allowed(one)
	switch _, unruled := errors.AsType[*installer.NoRuleError](err); {
	case err == nil:
	case unruled, errors.Is(err, installer.Reason("other-policy")):
		d.add("policy", "warning", name+": "+err.Error(), "name the policy that it was installed with, or install it with this one: "+reinstall(one.Receipt))
	default:
		d.refuse("policy", name+": "+err.Error(), reinstall(one.Receipt))
	}
}

// checkFolder looks at the folder: nil if there is no name for one, and whether
// it is there to look into.
func (d *doctor) checkFolder() (folder *installer.Folder, there bool) {
	folder, err := d.folder.folder()
	if err != nil {
		d.add("folder", "problem", err.Error(), d.app.HintOf(err))
		return nil, false
	}
	info, err := os.Stat(folder.Dir())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.missingFolder(folder.Dir())
		return folder, false
	case err != nil:
		d.add("folder", "problem", err.Error(), "")
		return folder, false
	case !info.IsDir():
		d.add("folder", "problem", folder.Dir()+" is not a folder", "")
		return folder, false
	case !d.guard("folder", folder.Dir(), "the plugins"):
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o005 != 0o005:
		d.add("folder", "warning", fmt.Sprintf("only some users may read %s (%s)", folder.Dir(), info.Mode().Perm()), "chmod o+rx, if the runner is another user")
	default:
		d.add("folder", "ok", folder.Dir(), "")
	}
	return folder, true
}

// onlyOwn is the command that keeps others out of a file or folder; chmod is it
// where there are modes.
func onlyOwn(path, chmod string) string {
	if runtime.GOOS != "windows" {
		return chmod + " " + path
	}
	return `icacls "` + path + `" /inheritance:r /grant:r *S-1-5-32-544:(OI)(CI)F *S-1-5-18:(OI)(CI)F`
}

// missingFolder is a problem if somebody named the folder: then it is meant to be
// there. Where the runner looks by default nothing may have been installed yet; if
// its configuration names something, that is a problem of its own.
func (d *doctor) missingFolder(dir string) {
	if how, ok := d.folder.named(); ok {
		d.add("folder", "problem", dir+", from "+how+", is not there", "if the name is right: fleeting-plugin install REF makes it; the runner needs the same FLEETING_PLUGIN_PATH")
		return
	}
	d.add("folder", "warning", dir+" is not there", "fleeting-plugin install REF makes it")
}

// checkConfig holds what the runner's configuration names against what is there.
func (d *doctor) checkConfig(ctx context.Context, folder *installer.Folder, config string, start bool) {
	if place := placeOf(d.app, config); !place.exists() {
		d.add("configuration", "warning", "not checked: there is none at "+place.path(), "name the runner's: --config FILE")
		return
	}
	plugins, err := readConfig(d.app, config, "name the runner's configuration: --config FILE")
	if err != nil {
		d.add("configuration", "problem", err.Error(), d.app.HintOf(err))
		return
	}
	place := placeOf(d.app, config)
	d.guard("configuration", place.path(), place.path())
	lock := place.lock("")
	if _, err := os.Lstat(lock); err == nil {
		d.guard("lock", lock, lock)
	}
	d.checkCredentials(ctx, plugins)
	for _, p := range plugins {
		if p.Local {
			d.checkLocal(ctx, p, start)
			continue
		}
		d.checkTaken(ctx, folder, p)
	}
}

// checkTaken looks at what the runner takes for a plugin of its configuration,
// whoever put that there.
func (d *doctor) checkTaken(ctx context.Context, folder *installer.Folder, p installer.ConfigPlugin) {
	if p.Reference.Pinned() {
		d.add("configuration", "problem", fmt.Sprintf("runner %q: the runner cannot look up the digest in %s", p.Runner, p.Text),
			"name a version there, and pin the digest with fleeting-plugin lock")
		return
	}
	taken, err := folder.RunnerTakes(p.Reference)
	if err != nil {
		d.add("configuration", "problem", fmt.Sprintf("runner %q: %v", p.Runner, err), "fleeting-plugin install "+p.Text)
		return
	}
	d.taken[taken.Dir] = true
	name := taken.Receipt.Name + " " + taken.Receipt.Version.String()
	_, err = os.Stat(taken.Path)
	switch {
	case err != nil:
		d.add("configuration", "problem", fmt.Sprintf("runner %q gets %s, which is not there: %v", p.Runner, name, err), "find out which program made a folder of that name")
	case taken.Foreign:
		what, next := foreign(ctx, taken)
		d.refuse("configuration", fmt.Sprintf("runner %q gets %s: %s", p.Runner, name, what), next)
	default:
		d.add("configuration", "ok", fmt.Sprintf("runner %q gets %s", p.Runner, name), "")
	}
}

// checkInstalled looks at every installed version. It starts those that the runner
// takes, and the newest of each plugin.
func (d *doctor) checkInstalled(ctx context.Context, folder *installer.Folder, start bool) {
	list, err := folder.List()
	if err != nil {
		d.add("installed", "problem", err.Error(), "")
		return
	}
	starting, left := map[string]bool{}, 0
	for n, one := range list {
		newest := n == len(list)-1 || list[n+1].Receipt.Name != one.Receipt.Name
		starting[one.Dir] = start && (newest || d.taken[one.Dir])
		if start && !starting[one.Dir] && !one.Foreign {
			left++
		}
	}
	read := reading(d.app, list)
	looked, err := together(ctx, list, func(one installer.Installed) (*doctor, error) {
		defer read(one)
		alone := &doctor{app: d.app, taken: d.taken, allowed: d.allowed}
		alone.checkVersion(ctx, one, starting[one.Dir])
		return alone, nil
	})
	for _, alone := range looked {
		d.findings, d.altered = append(d.findings, alone.findings...), d.altered || alone.altered
	}
	if err != nil {
		d.add("installed", "problem", "not everything was checked: "+err.Error(), "")
	}
	switch left {
	case 0:
	case 1:
		d.add("start", "ok", "1 older version is not started", "")
	default:
		d.add("start", "ok", fmt.Sprintf("%d older versions are not started", left), "")
	}
}

// checkVersion looks at one installed version.
func (d *doctor) checkVersion(ctx context.Context, one installer.Installed, start bool) {
	name := one.Receipt.Name + " " + one.Receipt.Version.String()
	switch err := one.Verify(ctx); {
	case one.Foreign && d.taken[one.Dir]:
		return // was told of
	case errors.Is(err, installer.Reason("foreign")):
		what, next := foreign(ctx, one)
		d.add("files", "warning", name+": "+what, next)
		return
	case errors.Is(err, installer.Reason("changed")):
		d.refuse("files", err.Error(), reinstall(one.Receipt))
		return
	case err != nil:
		d.add("files", "problem", err.Error(), reinstall(one.Receipt))
		return
	}
	d.add("files", "ok", name, "")
	d.checkAllowed(one, name)
	if !one.RunsHere() {
		d.add("start", "warning", name+" is for "+one.Receipt.Platform, "")
		return
	}
	if start {
		d.checkStart(ctx, one.Path, name)
	}
}

func (d *doctor) checkStart(ctx context.Context, path, name string) {
	writers, err := access.Way(path)
	if err == nil && len(writers) > 0 {
		err = fmt.Errorf("not started, since %s may write %s", writers[0].Who, writers[0].Path)
	}
	if err != nil {
		d.add("start", "problem", name+": "+err.Error(), nextWriters(path))
		return
	}
	protocol, err := startOnce(ctx, path)
	if err != nil {
		why, next := whyNotStarted(path)
		if why == "" {
			why, next = err.Error(), "start it by hand: "+path+" version"
		}
		d.add("start", "problem", name+": "+why, next)
		return
	}
	d.add("start", "ok", fmt.Sprintf("%s serves protocol %d", name, protocol), "")
}

// foreign says why nothing is known about a version, and how it becomes one of ours.
func foreign(ctx context.Context, one installer.Installed) (what, next string) {
	ref := one.Receipt.Name + ":" + one.Receipt.Version.String()
	if err := one.Verify(ctx); !errors.Is(err, installer.Reason("foreign")) {
		return fmt.Sprint(err), "fleeting-plugin install --reinstall " + ref
	}
	return "it has no receipt, so something else installed it, such as gitlab-runner fleeting install", "verify it and take it over: fleeting-plugin install " + ref + "\nor remove it: fleeting-plugin uninstall " + ref
}

// reinstall is the command that puts an installed plugin back as it was: that
// version, whatever else is published by now, under the name that it has.
func reinstall(r installer.Receipt) string {
	command := "fleeting-plugin install --reinstall "
	if r.Name != r.Reference.Name() {
		command += "--as " + r.Name + " "
	}
	if r.Reference.Pinned() {
		return command + r.Reference.String()
	}
	return command + r.Reference.Name() + ":" + r.Version.String()
}
