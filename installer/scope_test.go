package installer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// TestScopes holds which scopes a policy takes: those that some reference matches.
func TestScopes(t *testing.T) {
	t.Parallel()
	for scope, want := range map[string]string{
		"**":                                "",
		"registry.test/**":                  "",
		"registry.test/team/*":              "",
		"registry.test/team/plugin-*":       "",
		"registry.test/*/plugin":            "",
		"registry.test/a_*.b":               "",
		"Registry.Test:5000/team/**":        "",
		"[2001:DB8::1]:5000/team/*":         "",
		"*.example.com/**":                  "",
		"*/**":                              "",
		"*:5000/team/x":                     "",
		"localhost/x":                       "",
		"docker.io/nginx":                   "",
		"":                                  "no scope",
		"team":                              "begins with a registry",
		"team/plugin":                       "begins with a registry",
		"*":                                 "begins with a registry",
		"registry.test":                     "begins with a registry",
		"https://registry.test/team/**":     "omit it",
		"registry.test/Team/**":             `write "team"`,
		"registry.test/team/Plugin*":        `write "plugin*"`,
		"registry.test/team/x:1.2":          `omit ":1.2"`,
		"registry.test/team/x:latest":       `omit ":latest"`,
		"registry.test/x@sha256:00":         `omit "@sha256:00"`,
		"registry.test/team//x":             "matches nothing",
		"registry.test/team/":               "matches nothing",
		"/registry.test/team":               "matches nothing",
		"registry.test/**/x":                "may only be the last element",
		"registry.test/team**":              "may only be the last element",
		"**.test/x":                         "may only be the last element",
		"registry.test/team/x y":            "only wildcard",
		"registry.test/team/[ab]":           "only wildcard",
		"registry.test/team/a?":             "only wildcard",
		"registry.test/team/a..*":           "only wildcard",
		"registry.test/team/-*":             "only wildcard",
		"registry.test/team/*-":             "only wildcard",
		"registry.test/team/é":              "only wildcard",
		"registry.test/../x":                "only wildcard",
		"registry.test:https/x":             "port",
		"registry.test:99999/x":             "port",
		"registry..test/x":                  "not a host name",
		"-registry.test/x":                  "not a host name",
		"registry.test./x":                  "not a host name",
		"[::1/x":                            "not an IPv6 address",
		"user@registry.test/x":              "not a host name",
		"registry.test:0443/x":              "port",
		"registry.test:+443/x":              "port",
		"registry.test:/x":                  "port",
		"[fe80::1%eth0]/x":                  "not an IPv6 address",
		"[1.2.3.4]/x":                       "not an IPv6 address",
		"reg\u0456stry.test/x":              "not a host name",
		"registry.test /x":                  "not a host name",
		"registry.test/team/plugin/":        "matches nothing",
		"registry.test/team/*/":             "matches nothing",
		"registry.test\\team/x":             "not a host name",
		"registry.test/team/plugin?":        "only wildcard",
		"registry.test/{a,b}":               "only wildcard",
		"registry.test/team/te\u0301am":     "only wildcard",
		"registry.test/" + longElement():    "",
		"registry.test/x/" + longElement():  "want 1 to 255",
		"registry.test/team/plugin\n":       "only wildcard",
		"registry.test/team/plugin\u202e":   "only wildcard",
		"registry.test/team/pl\u0131gin/**": "only wildcard",
	} {
		_, err := installer.NewPolicy(installer.Rule{Scope: scope, UnsafeUnsigned: true})
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", scope, err)
		case want != "" && (!errors.Is(err, installer.Reason("policy")) || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v; want %q", scope, err, want)
		}
	}
}

func longElement() string { return strings.Repeat("a", 255) }

