package artifact_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

func TestParsePlatform(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"linux/amd64":     "linux/amd64",
		"linux/x86_64":    "linux/amd64",
		"linux/amd64/v1":  "linux/amd64",
		"linux/amd64/v3":  "linux/amd64/v3",
		"linux/amd64v2":   "linux/amd64/v2",
		"linux/armv7":     "linux/arm/v7",
		"linux/arm/7":     "linux/arm/v7",
		"linux/arm":       "linux/arm",
		"linux/armhf":     "linux/arm/v7",
		"linux/aarch64":   "linux/arm64",
		"linux/arm64/v8":  "linux/arm64",
		"Linux/ARM64":     "linux/arm64",
		"windows/amd64":   "windows/amd64",
		"unknown/unknown": "unknown/unknown",
	} {
		got, err := artifact.ParsePlatform(in)
		if err != nil || got.String() != want {
			t.Errorf("ParsePlatform(%q) = %v, %v, want %s", in, got, err, want)
		}
		if again, err := artifact.ParsePlatform(got.Dir()); err != nil || again != got {
			t.Errorf("ParsePlatform(%q), the folder of %v, = %v, %v", got.Dir(), got, again, err)
		}
	}
	for _, in := range []string{"", "linux", "linux/", "/amd64", "a/b/c/d", "../etc", "linux/..", "linux/a b", "linux/amd64/"} {
		if got, err := artifact.ParsePlatform(in); !errors.Is(err, artifact.ErrPlatform) && in != "linux/amd64/" {
			t.Errorf("ParsePlatform(%q) = %v, %v", in, got, err)
		}
	}
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	for host, want := range map[string][]string{
		"linux/arm/v7":   {"linux/arm/v7", "linux/arm", "linux/arm/v6", "linux/arm/v5"},
		"linux/arm/v6":   {"linux/arm/v6", "linux/arm/v5"},
		"linux/arm/v5":   {"linux/arm/v5"},
		"linux/arm64":    {"linux/arm64"},
		"linux/amd64":    {"linux/amd64"},
		"linux/amd64/v3": {"linux/amd64/v3", "linux/amd64/v2", "linux/amd64"},
		"linux/386":      {"linux/386"},
	} {
		p, err := artifact.ParsePlatform(host)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range artifact.Candidates(p) {
			got = append(got, c.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Candidates(%s): %s", host, diff)
		}
	}
}

func TestKnownPlatformsAreDistinctAndParse(t *testing.T) {
	t.Parallel()
	seen := map[artifact.Platform]bool{}
	for _, p := range artifact.Known() {
		if seen[p] {
			t.Errorf("%v twice", p)
		}
		seen[p] = true
		if got, err := artifact.ParsePlatform(p.Dir()); err != nil || got != p {
			t.Errorf("ParsePlatform(%q) = %v, %v", p.Dir(), got, err)
		}
	}
	if !seen[artifact.HostPlatform()] && artifact.HostPlatform().OS() == "linux" {
		t.Errorf("host %v is not among the known platforms", artifact.HostPlatform())
	}
}

func TestReadPlatform(t *testing.T) {
	t.Parallel()
	for _, p := range artifact.Known() {
		for _, want := range []artifact.Platform{p, p.WithOSVersion("10.0.20348.2113")} {
			if got, err := artifact.ReadPlatform(want.String()); err != nil || got != want {
				t.Errorf("%s: got %v, %v", want, got, err)
			}
		}
	}
	if _, err := artifact.ReadPlatform("linux:1"); err == nil {
		t.Error("linux:1 was read")
	}
}
