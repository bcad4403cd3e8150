package main

import (
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// newCompletionCmd writes the completion script of a shell.
func newCompletionCmd(app *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Write the completion script of a shell",
		Example: `  # bash, for this session
  source <(fleeting-plugin completion bash)`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
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
