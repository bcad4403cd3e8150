package packager_test

import (
	"errors"
	"strings"
	"testing"

	installed "github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

func FuzzParseReference(f *testing.F) {
	for _, s := range []string{"a.b/c:1", "localhost:5000/x@sha256:00", "x", ":", "a/b:", "a.b/c@", "a.b:5/c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		repository, identifier, err := packager.ParseReference(s)
		if err != nil {
			if !errors.Is(err, packager.ErrReference) {
				t.Errorf("error = %v", err)
			}
			return
		}
		if repository == "" || !strings.Contains(repository, "/") || !strings.HasPrefix(s, repository) || !strings.HasSuffix(s, identifier) {
			t.Errorf("%q: %q, %q", s, repository, identifier)
		}
	})
}

func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"1.2.3", "v1.2.3-rc.1", "1.2", "1.2.3+x", "01.2.3", "9223372036854775808.0.0", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := packager.ParseVersion(s)
		if err != nil {
			if !errors.Is(err, packager.ErrVersion) {
				t.Errorf("error = %v", err)
			}
			return
		}
		if _, err := installed.Parse(v.String()); err != nil {
			t.Errorf("published but not installed: %v", err)
		}
		if again, err := packager.ParseVersion(v.String()); err != nil || again.Compare(v) != 0 || strings.ContainsAny(v.String(), "v+") && !v.IsPrerelease() {
			t.Errorf("%q: %v, %v", s, v, err)
		}
	})
}
