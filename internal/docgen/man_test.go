package docgen_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/docgen"
)

func TestMan(t *testing.T) {
	t.Parallel()
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "Does things", Example: "  tool make x"}
	root.PersistentFlags().BoolP("quiet", "q", false, "say less")
	root.AddGroup(&cobra.Group{ID: "work", Title: "Work:"})
	root.AddCommand(&cobra.Command{
		Use: "make NAME", Short: "Make", Long: "Make a\n.hidden thing.", GroupID: "work", Run: run, Example: "  tool make 'a\\b'",
	})
	const want = `.TH TOOL 1
.SH NAME
tool \- Does things
.SH SYNOPSIS
.B tool
COMMAND [ARGUMENTS] [FLAGS]
.SH DESCRIPTION
Does things.
.SH EXAMPLES
.nf
tool make x
.fi
.SH FLAGS OF EVERY COMMAND
.TP
.B \-q, \-\-quiet
say less
.SH WORK
.SS tool make NAME
Make a
\&.hidden thing.
.PP
.nf
tool make 'a\eb'
.fi
.SH EXIT STATUS
.TP
.B 0
done|made
.SH SEE ALSO
other tools
`
	if diff := cmp.Diff(want, docgen.Man(root, topics()...)); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
}
