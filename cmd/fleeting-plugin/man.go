package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/docgen"
)

// newManCmd writes the manual page, for packages; people read it with man.
func newManCmd(app *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:    "man",
		Short:  "Write the manual page",
		Args:   cli.Args(0, 0),
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(app.Out, docgen.Man(cmd.Root(), append(topics(), seeAlso())...))
			return err
		},
	}
}

// topics are what the manual page and the reference say beside the commands.
func topics() []docgen.Topic {
	return []docgen.Topic{
		{Title: "Exit status", Heading: "code", Items: []docgen.Item{
			{Name: "0", Text: "what was asked for is done"},
			{Name: "1", Text: "it failed, and no other code says how"},
			{Name: "2", Text: "the command line or a file of yours is wrong"},
			{Name: "3", Text: "a policy does not allow it"},
			{Name: "4", Text: "a reference, version, platform, plugin or commit does not exist"},
			{Name: "5", Text: "a registry or the network failed"},
		}},
		{Title: "Environment", Heading: "variable", Items: []docgen.Item{
			{Name: "FLEETING_PLUGIN_PATH", Text: "folder with the plugins, as an absolute path; the runner needs the same"},
			{Name: "FLEETING_PLUGIN_POLICY", Text: "file with the policy"},
			{Name: "CONFIG_FILE", Text: "the runner's configuration, as the runner reads it"},
			{Name: "DOCKER_CONFIG", Text: "folder with docker's config.json and so with credentials of registries"},
			{Name: "REGISTRY_AUTH_FILE", Text: "file with credentials of registries, as podman reads it"},
			{Name: "DOCKER_AUTH_CONFIG", Text: "content of docker's config.json, as GitLab CI has it"},
			{Name: "CI_REGISTRY, CI_REGISTRY_USER, CI_REGISTRY_PASSWORD, CI_JOB_TOKEN", Text: "credentials of a GitLab CI job for its own registry"},
			{Name: "HTTPS_PROXY, HTTP_PROXY, NO_PROXY", Text: "proxy to reach registries, and hosts that are reached without it"},
			{Name: "COSIGN_PASSWORD", Text: "password of the private key; an empty one is used, too"},
			{Name: "COSIGN_REPOSITORY", Text: "repository of signatures and attestations"},
			{Name: "SIGSTORE_ID_TOKEN", Text: "OIDC token for --keyless"},
			{Name: "SIGSTORE_FULCIO_URL", Text: "certificate authority for --keyless"},
			{Name: "GITHUB_*, GITLAB_CI, CI_*, ACTIONS_ID_TOKEN_REQUEST_*", Text: "facts about the job of GitHub Actions or GitLab CI, for metadata, provenance and identity token"},
			{Name: "SOURCE_DATE_EPOCH", Text: "time of the artifact, in seconds since 1970"},
			{Name: "GOMODCACHE, GOPATH", Text: "where Go keeps modules, to find their licences"},
			{Name: "XDG_CONFIG_HOME, XDG_CACHE_HOME, XDG_STATE_HOME, XDG_RUNTIME_DIR", Text: "folders of the user, not on Windows"},
			{Name: "NO_COLOR", Text: "if it is not empty, nothing is coloured; a TERM of dumb does the same"},
		}},
		{Title: "Files", Heading: "file", Items: []docgen.Item{
			{Name: "~/.config/fleeting/plugins", Text: "the plugins, unless FLEETING_PLUGIN_PATH or --dir says otherwise; %APPDATA%\\fleeting\\plugins on Windows"},
			{Name: "~/.config/fleeting/policy.toml", Text: "the policy; %APPDATA%\\fleeting\\policy.toml on Windows. Without one, only plugins of this tool's makers are trusted"},
			{Name: "/etc/gitlab-runner/config.toml", Text: "the runner's configuration if root runs the command; ~/.gitlab-runner/config.toml for other users, config.toml in the current folder on Windows"},
			{Name: "fleeting-plugins.lock", Text: "the lock, beside the runner's configuration"},
			{Name: "~/.docker/config.json", Text: "credentials of registries, and those of podman"},
			{Name: "/etc/containers/certs.d, /etc/docker/certs.d", Text: "certificate authorities and client certificates, by the registry's host"},
		}},
	}
}

func seeAlso() docgen.Topic {
	return docgen.Topic{Title: "See also", Items: []docgen.Item{
		{Text: "gitlab-runner(1), fleeting-plugin-openstack(1), cosign(1), containers-auth.json(5), https://github.com/radome-io/fleeting-plugin-openstack/tree/main/docs"},
	}}
}
