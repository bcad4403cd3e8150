package installer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// maxUnlabelled bounds how many entries without a platform are opened.
const maxUnlabelled = 32

// candidate is an entry of an index that runs on the platform.
type candidate struct {
	desc     ocispec.Descriptor
	platform artifact.Platform
	// rank is that of [rankOf].
	rank int
	why  string
}

// rankOf is the place of have among what runs on host, best first; -1 if it does
// not run there.
func rankOf(host, have artifact.Platform) int {
	have = have.WithOSVersion("")
	return slices.Index(artifact.Candidates(host.WithOSVersion("")), have)
}

// choose finds the entry for the platform. The order of the entries does not
// matter. Entries without a platform are opened only if no other fits.
func (i *Installer) choose(ctx context.Context, src Source, index ocispec.Index) (candidate, error) {
	var offered []candidate
	var unlabelled []ocispec.Descriptor
	for _, entry := range index.Manifests {
		if !artifact.IsManifest(entry.MediaType) {
			continue
		}
		if entry.Platform == nil {
			unlabelled = append(unlabelled, entry)
			continue
		}
		if platform, ok := entryPlatform(entry); ok {
			offered = append(offered, candidate{desc: entry, platform: platform, rank: rankOf(i.platform, platform)})
		}
	}
	fitting := runnable(offered)
	if len(fitting) == 0 {
		opened, err := i.openUnlabelled(ctx, src, unlabelled)
		if err != nil {
			return candidate{}, err
		}
		offered = append(offered, opened...)
		fitting = runnable(offered)
	}
	if len(fitting) == 0 && i.anyPlatform {
		fitting = offered
	}
	if len(fitting) == 0 {
		return candidate{}, fmt.Errorf("%w: want %s, published for %s", errNoPlatform, i.platform, platformNames(offered))
	}
	best := slices.MinFunc(fitting, compareCandidates)
	best.why = explain(i.platform, best)
	return best, nil
}

// runnable are those that run on the platform.
func runnable(offered []candidate) []candidate {
	var fitting []candidate
	for _, c := range offered {
		if c.rank >= 0 {
			fitting = append(fitting, c)
		}
	}
	return fitting
}

func platformNames(offered []candidate) string {
	var names []string
	for _, c := range offered {
		names = append(names, c.platform.String())
	}
	slices.Sort(names)
	return cmp.Or(strings.Join(slices.Compact(names), " "), "none")
}

func explain(host artifact.Platform, best candidate) string {
	switch {
	case best.rank < 0:
		return fmt.Sprintf("The index has no entry for %s; %s covers all of it.", host, best.platform)
	case best.rank == 0:
		return fmt.Sprintf("The index has an entry for %s.", best.platform)
	}
	return fmt.Sprintf("The index has no entry for %s; %s runs there too.", host, best.platform)
}

// compareCandidates puts the better first: the closer platform, then no demand
// on the version of the system, then the newest of those, then the digest.
func compareCandidates(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(a.rank, b.rank),
		cmp.Compare(boolToInt(a.platform.OSVersion() != ""), boolToInt(b.platform.OSVersion() != "")),
		-compareDotted(a.platform.OSVersion(), b.platform.OSVersion()),
		cmp.Compare(a.desc.Digest, b.desc.Digest),
	)
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compareDotted orders versions of operating systems: numbers between dots.
func compareDotted(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	return slices.CompareFunc(as, bs, func(x, y string) int {
		nx, errX := strconv.ParseUint(x, 10, 64)
		ny, errY := strconv.ParseUint(y, 10, 64)
		if errX != nil || errY != nil {
			return strings.Compare(x, y)
		}
		return cmp.Compare(nx, ny)
	})
}

// openUnlabelled reads the platforms of entries that do not say it.
func (i *Installer) openUnlabelled(ctx context.Context, src Source, entries []ocispec.Descriptor) ([]candidate, error) {
	if len(entries) > maxUnlabelled {
		return nil, fmt.Errorf("%w: %d entries of the index have no platform, more than the %d that are opened", errNotPlugin, len(entries), maxUnlabelled)
	}
	var opened []candidate
	for _, entry := range entries {
		content, err := src.FetchAll(ctx, entry, artifact.ManifestLimit)
		if err != nil {
			return nil, err
		}
		manifest, err := artifact.DecodeManifest(entry.MediaType, content)
		if err != nil {
			return nil, fmt.Errorf("%w: manifest %s: %w", errNotPlugin, entry.Digest, err)
		}
		platform, err := configPlatform(ctx, src, manifest)
		if errors.Is(err, artifact.ErrPlatform) {
			continue // something else that hangs in the index
		}
		if err != nil {
			return nil, err
		}
		opened = append(opened, candidate{desc: entry, platform: platform, rank: rankOf(i.platform, platform)})
	}
	return opened, nil
}

// configPlatform reads the platform in an image config.
func configPlatform(ctx context.Context, src Source, manifest ocispec.Manifest) (artifact.Platform, error) {
	config, err := fetchConfig(ctx, src, manifest)
	if err != nil {
		return artifact.Platform{}, err
	}
	return artifact.PlatformFromOCI(config.Platform)
}

func fetchConfig(ctx context.Context, src Source, manifest ocispec.Manifest) (ocispec.Image, error) {
	content, err := src.FetchAll(ctx, manifest.Config, artifact.ManifestLimit)
	if err != nil {
		return ocispec.Image{}, err
	}
	return artifact.DecodeConfig(content)
}
