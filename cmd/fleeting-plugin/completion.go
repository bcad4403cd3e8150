package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

// newCompletionCmd writes the completion script of a shell.
func newCompletionCmd(app *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Write the completion script of a shell",
		Long: `Write the completion script of a shell. The script for bash needs the package
bash-completion. Without it, each Tab prints that _get_comp_words_by_ref is not
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
			err := errors.New("fleeting-plugin completion needs the name of one shell")
			if len(args) == 1 {
				err = fmt.Errorf("unknown shell %q", args[0])
			}
			return cli.Hint(err, "fleeting-plugin completion bash, or zsh, fish, powershell")
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

// complete makes every command complete its arguments and the values of its flags,
// by the words that its usage has for them.
func complete(app *cli.App, cmd *cobra.Command) {
	if cmd.Runnable() && cmd.ValidArgs == nil {
		words, repeated := argumentWords(cmd.Use)
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			switch n := len(args); {
			case n >= repeated:
				return completions(app, cmd, begun, slices.Concat(words[repeated:]...))
			case n < len(words):
				return completions(app, cmd, begun, words[n])
			}
			return cobra.NoFileCompletions(cmd, args, begun)
		}
	}
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if word, _ := pflag.UnquoteUsage(flag); word != "" {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return completions(app, cmd, begun, strings.Split(word, "|"))
			})
		}
	})
	for _, child := range cmd.Commands() {
		complete(app, child)
	}
}

// argumentWords are what a usage line calls each argument, and from which on they
// may be repeated.
func argumentWords(use string) (words [][]string, repeated int) {
	repeated = math.MaxInt
	fields := strings.Fields(strings.NewReplacer(" | ", "|", "[:VERSION]", "").Replace(use))[1:]
	for i := 0; i < len(fields); i++ {
		word := strings.Trim(fields[i], "[]")
		if strings.HasPrefix(word, "-") {
			i++ // its value
			continue
		}
		word, repeats := strings.CutSuffix(word, "...")
		if repeats {
			repeated = min(repeated, len(words))
		}
		words = append(words, strings.Split(word, "|"))
	}
	return words, repeated
}

// completions are what may be in the place of a word. Files are shown only where
// one may be.
func completions(app *cli.App, cmd *cobra.Command, begun string, words []string) (all []cobra.Completion, directive cobra.ShellCompDirective) {
	directive = cobra.ShellCompDirectiveNoFileComp
	space := cobra.ShellCompDirectiveDefault
	for _, word := range words {
		switch word {
		case "REF":
			all = append(all, knownPlugins(app, cmd, begun)...)
			if len(all) > 0 && !strings.Contains(begun, ":") {
				space = cobra.ShellCompDirectiveNoSpace // a version may follow
			}
		case "REGISTRY":
			all = append(all, knownRegistries(app, cmd)...)
		case "PLATFORM":
			all = append(all, usualPlatforms()...)
		case "PLATFORM=PATH", "FILE", "PATH", "EXECUTABLE", "MIRROR", "DESTINATION", "TOKEN", "TYPE=FILE", "COMMAND":
			directive = cobra.ShellCompDirectiveDefault
		case "DIR", "LAYOUT":
			directive = cobra.ShellCompDirectiveFilterDirs
		default:
			if len(words) > 1 && word == strings.ToLower(word) {
				all = append(all, word) // one of several values
			}
		}
	}
	if len(all) > 0 && directive == cobra.ShellCompDirectiveFilterDirs {
		directive = cobra.ShellCompDirectiveDefault // shells show either
	}
	return all, directive | space
}

// usualPlatforms are those that plugins are published for.
func usualPlatforms() []cobra.Completion {
	return []cobra.Completion{
		"darwin/amd64", "darwin/arm64", "freebsd/amd64", "linux/386", "linux/amd64", "linux/arm", "linux/arm64", "linux/ppc64le",
		"linux/riscv64", "linux/s390x", "windows/amd64", "windows/arm64",
	}
}

// knownPlugins are those that are installed or in the runner's configuration, and
// after a colon their installed versions. What cannot be read is left out.
func knownPlugins(app *cli.App, cmd *cobra.Command, begun string) []cobra.Completion {
	versions := map[string][]string{}
	for _, one := range installedHere(app, cmd) {
		versions[one.Receipt.Name] = append(versions[one.Receipt.Name], one.Receipt.Version.String())
	}
	if name, _, ok := strings.Cut(begun, ":"); ok && versions[name] != nil {
		all := make([]cobra.Completion, len(versions[name]))
		for i, version := range versions[name] {
			all[i] = name + ":" + version
		}
		return all
	}
	var all []cobra.Completion
	for name, installed := range versions {
		all = append(all, cobra.CompletionWithDesc(plaintext.Line(name), strings.Join(installed, ", ")))
	}
	if config, _ := cmd.Flags().GetString("config"); placeOf(app, config).exists() {
		plugins, _ := readConfig(app, config, "")
		for _, p := range plugins {
			if !p.Local {
				all = append(all, cobra.CompletionWithDesc(plaintext.Line(p.Text), "runner "+plaintext.Line(p.Runner)))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// knownRegistries are those of what is installed.
func knownRegistries(app *cli.App, cmd *cobra.Command) []cobra.Completion {
	var all []cobra.Completion
	for _, one := range installedHere(app, cmd) {
		if registry := one.Receipt.Reference.Registry(); registry != "" {
			all = append(all, plaintext.Line(registry))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func installedHere(app *cli.App, cmd *cobra.Command) []installer.Installed {
	flags := folderFlags{app: app}
	flags.dir, _ = cmd.Flags().GetString("dir")
	flags.root, _ = cmd.Flags().GetString("root")
	folder, err := flags.folder()
	if err != nil {
		return nil
	}
	list, _ := folder.List()
	return list
}
