package dist

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

// goreleaserFile is what goreleaser writes into its dist folder.
// https://goreleaser.com/customization/general/artifacts/
const goreleaserFile = "artifacts.json"

// goreleaserArtifact holds the fields of one entry that matter here.
type goreleaserArtifact struct {
	Path    string `json:"path"`
	Goos    string `json:"goos"`
	Goarch  string `json:"goarch"`
	Goarm   string `json:"goarm"`
	Goamd64 string `json:"goamd64"`
	Type    string `json:"type"`
	Extra   struct {
		ID string `json:"ID"`
	} `json:"extra"`
}

func (d *Dist) addGoreleaser(path, id string) error {
	all, err := readGoreleaser(path)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(a goreleaserArtifact) bool { return a.Type != "Binary" || a.Goarch == "all" })
	if all, err = chooseBuild(path, all, id); err != nil {
		return err
	}
	known := knownPlatforms()
	var problems []error
	for _, a := range all {
		if a.Goamd64 > "v1" && slices.ContainsFunc(all, func(b goreleaserArtifact) bool {
			return b.Goos == a.Goos && b.Goarch == a.Goarch && b.Goamd64 == "v1"
		}) {
			d.warnings = append(d.warnings, Warning{a.Path, "left out: the amd64 build for every processor is published"})
			continue
		}
		problems = append(problems, d.addBuilt(known, a))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if len(d.inputs) == 0 {
		return &InputError{Path: path, Problem: "lists no executable", Remedy: "run goreleaser build first"}
	}
	return nil
}

// goreleaserLimit bounds the list, in bytes.
const goreleaserLimit = 16 << 20

func readGoreleaser(path string) ([]goreleaserArtifact, error) {
	refuse := func(err error) error {
		return &InputError{Path: path, Problem: "is not what goreleaser writes", Err: err, Remedy: "run goreleaser again, or name executables with --platform os/arch=PATH"}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, &InputError{Path: path, Problem: "cannot be read", Err: errors.Unwrap(err)}
	}
	if !info.Mode().IsRegular() || info.Size() > goreleaserLimit {
		return nil, refuse(fmt.Errorf("%s of %d bytes", info.Mode(), info.Size()))
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, &InputError{Path: path, Problem: "cannot be read", Err: errors.Unwrap(err)}
	}
	if raw, err = textfile.UTF8(raw); err != nil {
		return nil, refuse(err)
	}
	var all []goreleaserArtifact
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, refuse(err)
	}
	return all, nil
}

// chooseBuild keeps the artifacts of one build.
func chooseBuild(path string, all []goreleaserArtifact, id string) ([]goreleaserArtifact, error) {
	var ids []string
	for _, a := range all {
		ids = append(ids, a.Extra.ID)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	switch {
	case id == "" && len(ids) > 1:
		return nil, &InputError{Path: path, Problem: "lists several builds: " + strings.Join(ids, ", "), Remedy: "choose one with --goreleaser-id"}
	case id != "" && !slices.Contains(ids, id):
		return nil, &InputError{Path: path, Problem: fmt.Sprintf("lists no build %q but %s", id, strings.Join(ids, ", ")), Remedy: "choose one of those with --goreleaser-id"}
	case id != "":
		all = slices.DeleteFunc(all, func(a goreleaserArtifact) bool { return a.Extra.ID != id })
	}
	return all, nil
}

func (d *Dist) addBuilt(known platformSet, a goreleaserArtifact) error {
	arch := a.Goarch
	if arch == "arm" && a.Goarm != "" {
		arch += "v" + a.Goarm
	}
	p, err := artifact.ParsePlatform(a.Goos + "/" + arch)
	if err != nil || !known.has(p) {
		return known.refuse(a.Path, a.Goos, arch)
	}
	// Paths are relative to the project, which holds the dist folder; a dist
	// folder that was moved, as between CI jobs, still has the rest.
	if !filepath.IsLocal(filepath.FromSlash(a.Path)) {
		return &InputError{Path: a.Path, Problem: "is listed by goreleaser and is not in its folder", Remedy: "run goreleaser again"}
	}
	candidates := []string{a.Path, filepath.Join(filepath.Dir(filepath.Clean(d.dir)), a.Path)}
	if _, rest, ok := strings.Cut(filepath.ToSlash(a.Path), "/"); ok {
		candidates = append(candidates, filepath.Join(d.dir, filepath.FromSlash(rest)))
	}
	slices.Reverse(candidates)
	i := slices.IndexFunc(candidates, exists)
	if i < 0 {
		return &InputError{Path: a.Path, Problem: "is listed by goreleaser and is not there", Remedy: "run goreleaser again"}
	}
	files, err := single(candidates[i], p)
	if err != nil {
		return err
	}
	d.inputs = append(d.inputs, Input{platform: p, files: files, source: candidates[i]})
	return nil
}
