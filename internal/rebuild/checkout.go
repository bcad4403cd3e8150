package rebuild

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
)

// checkout gives the source, and reports what is known of it.
func (r *rebuilding) checkout(ctx context.Context) (source Source, err error) {
	if r.report.Source, err = r.origin(ctx); err != nil {
		return Source{}, err
	}
	defer func() {
		if r.report.LeftOut = source.LeftOut; len(source.LeftOut) > 0 {
			r.Warn("omitted from the source because they point out of it or are not files: %s", firstOf(source.LeftOut))
		}
	}()
	if r.Source != "" {
		return r.given(ctx)
	}
	origin := r.report.Source
	if err := origin.Check(); err != nil {
		return Source{}, err
	}
	r.Status("cloning   %s at %s", origin.Repository, origin.Revision)
	return origin.Clone(ctx, filepath.Join(r.work, "source"))
}

// origin is where the source is said to be: by the provenances, else by the
// annotations. Of several it is the last that names the linker flags, as a
// publisher who left them out says it again; what the others name may still be
// what was built with.
func (r *rebuilding) origin(ctx context.Context) (Origin, error) {
	all, err := r.admitting.Provenances(ctx, r.verified)
	if err != nil {
		return Origin{}, err
	}
	if len(all) == 0 {
		return Origin{
			Repository: r.verified.Annotation(ocispec.AnnotationSource),
			Revision:   r.verified.Annotation(ocispec.AnnotationRevision),
		}, nil
	}
	var chosen Origin
	var flags []string
	for _, p := range all {
		origin, err := ReadProvenance(p.Predicate)
		if err != nil {
			return Origin{}, err
		}
		// The authority vouches for the certificate; the predicate is what the signer
		// wrote.
		if p.By.SourceDigest != "" && p.By.SourceDigest != origin.Revision {
			return Origin{}, fmt.Errorf("%w: the provenance names commit %s, its signer's certificate %s", installer.ErrRefused, origin.Revision, p.By.SourceDigest)
		}
		if origin.LDFlags != "" {
			flags = append(flags, origin.LDFlags)
		}
		// One that names no source adds its flags to one that does.
		if origin.Revision != "" || chosen.Revision == "" {
			chosen = origin
		}
	}
	slices.Reverse(flags)
	if len(flags) > 0 {
		chosen.LDFlags, r.otherFlags = flags[0], flags[1:]
	}
	return chosen, nil
}

// given is a copy of the checkout that the caller brings. That it is another commit
// is said, and shows in what is built.
func (r *rebuilding) given(ctx context.Context) (Source, error) {
	if info, err := os.Stat(r.Source); err != nil || !info.IsDir() {
		return Source{}, fmt.Errorf("%w: there is no folder %s", ErrCheckout, r.Source)
	}
	source, changed, unknown, err := Copy(ctx, r.Source, filepath.Join(r.work, "source"))
	if err != nil {
		return Source{}, err
	}
	published := r.report.Source.Revision
	r.report.Checkout, r.report.Modified = r.Source, unknown != nil || len(changed) > 0
	switch {
	case source.commit == "":
		r.Warn("%s is no git checkout, so its commit cannot be told", r.Source)
	case published != "" && source.commit != published:
		r.Warn("%s is at commit %s, published is %s", r.Source, source.commit, published)
	case unknown != nil:
		r.Warn("whether files in %s differ from its commit cannot be told: %v", r.Source, unknown)
	case len(changed) > 0:
		r.Warn("files in %s differ from its commit, or are not in it: %s", r.Source, firstOf(changed))
	}
	return source, nil
}
