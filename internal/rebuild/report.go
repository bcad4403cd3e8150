package rebuild

import (
	"errors"
	"fmt"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
)

// The verdicts: what was built is not what is published, which is a finding, and
// it could not be built here, which is none. [ErrUnknownFlags] is a difference
// that may be nothing but the linker flags, as nobody tells them.
var (
	ErrDiffers      = errors.New("what was built is not what is published")
	ErrUnknownFlags = errors.New("the -ldflags it was built with are not known")
	ErrNotBuilt     = errors.New("it could not be built, so nothing is known")
)

// Report is what became of building a publication again.
type Report struct {
	Reference installer.Reference `json:"reference"`
	Version   string              `json:"version"`
	Digest    string              `json:"digest"`
	// Signers are empty if nothing was verified.
	Signers []string `json:"signers"`
	// Source is what was built; Checkout is the folder it was in, if one was
	// given, and Modified says that files in it differ from the commit.
	Source   Origin `json:"source"`
	Checkout string `json:"checkout,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	// LeftOut are files of the source that were not there to be built: links that
	// lead out of it, and what is neither a file nor a folder.
	LeftOut   []string   `json:"leftOut,omitempty"`
	Platforms []Platform `json:"platforms"`
	// Index is the outcome for the artifact as a whole.
	Index Index `json:"index"`
	Same  bool  `json:"same"`
}

// Platform is the outcome for one executable.
type Platform struct {
	// Platform is "os/arch[/variant]", for Windows with ":os.version" behind it
	// where the artifact is made for one version.
	Platform string `json:"platform"`
	Comparison
	// Copied are the files beside the executable, which were not built but taken
	// over from what is published.
	Copied []string `json:"copied,omitempty"`
	// Problem says why it could not be built.
	Problem string `json:"problem,omitempty"`
}

// Index compares what packaging the rebuilt executables gives.
type Index struct {
	Outcome Outcome `json:"outcome"`
	// Rebuilt is the digest that came out, if it was compared.
	Rebuilt string `json:"rebuilt,omitempty"`
	// Reason explains the outcome.
	Reason string `json:"reason,omitempty"`
}

// Outcome is what comparing the artifacts came to.
type Outcome string

// The outcomes.
const (
	Same        Outcome = "same"
	Differs     Outcome = "differs"
	NotCompared Outcome = "not compared"
)

// Verdict is nil if everything is the same, else [ErrDiffers], which may match
// [ErrUnknownFlags] too, or [ErrNotBuilt]. One executable that differs is a
// finding, whatever became of the others.
func (r Report) Verdict() error {
	differs, unknownFlags := r.Index.Outcome == Differs, false
	for _, p := range r.Platforms {
		differs = differs || !p.Same && p.Problem == ""
		unknownFlags = unknownFlags || p.UnknownFlags
	}
	switch {
	case r.Same:
		return nil
	case !differs:
		return ErrNotBuilt
	case unknownFlags:
		return fmt.Errorf("%w: %w", ErrDiffers, ErrUnknownFlags)
	}
	return ErrDiffers
}
