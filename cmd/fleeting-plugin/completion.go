package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// newCompletionCmd writes the completion script of a shell.
func newCompletionCmd(app *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Write the completion script of a shell",
		Long: `Write the completion script of a shell. That for bash needs the package
bash-completion: without it each Tab says that _get_comp_words_by_ref is not
found.`,
		Example: `  # bash, for this session
  source <(fleeting-plugin completion bash)
  # bash, for all that follow
  mkdir -p ~/.local/share/bash-completion/completions
  fleeting-plugin completion bash > ~/.local/share/bash-completion/completions/fleeting-plugin`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && slices.Contains(cmd.ValidArgs, args[0]) {
				return nil
			}
			return cli.Hint(fmt.Errorf("want the name of a shell, got %q", args), "fleeting-plugin completion bash, or zsh, fish, powershell")
		},
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(app.Out, true)
			case "zsh":
				return root.GenZshCompletion(app.Out)
			case "fish":
				return root.GenFishCompletion(app.Out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(app.Out)
			}
		},
	}
}
