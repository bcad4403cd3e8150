package main

import (
	"cmp"
	"io"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
	"github.com/radome-io/fleeting-plugin-openstack/internal/rebuild"
)

// writeRebuilt writes the report for people.
func writeRebuilt(w io.Writer, r rebuild.Report) error {
	signers := strings.Join(r.Signers, ", ")
	plaintext.Fprintf(w, "%s@%s\nsigned    %s\n", r.Reference, r.Digest, cmp.Or(signers, "not verified"))
	from := strings.TrimSpace(r.Source.Repository + " " + r.Source.Revision)
	if r.Checkout != "" {
		from = r.Checkout
	}
	plaintext.Fprintf(w, "source    %s\n\n", from)
	rows := make([][]string, len(r.Platforms))
	for i, p := range r.Platforms {
		rows[i] = []string{p.Platform, "differs", strings.Join(p.Differences, "; ")}
		switch {
		case p.Problem != "":
			rows[i][1], rows[i][2] = "not built", strings.ReplaceAll(p.Problem, "\n", " ")
		case p.Same:
			rows[i][1], rows[i][2] = "same", p.Published
		}
	}
	if err := cli.Table(w, []string{"platform", "verdict", "why"}, rows); err != nil {
		return err
	}
	for _, p := range r.Platforms {
		for _, note := range p.Notes {
			plaintext.Fprintf(w, "\n%s: %s\n", p.Platform, note)
		}
		if len(p.Copied) > 0 {
			plaintext.Fprintf(w, "\n%s: not built, but taken from what is published: %s\n", p.Platform, strings.Join(p.Copied, " "))
		}
	}
	_, err := plaintext.Fprintf(w, "\nindex     %s\n", strings.TrimSuffix(string(r.Index.Outcome)+": "+r.Index.Reason, ": "))
	return err
}
