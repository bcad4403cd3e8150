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

// checkout gives the folder with the source, and reports what is known of it.
func (r *rebuilding) checkout(ctx context.Context) (dir string, err error) {
	if r.report.Source, err = r.origin(ctx); err != nil {
		return "", err
	}
	if r.Source != "" {
		return r.given(ctx)
	}
	origin := r.report.Source
	if err := origin.Check(); err != nil {
		return "", err
	}
	r.Status("cloning   %s at %s", origin.Repository, origin.Revision)
	dir = filepath.Join(r.work, "source")
	return dir, origin.Clone(ctx, dir)
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

// given is the checkout that the caller brings. That it is another commit is
// said, and shows in what is built.
func (r *rebuilding) given(ctx context.Context) (string, error) {
	if info, err := os.Stat(r.Source); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%w: there is no folder %s", ErrCheckout, r.Source)
	}
	published := r.report.Source.Revision
	head, different, err := Head(ctx, r.Source)
	r.report.Checkout, r.report.Modified = r.Source, err != nil || len(different) > 0
	switch {
	case head == "":
		r.Warn("%s is no git checkout, so its commit cannot be told", r.Source)
	case published != "" && head != published:
		r.Warn("%s is at commit %s, published is %s", r.Source, head, published)
	case err != nil:
		r.Warn("whether files in %s differ from its commit cannot be told: %v", r.Source, err)
	case len(different) > 0:
		r.Warn("files in %s differ from its commit, or are not in it: %s", r.Source, firstOf(different))
	}
	return filepath.Abs(r.Source)
}