// TestStrictRuleIsNotPassedBy: the lax rule for a registry does not decide about
// what a strict rule means, however that writes its names.
func TestStrictRuleIsNotPassedBy(t *testing.T) {
	t.Parallel()
	signers := []installer.Signer{signerOf(t, trusttest.NewKey(t))}
	for scope, name := range map[string]string{
		"registry.test/Team/**":       "registry.test/team/plugin",
		"registry.test/team/Plugin":   "registry.test/team/plugin",
		"registry.test/team/x:1":      "registry.test/team/x:1",
		"docker.io/nginx":             "docker.io/nginx",
		"docker.io/ngi*":              "index.docker.io/library/nginx",
		"index.docker.io/nginx":       "docker.io/library/nginx",
		"registry-1.docker.io/nginx":  "docker.io/nginx",
		"docker.io:443/library/nginx": "docker.io/nginx",
		"DOCKER.IO/nginx":             "registry-1.docker.io:443/library/nginx",
		"docker.io/*":                 "docker.io/nginx",
		"registry.test:443/team/*":    "Registry.Test/team/plugin",
		"docker.io/library/nginx":     "registry.hub.docker.com/library/nginx",
		"10.0.0.1:5000/team/*":        "[::ffff:10.0.0.1]:5000/team/plugin",
		"[::FFFF:a00:1]:5000/team/*":  "10.0.0.1:5000/team/plugin",
		"[::ffff:10.0.0.1]/team/*":    "10.0.0.1:443/team/plugin",
		"[2001:db8:0::1]/team/*":      "[2001:DB8::1]:443/team/plugin",
	} {
		policy, err := installer.NewPolicy(
			installer.Rule{Scope: "registry.test/**", UnsafeUnsigned: true},
			installer.Rule{Scope: "docker.io/**", UnsafeUnsigned: true},
			installer.Rule{Scope: "**", UnsafeUnsigned: true},
			installer.Rule{Scope: scope, Signers: signers},
		)
		if err != nil {
			continue // said so, which is as good
		}
		rule, err := policy.RuleFor(reference(t, name))
		if err != nil || rule.Unsafe || rule.Scope != scope {
			t.Errorf("%s under %s: decided by %+v, %v", name, scope, rule, err)
		}
	}
}

// TestTwoRulesForTheSameNames names both spellings.
func TestTwoRulesForTheSameNames(t *testing.T) {
	t.Parallel()
	for a, b := range map[string]string{
		"docker.io/nginx":        "index.docker.io/library/nginx",
		"registry.test/x":        "Registry.test:443/x",
		"[2001:db8::1]/x/**":     "[2001:DB8:0::1]:443/x/**",
		"registry-1.docker.io/*": "docker.io/library/*",
	} {
		_, err := installer.NewPolicy(installer.Rule{Scope: a, UnsafeUnsigned: true}, installer.Rule{Scope: b, UnsafeUnsigned: true})
		if !errors.Is(err, installer.Reason("policy")) || !strings.Contains(err.Error(), a) || !strings.Contains(err.Error(), b) {
			t.Errorf("%s and %s: %v", a, b, err)
		}
	}
}

// TestMatches explains which rule decides, and where rules cross.
func TestMatches(t *testing.T) {
	t.Parallel()
	var rules []installer.Rule
	for _, scope := range []string{
		"**", "registry.test/**", "registry.test/*/prod", "registry.test/team/*", "registry.test/team/pro*", "registry.test/team/prod",
	} {
		rules = append(rules, installer.Rule{Scope: scope, UnsafeUnsigned: true})
	}
	policy := policyOf(t, rules...)
	matches, err := policy.Matches(reference(t, "registry.test/team/prod:1"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range matches {
		got = append(got, m.Scope+": "+m.Why)
		if m.Decides != (len(got) == 1) {
			t.Errorf("%s decides: %v", m.Scope, m.Decides)
		}
	}
	want := []string{
		"registry.test/team/prod: Of the 6 rules that match it has the longer beginning without wildcards.",
		"registry.test/team/pro*: The rule for registry.test/team/prod has the longer beginning without wildcards.",
		"registry.test/team/*: The rule for registry.test/team/prod has the longer beginning without wildcards.",
		"registry.test/*/prod: The rule for registry.test/team/prod has the longer beginning without wildcards.",
		"registry.test/**: The rule for registry.test/team/prod has the longer beginning without wildcards.",
		"**: The rule for registry.test/team/prod has the longer beginning without wildcards.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for scope, why := range map[string]string{"registry.test/other/prod": "names the number of elements", "other.test/x": "only rule"} {
		matches, err := policy.Matches(reference(t, scope))
		if err != nil || !strings.Contains(matches[0].Why, why) {
			t.Errorf("%s: %+v, %v; want %q", scope, matches, err, why)
		}
	}
	yields := map[string][]string{}
	for _, rule := range policy.Rules() {
		if rule.YieldsTo != nil {
			yields[rule.Scope] = rule.YieldsTo
		}
	}
	if diff := cmp.Diff(map[string][]string{"registry.test/*/prod": {"registry.test/team/pro*", "registry.test/team/*"}}, yields); diff != "" {
		t.Error(diff)
	}
	if _, err := policyOf(t, rules[2]).Matches(reference(t, "other.test/x")); !errors.Is(err, installer.Reason("no-rule")) {
		t.Errorf("no rule: %v", err)
	}
}
