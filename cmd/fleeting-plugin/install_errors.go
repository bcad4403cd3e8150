package main

import (
	"errors"
	"net"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// explained adds what to do about names that the runner cannot look up: with one
// REF, a flag is enough; for what a configuration names, it has to be changed, too.
func explained(cmd *cobra.Command, args []string, err error) error {
	if all := cli.Apart(err); len(all) > 1 {
		for n, one := range all {
			all[n] = explained(cmd, args, one)
		}
		return errors.Join(all...)
	}
	failed, ok := errors.AsType[*installer.Error](err)
	if !ok || !errors.Is(err, installer.Reason("name")) {
		return err
	}
	ref, invalid := installer.ParseReference(failed.Ref)
	if invalid != nil {
		return err
	}
	if len(args) == 1 || cmd.Flags().Lookup("as") == nil {
		return cli.Hint(err, asName(ref))
	}
	name := nameFor(ref)
	return cli.Hintf(err, "fleeting-plugin %s --as %s %s\nand name it in the runner's configuration: plugin = %q",
		cmd.Name(), name, ref, name+strings.TrimPrefix(ref.String(), ref.Name()))
}

// atHand names the flag that goes on with what a mirror of single platforms has.
func atHand(cmd *cobra.Command, err error) error {
	partial, ok := errors.AsType[*installer.PartialError](err)
	switch {
	case !ok || len(partial.Present) == 0:
		return err
	case cmd.Flags().Lookup("only-platform") != nil:
		return cli.Hint(err, "copy what is there: --only-platform "+strings.Join(partial.Present, " --only-platform ")+"; registries may require the others, too, layouts and tar files do not")
	case cmd.Name() == "lock":
		return cli.Hint(err, "a lock needs all platforms: run lock where they all are, then install --locked with --from")
	}
	return cli.Hint(err, "choose a platform that is there: --platform "+partial.Present[0]+"; or mirror this one, too: fleeting-plugin mirror without --only-platform")
}

func asName(ref installer.Reference) string {
	return "install it under a name that the runner can look up: --as " + nameFor(ref)
}

// nameFor is a name to install a plugin under: its own, without the port.
func nameFor(ref installer.Reference) string {
	host, _, err := net.SplitHostPort(ref.Registry())
	name := host + "/" + ref.Repository()
	if again, invalid := installer.ParseReference(name); err != nil || invalid != nil || again.Name() != name || !strings.Contains(host, ".") {
		return "registry.example.com/team/plugin"
	}
	return name
}

// mapInstallerErrors says which exit codes and hints go with the installer's
// errors; the narrow ones come first.
func mapInstallerErrors(app *cli.App) {
	for _, m := range []struct {
		target error
		code   cli.Code
		hint   string
	}{
		{installer.Reason("no-rule"), cli.Refused, "fleeting-plugin policy init"},
		{installer.Reason("not-attested"), cli.Refused, nextFile},
		{installer.Reason("bundle"), cli.Refused, nextBundle},
		{installer.Reason("unsigned"), cli.Refused, "ask the publisher for a signed release; if this is a copy: docker, crane and skopeo leave signatures behind, fleeting-plugin mirror and cosign copy do not"},
		{installer.Reason("one-platform"), cli.Refused, "ask the publisher to sign the index, too; to verify one platform only, omit --all-platforms"},
		{installer.Reason("unknown-log"), cli.Refused, "name a trusted root that has this log: --trusted-root FILE, or trusted-root in the policy; cosign trusted-root create writes one"},
		{installer.Reason("lock-differs"), cli.Refused, "if the lock is right: fleeting-plugin install --locked REF\nif what is installed is right: fleeting-plugin lock REF"},
		{installer.Reason("signer-changed"), cli.Refused, "if you trust the new signer, add --accept-signer-change"},
		{installer.Reason("downgrade"), cli.Refused, "if you want the older version, add --allow-downgrade; it removes newer ones"},
		{installer.Reason("moved"), cli.Refused, "a published version must not change: ask the publisher why it did"},
		{installer.Reason("occupied"), cli.Refused, "name another destination, or find out which of the two is right; mirror overwrites no version and no signature"},
		{installer.Reason("mismatch"), cli.Refused, "the registry returned other bytes than were published: tell its administrator"},
		{installer.Reason("foreign"), cli.Refused, "verify it and take it over: fleeting-plugin install REF\nor remove it: fleeting-plugin uninstall REF"},
		{installer.Reason("changed"), cli.Refused, "find out who changed it, then: fleeting-plugin install --reinstall REF"},
		{installer.Reason("shadowed"), cli.Refused, "see what is there: fleeting-plugin list; remove what the runner must not take: fleeting-plugin uninstall NAME:VERSION"},
		{installer.Reason("needed"), cli.Refused, "one folder cannot have both: change one of the references, or give that runner a folder of its own with FLEETING_PLUGIN_PATH"},
		{installer.Reason("symlink"), cli.Refused, "find out who made the link, and remove it; the folder itself may be a link"},
		{durable.ErrLink, cli.Refused, "find out who made the link, and remove it; or name another folder"},
		{installer.Reason("hostile"), cli.Refused, "tell the publisher; nothing was installed"},
		{installer.Reason("too-large"), cli.Refused, "tell the publisher and the registry's administrator; nothing was installed"},
		{installer.Reason("limit"), cli.Refused, "tell the publisher; nothing was installed"},
		{installer.Reason("corrupt"), cli.Refused, "tell the publisher; nothing was installed"},
		{installer.Reason("no-attestation"), cli.Refused, "see what is published: fleeting-plugin inspect REF; ask the publisher to attest what the rule requires, or change the rule"},
		{installer.Reason("no-sct"), cli.Refused, "if its sigstore instance has no certificate log: insecure-no-sct = true in the policy, with that instance's trusted-root"},
		{installer.Reason("wrong-signer"), cli.Refused, "fleeting-plugin inspect REF shows who claims to have signed; ask the publisher which signer is right"},
		{installer.ErrRefused, cli.Refused, "compare what is published with the policy: fleeting-plugin inspect REF"},
		{installer.ErrEvidence, cli.Network, "try again; the plugin is not installed without its signatures"},
		{installer.ErrNoSpace, cli.Failed, "free space there: fleeting-plugin prune removes old versions; or name another folder with --dir"},
		{installer.Reason("sparse"), cli.Failed, "omit --only-platform, or copy to a tar file; distribution accepts it with validation.manifests.indexes.platforms: none"},
		{installer.Reason("partial"), cli.NotFound, "mirror the missing platforms, too"},
		{installer.Reason("no-version"), cli.NotFound, "choose one of the published versions"},
		{installer.Reason("no-platform"), cli.NotFound, "ask the publisher for this platform, or choose another with --platform"},
		{installer.Reason("not-installed"), cli.NotFound, "fleeting-plugin list shows what is installed; fleeting-plugin install REF installs"},
		{installer.Reason("not-plugin"), cli.Failed, "check the reference: fleeting-plugin inspect REF"},
		{installer.Reason("long-path"), cli.Usage, "choose a shorter folder: --dir DIR, and FLEETING_PLUGIN_PATH for the runner"},
		{installer.Reason("name"), cli.Usage, "install it under a name that the runner can look up: --as registry.example.com/team/plugin"},
		{installer.Reason("reference"), cli.Usage, "write it as [registry/][repository/]name[:constraint][@digest]"},
		{installer.Reason("platform"), cli.Usage, "write it as os/arch[/variant], such as linux/arm64 or linux/arm/v7"},
		{installer.Reason("policy"), cli.Usage, "correct the policy: https://github.com/radome-io/fleeting-plugin-openstack/blob/main/docs/reference/policy.md has every key"},
		{installer.Reason("not-locked"), cli.NotFound, "fleeting-plugin lock REF"},
		{installer.Reason("lock"), cli.Usage, "write it again: fleeting-plugin lock"},
		{installer.Reason("runner-config"), cli.Usage, "name the runner's configuration: --config FILE"},
	} {
		app.MapError(m.target, m.code, m.hint)
	}
	app.Describe(describeRefusal)
	app.NameErrors(func(err error) string {
		if failed, ok := errors.AsType[*installer.Error](err); ok {
			return failed.Ref
		}
		return ""
	})
}

// describeRefusal puts a refusal on a terminal: what was refused and why, its
// digest, then what was looked at, a line each.
func describeRefusal(err error) (headline string, details []string) {
	refused, ok := errors.AsType[*installer.RefusedError](err)
	if !ok {
		return "", nil
	}
	before, found := strings.CutSuffix(err.Error(), refused.Error())
	if !found {
		return "", nil
	}
	headline = before + installer.ErrRefused.Error() + ": " + refused.Why
	if at := pinned.FindString(headline); at != "" {
		headline = strings.Replace(headline, at, "", 1)
		details = append(details, "digest "+at[1:])
	}
	for _, looked := range refused.Looked {
		details = append(details, short(looked.String()))
	}
	return short(headline), details
}

var (
	// pinned is the digest in a reference.
	pinned = regexp.MustCompile(`@sha256:[0-9a-f]{64}\b`)
	// longHex is a digest, or the name of a key.
	longHex = regexp.MustCompile(`\b([0-9a-f]{12})[0-9a-f]{52}\b`)
)

// short leaves of digests and names of keys as much as tells them apart; JSON has
// the whole.
func short(text string) string { return longHex.ReplaceAllString(text, "$1…") }
