package main

import (
	"cmp"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/rebuild"
)

// writeRebuilt writes the report for people.
func writeRebuilt(p *cli.Page, r rebuild.Report) {
	signers := strings.Join(r.Signers, ", ")
	p.Printf("%s@%s\n", r.Reference, r.Digest)
	p.Field(10, "signed", cmp.Or(signers, "not verified"))
	from := strings.TrimSpace(r.Source.Repository + " " + r.Source.Revision)
	if r.Checkout != "" {
		from = r.Checkout
	}
	p.Field(10, "source", from)
	p.Print("\n")
	rows := make([][]string, len(r.Platforms))
	for i, one := range r.Platforms {
		rows[i] = []string{one.Platform, "differs", strings.Join(one.Differences, "; ")}
		switch {
		case one.Problem != "":
			rows[i][1], rows[i][2] = "not built", strings.ReplaceAll(one.Problem, "\n", " ")
		case one.Same:
			rows[i][1], rows[i][2] = "same", one.Published
		}
	}
	p.Table([]string{"platform", "verdict", "why"}, rows)
	for _, one := range r.Platforms {
		for _, note := range one.Notes {
			p.Printf("\n%s: %s\n", one.Platform, note)
		}
		if len(one.Copied) > 0 {
			p.Printf("\n%s: not built, but taken from what is published: %s\n", one.Platform, strings.Join(one.Copied, " "))
		}
	}
	p.Print("\n")
	p.Field(10, "index", strings.TrimSuffix(string(r.Index.Outcome)+": "+r.Index.Reason, ": "))
}
