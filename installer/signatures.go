package installer

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// WithSignatureRepository names a repository, registry/repository, in which
// signatures and attestations are looked for besides the plugin's own, unless the
// rule that decides names one. It needs no trust: what is found there is verified.
// A name that is none is [ErrInvalid] (reference).
func WithSignatureRepository(name string) Option {
	return func(i *Installer) error {
		ref, err := parseSignatureRepository(name)
		i.signatures = ref
		return err
	}
}

func parseSignatureRepository(name string) (Reference, error) {
	registry, repository, nested := strings.Cut(name, "/")
	if !nested || !looksLikeHost(registry) || strings.ContainsAny(repository, ":@") {
		return Reference{}, fmt.Errorf("%w: signature repository %q: write registry/repository, without a tag", errInvalidReference, name)
	}
	ref, err := ParseReference(name)
	if err != nil {
		return Reference{}, fmt.Errorf("signature repository: %w", err)
	}
	return ref, nil
}

// evidenceSources are the places of evidence about what was resolved: the
// repository of signatures first, if there is one, and the plugin's own.
func (i *Installer) evidenceSources(ctx context.Context, r Resolution, rule compiledRule) ([]Source, error) {
	signatures := rule.signatures
	if signatures.IsZero() {
		signatures = i.signatures
	}
	own := []Source{r.source}
	if signatures.IsZero() || signatures.Name() == r.Reference.Name() {
		return own, nil
	}
	src, err := i.source(ctx, signatures)
	if errors.Is(err, ErrNotFound) {
		return own, nil // a layout has what was copied with the plugin
	}
	if err != nil {
		return nil, fmt.Errorf("signature repository %s: %w", signatures.Name(), err)
	}
	return append([]Source{src}, own...), nil
}
