package artifact

import (
	"runtime"
	"slices"

	"golang.org/x/sys/cpu"
)

// Known returns every platform that may be published: those of the runner
// project's own releaser, and windows/arm64 and linux/loong64.
func Known() []Platform {
	var all []Platform
	for os, archs := range map[string][]string{
		"darwin":  {"amd64", "arm64"},
		"freebsd": {"386", "amd64", "armv5", "armv6", "armv7", "arm64"},
		"linux": {
			"386", "amd64", "armv5", "armv6", "armv7", "arm64", "loong64",
			"mips64le", "ppc64le", "riscv64", "s390x",
		},
		"windows": {"386", "amd64", "arm64"},
		"zos":     {"s390x"},
	} {
		for _, arch := range archs {
			base, variant := splitVariant(arch)
			all = append(all, Platform{os: os, arch: base, variant: variant})
		}
	}
	slices.SortFunc(all, Platform.Compare)
	return all
}

// HostPlatform is the platform that this process runs on. On 32-bit arm the
// variant is the newest whose floating-point unit the processor reports, by
// the same rule as Go's GOARM.
func HostPlatform() Platform {
	p := Platform{os: runtime.GOOS, arch: runtime.GOARCH}
	if p.arch == "arm" {
		switch {
		case cpu.ARM.HasVFPv3:
			p.variant = "v7"
		case cpu.ARM.HasVFP:
			p.variant = "v6"
		default:
			p.variant = "v5"
		}
	}
	return p
}

// Candidates returns the platforms whose executables run on want, the best
// first: want itself, then older variants of the same architecture. 32-bit
// arm without a variant counts as v7, as container runtimes count it, and
// stands behind an explicit v7. Another architecture is never among them, so
// a 386 executable is not offered to amd64, nor arm to arm64.
func Candidates(want Platform) []Platform {
	with := func(variants ...string) []Platform {
		var out []Platform
		for _, v := range variants {
			out = append(out, Platform{os: want.os, arch: want.arch, variant: v})
		}
		return out
	}
	switch want.arch + want.variant {
	case "armv8", "armv7", "arm":
		return with("v7", "", "v6", "v5")
	case "armv6":
		return with("v6", "v5")
	case "amd64v4":
		return with("v4", "v3", "v2", "")
	case "amd64v3":
		return with("v3", "v2", "")
	case "amd64v2":
		return with("v2", "")
	default:
		return with(want.variant)
	}
}
