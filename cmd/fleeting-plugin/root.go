package main

import (
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// The groups under which help lists the commands.
const (
	groupPublish = "publish"
	groupInstall = "install"
	groupTrust   = "trust"
	groupOther   = "other"
)

// NewRootCmd returns a fresh command tree that reads and writes through app.
func NewRootCmd(app *cli.App) *cobra.Command {
	root := newTree(app)
	complete(app, root)
	return root
}

// newTree is the command tree without completion, of which cobra keeps all that
// were ever made.
func newTree(app *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "fleeting-plugin",
		Short: "Package, publish, verify and install fleeting plugins",
		Long: `Package, publish, verify and install plugins for GitLab Runner's fleeting
through OCI registries.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused by policy, 4 not found,
5 network or registry.`,
		Example: `  # Publish executables, signed.
  fleeting-plugin release dist registry.example.com/group/plugin:1.2.3 --key cosign.key
  # Trust the publisher, and install what the runner names.
  fleeting-plugin policy init --scope 'registry.example.com/group/**' --signed-by-key cosign.pub
  fleeting-plugin install --config /etc/gitlab-runner/config.toml
  # Look for what keeps plugins from working.
  fleeting-plugin doctor`,
		Version:           cli.NewVersion("fleeting-plugin", version, revision).Version,
		DisableAutoGenTag: true,
	}
	app.OtherCommands(map[string]string{
		"search": noSearch, "find": noSearch, "browse": noSearch,
		"tags": listVersions, "versions": listVersions, "releases": listVersions,
	})
	app.OtherFlags(flagsElsewhere())
	otherNames := namesElsewhere()
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	app.AddFlags(root.PersistentFlags())
	addGroups(root)
	for _, c := range []struct {
		group string
		cmd   *cobra.Command
	}{
		{groupPublish, newPackageCmd(app)},
		{groupPublish, newPushCmd(app)},
		{groupPublish, newSignCmd(app)},
		{groupPublish, newAttestCmd(app)},
		{groupPublish, newAttestFilesCmd(app)},
		{groupPublish, newReleaseCmd(app)},
		{groupPublish, newPromoteCmd(app)},
		{groupPublish, newSBOMCmd(app)},
		{groupPublish, newLicensesCmd(app)},
		{groupTrust, newInspectCmd(app)},
		{groupTrust, newResolveCmd(app)},
		{groupTrust, newVerifyCmd(app)},
		{groupTrust, newVerifyFilesCmd(app)},
		{groupTrust, newRebuildCmd(app)},
		{groupTrust, newPolicyCmd(app)},
		{groupInstall, newInstallCmd(app)},
		{groupInstall, newLockCmd(app)},
		{groupInstall, newUpgradeCmd(app)},
		{groupInstall, newOutdatedCmd(app)},
		{groupInstall, newRollbackCmd(app)},
		{groupInstall, newPruneCmd(app)},
		{groupInstall, newMirrorCmd(app)},
		{groupInstall, newListCmd(app)},
		{groupInstall, newLookpathCmd(app)},
		{groupInstall, newUninstallCmd(app)},
		{groupTrust, newDoctorCmd(app)},
		{groupOther, newLoginCmd(app)},
		{groupOther, newLogoutCmd(app)},
		{groupOther, newCompletionCmd(app)},
		{groupOther, newVersionCmd(app)},
		{groupOther, newManCmd(app)},
	} {
		c.cmd.GroupID, c.cmd.SuggestFor = c.group, otherNames[c.cmd.Name()]
		root.AddCommand(c.cmd)
	}
	return root
}

// addGroups adds the groups that help lists commands in.
func addGroups(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: groupPublish, Title: "Publish a plugin:"},
		&cobra.Group{ID: groupInstall, Title: "Install plugins:"},
		&cobra.Group{ID: groupTrust, Title: "Check what there is:"},
		&cobra.Group{ID: groupOther, Title: "Other:"},
	)
	root.SetHelpCommandGroupID(groupOther)
}

// What to do in place of commands that a registry has no answer to, or that are
// part of another.
const (
	noSearch     = "registries have no search; name the plugin, as in: fleeting-plugin resolve registry.example.com/team/plugin"
	listVersions = "fleeting-plugin resolve --explain REF says which version a reference resolves to, and why"
)

// namesElsewhere are what commands are called in other package managers.
func namesElsewhere() map[string][]string {
	return map[string][]string{
		"package":    {"pack", "build", "bundle"},
		"push":       {"upload"},
		"release":    {"publish", "deploy"},
		"sbom":       {"bom"},
		"licenses":   {"licences", "license", "notices", "credits"},
		"inspect":    {"info", "show", "describe", "view", "manifest"},
		"resolve":    {"digest", "lookup"},
		"verify":     {"validate", "audit", "check"},
		"install":    {"add", "get", "download", "pull", "fetch"},
		"lock":       {"pin", "freeze"},
		"upgrade":    {"update"},
		"outdated":   {"check-update", "updates"},
		"rollback":   {"downgrade", "undo", "revert"},
		"prune":      {"clean", "cleanup", "gc", "autoremove"},
		"mirror":     {"copy", "cp", "sync", "export", "save"},
		"list":       {"ls", "installed", "status"},
		"lookpath":   {"which", "where", "path"},
		"uninstall":  {"remove", "rm", "delete", "del", "erase"},
		"doctor":     {"diagnose", "check", "health"},
		"login":      {"auth", "signin"},
		"logout":     {"signout"},
		"completion": {"completions"},
	}
}

// flagsElsewhere are flags that people know from other tools, and what to write
// instead.
func flagsElsewhere() map[string]string {
	const (
		json     = "write --output json"
		noTLS    = "write --insecure-plain-http HOST[:PORT] for a registry without TLS, --ca-file FILE for one with its own certificate authority"
		unsigned = "write --insecure-no-verification; then anyone who controls the registry controls what is installed"
		behind   = "write the version after the name, as in registry.example.com/team/plugin:1.2"
		replace  = "install has --reinstall; push and release have --replace"
		dir      = "write --dir DIR"
		platform = "write --platform OS/ARCH, such as linux/arm64"
	)
	return map[string]string{
		"json": json, "o": json, "format": json, "template": json,
		"yes": "omit it: no command asks for confirmation", "y": "omit it: no command asks for confirmation",
		"force": replace, "f": replace, "overwrite": replace,
		"insecure": noTLS, "tls-verify": noTLS, "skip-tls-verify": noTLS, "insecure-skip-tls-verify": noTLS,
		"no-verify": unsigned, "skip-verify": unsigned, "verify": unsigned,
		"tag": behind, "version": behind,
		"dry-run": "to resolve and verify without installing: fleeting-plugin verify REF",
		"target":  dir, "prefix": dir, "path": dir, "folder": dir, "directory": dir,
		"arch": platform, "os": platform,
		"debug": "write --verbose", "silent": "write --quiet",
		"color": "set NO_COLOR=1 to omit colours", "no-color": "set NO_COLOR=1 to omit colours", "no-trunc": "omit it: nothing is cut",
	}
}
