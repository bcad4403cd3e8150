package rebuild

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/reason"
)

// published is what was published for one platform, verified and installed into
// the work folder.
type published struct {
	platform  string
	installed installer.Installed
}

// fetch holds the reference against the policy and fetches what is to be built
// again; partial says that this is not all of it.
func (r *rebuilding) fetch(ctx context.Context) (found []published, partial bool, err error) {
	i, err := r.Installer(ctx, r.Policy, "", r.work)
	if err != nil {
		return nil, false, err
	}
	pinned, all, err := i.Platforms(ctx, r.Reference)
	if err != nil {
		return nil, false, err
	}
	platforms, err := choose(r.Platforms, all)
	if err != nil {
		return nil, false, err
	}
	policy, err := r.verify(ctx, pinned, platforms[0])
	if err != nil {
		return nil, false, err
	}
	for _, platform := range platforms {
		dir := filepath.Join(r.work, "published", strings.NewReplacer("/", "-", ":", "-").Replace(platform))
		i, err := r.forPlatform(ctx, policy, platform, dir)
		if err != nil {
			return nil, false, err
		}
		verified, err := i.Verify(ctx, pinned)
		if err != nil {
			return nil, false, err
		}
		installed, err := i.Unpack(ctx, verified)
		if err != nil {
			return nil, false, err
		}
		found = append(found, published{platform, installed})
	}
	return found, len(platforms) < len(all), nil
}

// verify verifies one platform, with a provenance, and returns the policy that
// let it in. Whoever brings the source can do without.
func (r *rebuilding) verify(ctx context.Context, pinned installer.Reference, platform string) (policy installer.Policy, err error) {
	policies := []installer.Policy{r.Policy.WithProvenance()}
	if r.Source != "" {
		policies = append(policies, r.Policy)
	}
	for _, policy = range policies {
		var i *installer.Installer
		if i, err = r.forPlatform(ctx, policy, platform, r.work); err != nil {
			return policy, err
		}
		r.admitting = i
		if r.verified, err = i.Verify(ctx, pinned); !errors.Is(err, installer.ErrRefused) {
			break
		}
	}
	if err != nil {
		return policy, err
	}
	r.report.Reference, r.report.Version, r.report.Digest = r.Reference, r.verified.Version.String(), r.verified.Resolution.Digest().String()
	r.report.Signers = append([]string{}, r.verified.Verification.Signers()...)
	return policy, nil
}

// forPlatform gives an installer for what was published for a platform. Which
// version of Windows it is made for is not asked of this machine.
func (r *rebuilding) forPlatform(ctx context.Context, policy installer.Policy, platform, dir string) (*installer.Installer, error) {
	name, _, _ := strings.Cut(platform, ":")
	return r.Installer(ctx, policy, name, dir)
}

// errNoPlatform is the installer's reason, for platforms that the user chooses here.
var errNoPlatform = reason.New(reason.ErrNotFound, "no-platform", "nothing for this platform")

// choose gives the platforms that are asked for, all if none is, and refuses
// those that are not published.
func choose(asked, all []string) ([]string, error) {
	if len(asked) == 0 {
		return all, nil
	}
	var chosen []string
	for _, word := range asked {
		p, err := artifact.ParsePlatform(word)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, p.String()) {
			return nil, fmt.Errorf("%w: want %s, published for %s", errNoPlatform, p, strings.Join(all, " "))
		}
		chosen = append(chosen, p.String())
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), nil
}

// copyCompanions copies what lies beside the executable, which no build makes,
// and names it.
func copyCompanions(installed installer.Installed, to string) (names []string, err error) {
	if err := os.MkdirAll(to, 0o750); err != nil {
		return nil, err
	}
	for _, f := range installed.Receipt.Files {
		if f.Name == installed.Receipt.Executable {
			continue
		}
		name := filepath.FromSlash(f.Name)
		if err := copyFile(filepath.Join(installed.Dir, name), filepath.Join(to, name)); err != nil {
			return nil, err
		}
		names = append(names, f.Name)
	}
	return names, nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm()) //nolint:gosec // the mode is that of the published file
}
