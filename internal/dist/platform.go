// Package dist builds the executables of a release, for several platforms, so
// that the same sources give the same bytes anywhere.
//
// It calls the go command. It packages nothing and publishes nothing; that is
// for fleeting-plugin itself.
package dist

import (
	"fmt"
	"slices"
	"strings"
)

// Platform is what an executable is built for.
type Platform struct {
	// OS and Arch are GOOS and GOARCH.
	OS, Arch string
	// Variant is the version of a 32-bit ARM, "v5" to "v7", else "".
	Variant string
}

// DefaultPlatforms are those of a release of ours.
func DefaultPlatforms() []Platform {
	return []Platform{
		{OS: "darwin", Arch: "amd64"},
		{OS: "darwin", Arch: "arm64"},
		{OS: "linux", Arch: "386"},
		{OS: "linux", Arch: "amd64"},
		{OS: "linux", Arch: "arm", Variant: "v7"},
		{OS: "linux", Arch: "arm64"},
		{OS: "linux", Arch: "ppc64le"},
		{OS: "linux", Arch: "riscv64"},
		{OS: "linux", Arch: "s390x"},
		{OS: "windows", Arch: "amd64"},
		{OS: "windows", Arch: "arm64"},
	}
}

// ParsePlatform reads os/arch, or for 32-bit ARM os/arm/v7.
func ParsePlatform(s string) (Platform, error) {
	parts := strings.Split(s, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return Platform{}, fmt.Errorf("platform %q is not os/arch or os/arch/variant", s)
	}
	p := Platform{OS: parts[0], Arch: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	arm := slices.Contains([]string{"v5", "v6", "v7"}, p.Variant)
	if (p.Arch == "arm") != arm || (p.Variant != "" && !arm) {
		return Platform{}, fmt.Errorf("platform %q: a variant, v5 to v7, goes with arm and nothing else", s)
	}
	return p, nil
}

// ParsePlatforms reads platforms separated by commas or spaces; none means
// [DefaultPlatforms].
func ParsePlatforms(list string) ([]Platform, error) {
	fields := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	if len(fields) == 0 {
		return DefaultPlatforms(), nil
	}
	platforms := make([]Platform, 0, len(fields))
	for _, field := range fields {
		p, err := ParsePlatform(field)
		if err != nil {
			return nil, err
		}
		platforms = append(platforms, p)
	}
	return platforms, nil
}

// String returns os/arch or os/arch/variant.
func (p Platform) String() string {
	if p.Variant == "" {
		return p.OS + "/" + p.Arch
	}
	return p.OS + "/" + p.Arch + "/" + p.Variant
}

// dir is the folder that `fleeting-plugin package` expects an executable in.
func (p Platform) dir() string { return p.OS + "/" + p.Arch + p.Variant }

// suffix names the platform in the name of a downloadable file.
func (p Platform) suffix() string { return p.OS + "-" + p.Arch + p.Variant + p.extension() }

func (p Platform) extension() string {
	if p.OS == "windows" {
		return ".exe"
	}
	return ""
}

// environment is what the go command needs to build for the platform. Every
// setting that changes the result is fixed, so that the caller's environment
// does not.
func (p Platform) environment() []string {
	env := []string{
		"CGO_ENABLED=0", "GOOS=" + p.OS, "GOARCH=" + p.Arch,
		"GOFLAGS=", "GOEXPERIMENT=", "GO386=", "GOAMD64=v1", "GOARM64=", "GOARM=",
	}
	if p.Variant != "" {
		env = append(env, "GOARM="+strings.TrimPrefix(p.Variant, "v"))
	}
	return env
}
