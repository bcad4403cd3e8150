package installer_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// noFiles is a FileReader without files.
func noFiles(name string) ([]byte, error) { return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist) }

// TestReadPolicyTakesFilesBesideIt is a policy whose key lies in its own folder,
// which is not the one that the process works in.
func TestReadPolicyTakesFilesBesideIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.toml")
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("policy.toml", []byte("version = 1\n[[rule]]\nscope = \"registry.test/team/*\"\n[[rule.key]]\nfile = \"team.pub\"\n"))
	if _, err := installer.ReadPolicy(path); !errors.Is(err, installer.Reason("policy")) || !strings.Contains(err.Error(), path) {
		t.Errorf("without the key: error %v", err)
	}
	write("team.pub", trusttest.NewKey(t).PublicPEM(t))
	policy, err := installer.ReadPolicy(path)
	if err != nil {
		t.Fatal(err)
	}
	if rules := policy.Rules(); len(rules) != 1 || len(rules[0].Signers) != 1 {
		t.Errorf("rules = %+v", rules)
	}
	if _, err := installer.ReadPolicy(filepath.Join(dir, "missing.toml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: error %v", err)
	}
}

func TestParsePolicy(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	read := func(name string) ([]byte, error) {
		if name == "keys/cosign.pub" {
			return key.PublicPEM(t), nil
		}
		return noFiles(name)
	}
	policy, err := installer.ParsePolicy([]byte(`
version = 1

[[rule]]
scope = "registry.example.com/team/**"
threshold = 2
denied-versions = ["<1.2", "1.5.0"]

[[rule.key]]
file = "keys/cosign.pub"

[[rule.identity]]
issuer = "https://issuer.example.com"
subject-pattern = '^https://example\.com/.+$'

[[rule.attestation]]
type = "provenance"
builder = "https://example.com/builder"
source-ref = "refs/tags/*"

[[rule]]
scope = "registry.example.com/team/aged"
minimum-age = "24h"

[[rule.identity]]
issuer = "https://issuer.example.com"
subject = "https://example.com/workflow"

[[rule]]
scope = "registry.example.com/team/old"
insecure-unsigned = true
`), read)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range []string{
		"registry.example.com/team/a", "registry.example.com/team/a/b", "registry.example.com/team/old",
		"registry.example.com/team", "registry.example.com/teamwork/a", "other.example.com/team/a",
		"ghcr.io/radome-io/fleeting-plugin-openstack", "ghcr.io/radome-io.evil/x",
	} {
		rule, err := policy.RuleFor(reference(t, name))
		if errors.Is(err, installer.Reason("no-rule")) && errors.Is(err, installer.ErrRefused) {
			rule.Scope = "refused"
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %d", rule.Scope, rule.Threshold))
	}
	want := []string{
		"registry.example.com/team/** 2", "registry.example.com/team/** 2", "registry.example.com/team/old 0",
		"refused 0", "refused 0", "refused 0", "refused 0", "refused 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnusableSigners holds that what makes no signer matches the sentinel of
// policies, as what makes no policy does.
func TestUnusableSigners(t *testing.T) {
	t.Parallel()
	_, keyErr := installer.RequireKey([]byte("x"), installer.KeyOptions{})
	_, identityErr := installer.RequireIdentity(installer.Identity{}, installer.IdentityOptions{})
	_, rootErr := installer.LoadTrustedRoot([]byte("x"))
	for name, err := range map[string]error{"key": keyErr, "identity": identityErr, "root": rootErr} {
		if !errors.Is(err, installer.Reason("policy")) {
			t.Errorf("%s: got %v; want policy", name, err)
		}
	}
	for name, opt := range map[string]installer.Option{
		"clock": installer.WithClock(nil), "logger": installer.WithLogger(nil), "events": installer.WithEvents(nil), "source": installer.WithSource(nil),
	} {
		if _, err := installer.New(installer.Policy{}, opt); err == nil {
			t.Errorf("no %s is no error", name)
		}
	}
}

// TestBuiltInPublisher holds that a policy trusts nobody whom neither the file nor
// the caller names, and that the file has the last word.
func TestBuiltInPublisher(t *testing.T) {
	t.Parallel()
	own, err := installer.OwnPublisher()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		text    string
		builtIn []installer.Rule
		trusted bool
		signers int
	}{
		"not asked for":      {"version = 1", nil, false, 0},
		"demanded by a file": {"version = 1\nbuilt-in-publisher = true", nil, false, 0},
		"asked for":          {"version = 1", []installer.Rule{own}, true, 1},
		"taken away":         {"version = 1\nbuilt-in-publisher = false", []installer.Rule{own}, false, 0},
		"replaced":           {"version = 1\n[[rule]]\nscope = 'GHCR.io:443/radome-io/**'\ninsecure-unsigned = true", []installer.Rule{own}, true, 0},
	} {
		policy, err := installer.ParsePolicy([]byte(test.text), noFiles, test.builtIn...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rule, err := policy.RuleFor(reference(t, "ghcr.io/radome-io/fleeting-plugin-openstack"))
		if (err == nil) != test.trusted || len(rule.Signers) != test.signers {
			t.Errorf("%s: %+v, %v", name, rule, err)
		}
	}
}

func TestParsePolicyInvalid(t *testing.T) {
	t.Parallel()
	pem := string(trusttest.NewKey(t).PublicPEM(t))
	rule := func(lines string) string {
		return "version = 1\n[[rule]]\nscope = \"a.example/**\"\n" + lines
	}
	withKey := func(lines string) string { return rule(lines + "\n[[rule.key]]\npem = '''" + pem + "'''\n") }
	if _, err := installer.ParsePolicy([]byte(withKey("")), noFiles); err != nil {
		t.Fatalf("the base of the cases below: %v", err)
	}
	for name, test := range map[string]struct{ text, want string }{
		"no version":               {"", "version"},
		"later version":            {"version = 2", "version = 2"},
		"not TOML":                 {"version = ", "line 1"},
		"unknown key":              {withKey("treshold = 2"), `unknown key "rule.treshold"`},
		"unknown key in a key":     {withKey("") + "fingerprint = 'x'", "fingerprint"},
		"nobody":                   {rule(""), "no key and no identity"},
		"no scope":                 {strings.Replace(withKey(""), "a.example/**", "", 1), "scope"},
		"wildcard in the middle":   {strings.Replace(withKey(""), "a.example/**", "a/**/b", 1), "**"},
		"two rules for one scope":  {withKey("") + "[[rule]]\nscope = \"a.example/**\"\ninsecure-unsigned = true", "two rules"},
		"negative threshold":       {withKey("threshold = -1"), "threshold"},
		"unsigned with a key":      {withKey("insecure-unsigned = true"), "unsigned"},
		"age is not a duration":    {withKey("minimum-age = '3 days'"), "3 days"},
		"age of a bare key":        {withKey("minimum-age = '1h'"), "require-timestamp"},
		"negative age":             {withKey("minimum-age = '-1h'"), "below zero"},
		"denied version":           {withKey("denied-versions = ['bad']"), "bad"},
		"denied digest":            {withKey("denied-digests = ['sha256:1']"), "sha256:1"},
		"missing key file":         {rule("[[rule.key]]\nfile = 'x.pub'"), "x.pub"},
		"file and pem":             {rule("[[rule.key]]\nfile = 'x.pub'\npem = 'y'"), "either"},
		"not a key":                {rule("[[rule.key]]\npem = 'y'"), "key"},
		"identity without subject": {rule("[[rule.identity]]\nissuer = 'https://a.example'"), "subject"},
		"identity without issuer":  {rule("[[rule.identity]]\nsubject = 'x'"), "issuer"},
		"pattern not anchored":     {rule("[[rule.identity]]\nissuer = 'https://a.example'\nsubject-pattern = 'x'"), "^"},
		"attestation without type": {withKey("") + "[[rule.attestation]]\nbuilder = 'x'", "type"},
		"attestation type unknown": {withKey("") + "[[rule.attestation]]\ntype = 'x'", "neither"},
		"condition on an SBOM":     {withKey("") + "[[rule.attestation]]\ntype = 'sbom'\nbuilder = 'x'", "conditions"},
		"suffice without any":      {withKey("attestations-suffice = true"), "none is required"},
		"log without a root":       {withKey("") + "require-log = true", "log"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := installer.ParsePolicy([]byte(test.text), noFiles)
			if !errors.Is(err, installer.Reason("policy")) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v; want policy with %q", err, test.want)
			}
		})
	}
}

// TestConditions holds every condition of a rule, each against an artifact that
// fails only this one.
func TestConditions(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	key := trusttest.NewKey(t)
	repo := repository(t, registry.Host, "team/plugin")
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	plugintest.Sign(t, repo, key, p.Index)
	const provenance = `{"buildDefinition":{"externalParameters":{"workflow":{"repository":"https://github.com/o/r","ref":"refs/tags/v1.2.3"}}},` +
		`"runDetails":{"builder":{"id":"https://github.com/o/r/b.yml"}}}`
	plugintest.Refer(t, repo, p.Index, key.AttestBundle(t, p.Index.Digest, trusttest.PredicateSLSA, provenance))
	plugintest.Refer(t, repo, p.Index, trusttest.NewKey(t).AttestBundle(t, p.Index.Digest, trusttest.PredicateSPDX, `{}`))
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		change  func(*installer.Rule)
		refused bool
	}{
		"nothing more": {func(*installer.Rule) {}, false},
		"provenance": {func(r *installer.Rule) {
			r.Attestations = []installer.Attestation{{
				PredicateType: "provenance", Builder: "https://github.com/o/r/b.yml",
				SourceRepository: "https://github.com/o/r", SourceRef: "refs/tags/v*",
			}}
		}, false},
		"attestations suffice": {func(r *installer.Rule) {
			r.AttestationsSuffice = true
			r.Attestations = []installer.Attestation{{PredicateType: trusttest.PredicateSLSA}}
		}, false},
		"another builder": {func(r *installer.Rule) {
			r.Attestations = []installer.Attestation{{PredicateType: "provenance", Builder: "https://github.com/o/r/b.yml2"}}
		}, true},
		"another repository": {func(r *installer.Rule) {
			r.Attestations = []installer.Attestation{{PredicateType: "provenance", SourceRepository: "https://github.com/o"}}
		}, true},
		"another ref": {func(r *installer.Rule) {
			r.Attestations = []installer.Attestation{{PredicateType: "provenance", SourceRef: "refs/heads/*"}}
		}, true},
		"SBOM by somebody else": {func(r *installer.Rule) {
			r.Attestations = []installer.Attestation{{PredicateType: "sbom"}}
		}, true},
		"denied version":  {func(r *installer.Rule) { r.DeniedVersions = constraints(t, "<=1.2") }, true},
		"another version": {func(r *installer.Rule) { r.DeniedVersions = constraints(t, "<1.2") }, false},
		"denied index":    {func(r *installer.Rule) { r.DeniedDigests = append(r.DeniedDigests, p.Index.Digest) }, true},
		"denied layer": {func(r *installer.Rule) {
			for _, layer := range p.Layers {
				r.DeniedDigests = append(r.DeniedDigests, layer.Digest)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := installer.Rule{Scope: "**", Signers: []installer.Signer{signerOf(t, key)}}
			test.change(&rule)
			i := newInstaller(t, policyOf(t, rule), installer.WithClock(func() time.Time { return now }))
			_, err := i.Verify(t.Context(), reference(t, registry.Host+"/team/plugin:1.2.3"))
			if refused := errors.Is(err, installer.ErrRefused); refused != test.refused || err != nil && !refused {
				t.Errorf("got %v; want refused = %v", err, test.refused)
			}
		})
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add("version = 1\n[[rule]]\nscope = 'a.example/**'\ninsecure-unsigned = true")
	f.Add("version = 1\n[[rule]]\nscope = 'a*b/c'\nthreshold = 3\n[[rule.key]]\nfile = 'x'")
	f.Fuzz(func(t *testing.T, text string) {
		policy, err := installer.ParsePolicy([]byte(text), noFiles)
		if err != nil {
			if !errors.Is(err, installer.Reason("policy")) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for _, rule := range policy.Rules() {
			if len(rule.Signers) == 0 && !rule.Unsafe {
				t.Fatalf("%q: a rule that nobody signs for: %+v", text, rule)
			}
			if rule.Unsafe && !strings.Contains(text, "insecure-unsigned") {
				t.Fatalf("%q: unsafe without being asked", text)
			}
		}
	})
}

func ExampleParsePolicy() {
	_, err := installer.ParsePolicy([]byte(`
version = 1

[[rule]]
scope = "registry.example.com/team/**"

[[rule.key]]
file = "cosign.pub"
`), func(name string) ([]byte, error) { return os.ReadFile("/nowhere/" + name) })
	fmt.Println(errors.Is(err, installer.Reason("policy")))
	// Output: true
}
