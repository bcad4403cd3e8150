package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/rebuild"
)

// rebuildReport is what rebuild tells programs.
type rebuildReport struct {
	Reference installer.Reference `json:"reference"`
	Version   string              `json:"version"`
	Digest    string              `json:"digest"`
	// Signers are empty if nothing was verified.
	Signers []string `json:"signers"`
	// Source is what was built; Checkout is the folder it was in, if one was
	// given, and Modified says that files in it differ from the commit.
	Source    rebuild.Origin    `json:"source"`
	Checkout  string            `json:"checkout,omitempty"`
	Modified  bool              `json:"modified,omitempty"`
	Platforms []rebuiltPlatform `json:"platforms"`
	// Index is the outcome for the artifact as a whole.
	Index rebuiltIndex `json:"index"`
	Same  bool         `json:"same"`
}

// rebuiltPlatform is the outcome for one executable.
type rebuiltPlatform struct {
	Platform string `json:"platform"`
	rebuild.Comparison
	// Copied are the files beside the executable, which were not built but taken
	// over from what is published.
	Copied []string `json:"copied,omitempty"`
	// Problem says why it could not be built.
	Problem string `json:"problem,omitempty"`
}

// rebuiltIndex compares what packaging the rebuilt executables gives.
type rebuiltIndex struct {
	// Outcome is same, differs or not compared.
	Outcome string `json:"outcome"`
	Rebuilt string `json:"rebuilt,omitempty"`
	// Reason explains the outcome.
	Reason string `json:"reason,omitempty"`
}

// verdict is nil if everything is the same. One executable that differs is a
// finding, whatever became of the others.
func (r rebuildReport) verdict() error {
	differs, unknownFlags := r.Index.Outcome == "differs", false
	for _, p := range r.Platforms {
		differs = differs || !p.Same && p.Problem == ""
		unknownFlags = unknownFlags || p.UnknownFlags
	}
	switch {
	case r.Same:
		return nil
	case !differs:
		return errNotBuilt
	case unknownFlags:
		return cli.Hint(errDiffers, "ask the publisher for the -ldflags, and give them with --ldflags")
	}
	return errDiffers
}

// write is the report for people.
func (r rebuildReport) write(w io.Writer) error {
	signers := strings.Join(r.Signers, ", ")
	fmt.Fprintf(w, "%s@%s\nsigned    %s\n", r.Reference, r.Digest, cmp.Or(signers, "not verified"))
	from := strings.TrimSpace(r.Source.Repository + " " + r.Source.Revision)
	if r.Checkout != "" {
		from = r.Checkout
	}
	fmt.Fprintf(w, "source    %s\n\n", from)
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
		if len(p.Copied) > 0 {
			fmt.Fprintf(w, "\n%s: not built, but taken from what is published: %s\n", p.Platform, strings.Join(p.Copied, " "))
		}
	}
	_, err := fmt.Fprintf(w, "\nindex     %s\n", strings.TrimSuffix(r.Index.Outcome+": "+r.Index.Reason, ": "))
	return err
}
