// Package dist builds the executables of a release, for several platforms, so
// that the same sources give the same bytes anywhere.
//
// It calls the go command. It packages nothing and publishes nothing; that is
// for fleeting-plugin itself.
package dist

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// releasePlatforms are those of a release of ours.
const releasePlatforms = "darwin/amd64 darwin/arm64 linux/386 linux/amd64 linux/arm/v7 linux/arm64 " +
	"linux/ppc64le linux/riscv64 linux/s390x windows/amd64 windows/arm64"

// ParsePlatforms reads platforms separated by commas or spaces; none means those
// of a release. The errors match [artifact.ErrPlatform].
func ParsePlatforms(list string) ([]artifact.Platform, error) {
	words := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
	}
	asked := words(list)
	if len(asked) == 0 {
		asked = words(releasePlatforms)
	}
	platforms := make([]artifact.Platform, len(asked))
	for i, word := range asked {
		p, err := artifact.ParsePlatform(word)
		if err != nil {
			return nil, err
		}
		// The go command knows levels of other processors too, under names of
		// their own; we build for the lowest of each.
		if arm := slices.Contains([]string{"v5", "v6", "v7"}, p.Variant()); (p.Arch() == "arm") != arm || (p.Variant() != "" && !arm) {
			return nil, fmt.Errorf("%w: %q: a variant, v5 to v7, goes with arm and nothing else", artifact.ErrPlatform, word)
		}
		platforms[i] = p
	}
	return platforms, nil
}

// download is how the file is called that people download: the command, and what
// tells one platform's from another's.
func download(command string, p artifact.Platform) string {
	return command + "-" + p.OS() + "-" + p.Arch() + p.Variant() + extension(p)
}

func extension(p artifact.Platform) string { return path.Ext(p.Executable()) }

// environment is what the go command needs to build for the platform. Every
// setting that changes the result is fixed, so that the caller's environment
// does not.
func environment(p artifact.Platform) []string {
	env := []string{
		"CGO_ENABLED=0", "GOOS=" + p.OS(), "GOARCH=" + p.Arch(),
		"GOFLAGS=", "GOEXPERIMENT=", "GO386=", "GOAMD64=v1", "GOARM64=", "GOARM=",
	}
	if p.Variant() != "" {
		env = append(env, "GOARM="+strings.TrimPrefix(p.Variant(), "v"))
	}
	return env
}
