package dist

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/notices"
)

// ArchiveOptions say what goes into the archives. All are needed.
type ArchiveOptions struct {
	// Version of the executables, without v.
	Version string
	// License is the path of the licence's text.
	License string
	// Time is that of the files in the archives.
	Time time.Time
}

// archivePlatforms are those whose users expect an archive: on Linux there are
// packages.
func archivePlatforms() []string {
	return []string{"darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}
}

const (
	project  = "https://github.com/radome-io/fleeting-plugin-openstack"
	tool     = "fleeting-plugin"
	describe = "Package, publish, sign, verify and install plugins of GitLab Runner's fleeting"
)

// archive is a written zip file.
type archive struct {
	Name, SHA256 string
	platform     artifact.Platform
}

// URL is where a release has the archive.
func (a archive) url(version string) string {
	return project + "/releases/download/v" + version + "/" + a.Name
}

// WriteArchives writes into dir, beside the executables that are there, a zip file
// of them, their licence and that of all that is linked into them, which lies there
// too, for each platform of Windows and macOS, a manifest for Scoop
// (https://github.com/ScoopInstaller/Scoop/wiki/App-Manifests) and a formula for
// Homebrew (https://docs.brew.sh/Formula-Cookbook), both of which name the zip
// files by their digests. Platforms without executables are left out. The same
// executables give the same bytes.
func WriteArchives(dir string, opts ArchiveOptions) error {
	texts := map[string][]byte{}
	for name, path := range map[string]string{"LICENSE": opts.License, notices.FileName: filepath.Join(dir, notices.FileName)} {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		texts[name] = content
	}
	written := map[string]archive{}
	for _, name := range archivePlatforms() {
		p, err := artifact.ParsePlatform(name)
		if err != nil {
			return err
		}
		a, err := writeArchive(dir, p, texts, opts)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		written[name] = a
	}
	return errors.Join(writeScoop(dir, opts.Version, written), writeFormula(dir, opts.Version, written))
}

func writeArchive(dir string, p artifact.Platform, texts map[string][]byte, opts ArchiveOptions) (archive, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(name string, mode os.FileMode, content []byte) error {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: opts.Time.UTC()}
		header.SetMode(mode)
		w, err := z.CreateHeader(header)
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	}
	for _, command := range []string{tool, tool + "-openstack"} {
		content, err := os.ReadFile(filepath.Join(dir, download(command, p)))
		if err != nil {
			return archive{}, err
		}
		if err := add(command+extension(p), 0o755, content); err != nil {
			return archive{}, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := add(name, 0o644, texts[name]); err != nil {
			return archive{}, err
		}
	}
	if err := z.Close(); err != nil {
		return archive{}, err
	}
	a := archive{Name: fmt.Sprintf("%s_%s_%s_%s.zip", tool, opts.Version, p.OS(), p.Arch()), platform: p}
	sum := sha256.Sum256(b.Bytes())
	a.SHA256 = hex.EncodeToString(sum[:])
	return a, os.WriteFile(filepath.Join(dir, a.Name), b.Bytes(), 0o644) // #nosec G306 -- to be published
}

// scoop is a manifest for Scoop.
type scoop struct {
	Version      string               `json:"version"`
	Description  string               `json:"description"`
	Homepage     string               `json:"homepage"`
	License      string               `json:"license"`
	Architecture map[string]scoopArch `json:"architecture"`
	Bin          []string             `json:"bin"`
	CheckVersion string               `json:"checkver"`
}

type scoopArch struct {
	URL  string `json:"url"`
	Hash string `json:"hash"`
}

func writeScoop(dir, version string, written map[string]archive) error {
	m := scoop{
		Version: version, Description: describe, Homepage: project, License: "MIT", Architecture: map[string]scoopArch{},
		Bin: []string{tool + ".exe", tool + "-openstack.exe"}, CheckVersion: "github",
	}
	for platform, name := range map[string]string{"windows/amd64": "64bit", "windows/arm64": "arm64"} {
		if a, ok := written[platform]; ok {
			m.Architecture[name] = scoopArch{a.url(version), a.SHA256}
		}
	}
	if len(m.Architecture) == 0 {
		return nil
	}
	content, err := json.MarshalIndent(m, "", "    ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, tool+".json"), append(content, '\n'), 0o644) // #nosec G306 -- to be published
}

// formula is a Homebrew formula. Its values are ours and have no quotes.
const formula = `class FleetingPlugin < Formula
  desc "{{.Description}}"
  homepage "{{.Homepage}}"
  version "{{.Version}}"
  license "MIT"

  depends_on :macos
{{range .Blocks}}
  {{.Processor}} do
    url "{{.URL}}"
    sha256 "{{.SHA256}}"
  end
{{end}}
  def install
    bin.install "fleeting-plugin", "fleeting-plugin-openstack"
    generate_completions_from_executable(bin/"fleeting-plugin", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/fleeting-plugin version")
  end
end
`

type formulaBlock struct{ Processor, URL, SHA256 string }

func writeFormula(dir, version string, written map[string]archive) error {
	var blocks []formulaBlock
	for _, on := range []struct{ platform, block string }{{"darwin/arm64", "on_arm"}, {"darwin/amd64", "on_intel"}} {
		if a, ok := written[on.platform]; ok {
			blocks = append(blocks, formulaBlock{on.block, a.url(version), a.SHA256})
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	var b strings.Builder
	t, err := template.New("formula").Parse(formula)
	err = cmp.Or(err, t.Execute(&b, map[string]any{
		"Description": describe, "Homepage": project, "Version": version, "Blocks": blocks,
	}))
	return cmp.Or(err, os.WriteFile(filepath.Join(dir, tool+".rb"), []byte(b.String()), 0o644)) // #nosec G306 -- to be published
}
