package packager

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// PromoteOptions say what [Promote] goes by.
type PromoteOptions struct {
	// Vouch says what is the publisher's, the version itself among it. Nil counts
	// every version of the same plugin.
	Vouch Vouch
	// DryRun changes nothing.
	DryRun bool
	// Report is told of every step.
	Report func(Event)
}

// Promoted says what [Promote] did, or with DryRun would do.
type Promoted struct {
	// Repository is "host[:port]/path".
	Repository string        `json:"repository"`
	Version    Version       `json:"version"`
	Digest     digest.Digest `json:"digest"`
	// Aliases are the tags that may point to the version, and where they do.
	Aliases []Alias `json:"aliases"`
	// Warnings name tags that were not counted, and what the registry cannot do.
	Warnings []dist.Warning `json:"warnings,omitempty"`
}

// ErrNotVouched reports a version that the publisher does not stand behind.
var ErrNotVouched = errors.New("this publisher did not sign it")

// Promote moves the aliases of a version that is published, as [Push] does unless
// its options say SkipAliases: for those who check a version before their users
// follow an alias to it. Errors are those of [Push], and [ErrNotVouched].
func Promote(ctx context.Context, repo Repository, version Version, opts PromoteOptions) (*Promoted, error) {
	own, err := lookInto(ctx, repo, version.String())
	if err != nil {
		return nil, err
	}
	reference := repo.Name() + ":" + version.String()
	if own.version.Compare(version) != 0 || own.version.IsZero() {
		return nil, fmt.Errorf("%s: %w: it is %s", reference, ErrNotPlugin, own)
	}
	if opts.Vouch != nil {
		why, err := opts.Vouch(ctx, own.desc.Digest)
		if err != nil {
			return nil, err
		}
		if why != "" {
			return nil, fmt.Errorf("%s: %w: %s", reference, ErrNotVouched, why)
		}
	}
	out := &Promoted{Repository: repo.Name(), Version: version, Digest: own.desc.Digest, Aliases: []Alias{}}
	a := newAliaser(repo, own, opts.Vouch)
	if opts.DryRun {
		out.Aliases, out.Warnings, err = a.plan(ctx)
		return out, err
	}
	// The bytes of the index do not matter to who looks whether the tag moved.
	still := func() error { return stillPublished(ctx, repo, version, blob{desc: own.desc}, "") }
	out.Aliases, out.Warnings, err = a.settle(ctx, still, reporter(opts.Report))
	return out, err
}
