package installer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
)

const (
	someDigest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	longDigest = "sha512:cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
)

func constraints(tb testing.TB, texts ...string) []version.Constraint {
	tb.Helper()
	var out []version.Constraint
	for _, text := range texts {
		c, err := version.ParseConstraint(text)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func TestParseReference(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"aws":                              "registry.gitlab.com/gitlab-org/fleeting/plugins/aws:latest",
		"aws:1.2":                          "registry.gitlab.com/gitlab-org/fleeting/plugins/aws:1.2",
		"aws@" + someDigest:                "registry.gitlab.com/gitlab-org/fleeting/plugins/aws@" + someDigest,
		"group/aws:1":                      "registry.gitlab.com/group/aws:1",
		"registry.example.com/a/b/c:1.2.3": "registry.example.com/a/b/c:1.2.3",
		// INTEROP 3: any registry, with a port too. https://github.com/riemers/ansible-gitlab-runner/pull/409
		"registry.example.com:5050/a:latest": "registry.example.com:5050/a:latest",
		// INTEROP C4: the runner takes this for a path in registry.gitlab.com.
		"localhost:5055/x:1.0.0":       "localhost:5055/x:1.0.0",
		"localhost/x":                  "localhost/x:latest",
		"127.0.0.1:5000/a/b":           "127.0.0.1:5000/a/b:latest",
		"[::1]:5000/a:1":               "[::1]:5000/a:1",
		"docker.io/x":                  "index.docker.io/library/x:latest",
		"docker.io/a/x:1":              "index.docker.io/a/x:1",
		"index.docker.io/a/x":          "index.docker.io/a/x:latest",
		"a.example/x:v1.2.3":           "a.example/x:1.2.3",
		"a.example/x:1.2.3_b7":         "a.example/x:1.2.3",
		"a.example/x:>=1.2 <2":         "a.example/x:>=1.2 <2",
		"a.example/x:~> 1.2 || ^3":     "a.example/x:~> 1.2 || ^3",
		"a.example/x:1@" + someDigest:  "a.example/x:1@" + someDigest,
		"a.example/x@" + longDigest:    "a.example/x@" + longDigest,
		"123456.dkr.ecr.eu.example/x":  "123456.dkr.ecr.eu.example/x:latest",
		"a.example/x.y_z__w--v/q:1":    "a.example/x.y_z__w--v/q:1",
		"registry.gitlab.com/con:1":    "registry.gitlab.com/con:1",
		"Registry.Example.COM/a/b:1.0": "Registry.Example.COM/a/b:1.0",
	} {
		ref, err := installer.ParseReference(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if ref.String() != want {
			t.Errorf("%q is %q; want %q", text, ref, want)
		}
		again, err := installer.ParseReference(ref.String())
		if err != nil || again.String() != ref.String() || again.Name() != ref.Name() {
			t.Errorf("%q → %q → %q, %v", text, ref, again, err)
		}
	}
}

func TestParseReferenceInvalid(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", ":1", "@" + someDigest, "aws:", "aws: ", "aws@", "aws@sha256:1", "aws@md5:d41d8cd98f00b204e9800998ecf8427e",
		"https://a.example/x", "a.example/", "a.example//x", "a.example/x/", "a.example/X", "a.example/x:edge",
		"a.example/../x", "a.example/-x", "a.example/x-", "a.example/x..y", "a.example/x___y", "a.example:0/x",
		"a.example:65536/x", "a.example:port/x", "a..example/x", "-a.example/x", "a.example/x y", "a.example/x\n",
		"[::g]:1/x", "[127.0.0.1]:1/x", "a.example/x:1@" + someDigest + "@" + someDigest, "a.exämple/x",
		"a.example/" + strings.Repeat("x", 300), strings.Repeat("x", 2000), "a.example/x:1:2", "a.example\\b/x",
	} {
		if ref, err := installer.ParseReference(text); !errors.Is(err, installer.Reason("reference")) {
			t.Errorf("%q is %q, %v; want reference", text, ref, err)
		}
	}
}

func TestReferenceParts(t *testing.T) {
	t.Parallel()
	ref := reference(t, "a.example:5000/x/y:~1.2@"+someDigest)
	constraint, constrained := ref.Constraint()
	got := []string{ref.Registry(), ref.Repository(), ref.Name(), constraint.String(), fmt.Sprint(constrained), ref.Digest().String()}
	want := []string{"a.example:5000", "x/y", "a.example:5000/x/y", "~1.2", "true", someDigest}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, constrained := reference(t, "a.example/x@"+someDigest).Constraint(); constrained {
		t.Error("a digest alone is constrained")
	}
}

func FuzzReference(f *testing.F) {
	for _, seed := range []string{"aws", "a/b:1", "a.example:5000/x:>=1 <2@" + someDigest, "[::1]:1/x", "docker.io/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		t.Helper()
		ref, err := installer.ParseReference(text)
		if err != nil {
			return
		}
		again, err := installer.ParseReference(ref.String())
		if err != nil || again.String() != ref.String() || again.Name() != ref.Name() {
			t.Fatalf("%q → %q → %q, %v", text, ref, again, err)
		}
		if strings.Contains(ref.Name(), "..") || strings.ContainsAny(ref.Name(), "\\\x00 ") {
			t.Fatalf("%q has the name %q", text, ref.Name())
		}
	})
}

func ExampleParseReference() {
	for _, text := range []string{"aws", "registry.example.com:5050/team/plugin:~1.4"} {
		ref, err := installer.ParseReference(text)
		fmt.Println(ref, err)
	}
	// Output:
	// registry.gitlab.com/gitlab-org/fleeting/plugins/aws:latest <nil>
	// registry.example.com:5050/team/plugin:~1.4 <nil>
}
