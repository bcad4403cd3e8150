package main

import (
	"regexp"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// TestFlagsNameTheirValues: help, manual page and shells say what a flag takes.
func TestFlagsNameTheirValues(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`^([A-Z][A-Z:=\[\]]*|[a-z0-9]+(\|[a-z0-9]+)+)$`)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if word, _ := pflag.UnquoteUsage(flag); flag.Value.Type() != "bool" && !named.MatchString(word) {
				t.Errorf("%s --%s takes %q", cmd.CommandPath(), flag.Name, word)
			}
		})
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(NewRootCmd(cli.New(nil, nil, nil, nil)))
}
