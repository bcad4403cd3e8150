package docgen_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/docgen"
)

const want = `# tool

An intro.

Does things.

## Flags of every command

| flag | default | meaning |
| --- | --- | --- |
| ` + "`-q, --quiet`" + ` |  | say less |

## Work

### tool make

Make a thing, at length.

` + "```text\ntool make NAME [flags]\n```" + `

` + "```sh\n# one\ntool make one\n```" + `

| flag | default | meaning |
| --- | --- | --- |
| ` + "`--size int`" + ` | ` + "`3`" + ` | how large: small\|large |
| ` + "`--to folder`" + ` |  | where: a folder |

### tool set

Set things.

### tool set one

Set one.

` + "```text\ntool set one\n```" + `

## Exit status

| code | meaning |
| --- | --- |
| ` + "`0`" + ` | done\|made |

## See also

other tools
`

func topics() []docgen.Topic {
	return []docgen.Topic{
		{Title: "Exit status", Heading: "code", Items: []docgen.Item{{Name: "0", Text: "done|made"}}},
		{Title: "See also", Items: []docgen.Item{{Text: "other tools"}}},
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "Does things"}
	root.PersistentFlags().BoolP("quiet", "q", false, "say less")
	root.AddGroup(&cobra.Group{ID: "work", Title: "Work:"})
	maker := &cobra.Command{
		Use: "make NAME", Short: "Make", Long: "Make a thing, at length.", GroupID: "work", Run: run,
		Example: "  # one\n  tool make one",
	}
	maker.Flags().Int("size", 3, "how large: small|large")
	maker.Flags().String("to", "", "where: a `folder`")
	secret := &cobra.Command{Use: "secret", Short: "Not shown", GroupID: "work", Hidden: true, Run: run}
	set := &cobra.Command{Use: "set", Short: "Set things", GroupID: "work"}
	set.AddCommand(&cobra.Command{Use: "one", Short: "Set one", Run: run})
	root.AddCommand(maker, secret, set)
	if diff := cmp.Diff(want, docgen.Markdown(root, "An intro.", topics()...)); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
}
