package version_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	runner "gitlab.com/gitlab-org/fleeting/fleeting-artifact/pkg/version"

	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, valid := range []string{
		"0.0.0", "1.2.3", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-0.3.7", "1.0.0-x-y-z.--",
		"1.0.0+001", "1.0.0-rc.1+build.5", "9223372036854775807.0.0",
	} {
		v, err := version.Parse(valid)
		if err != nil {
			t.Errorf("Parse(%q): %v", valid, err)
		}
		if v.String() != valid {
			t.Errorf("Parse(%q).String() = %q", valid, v)
		}
	}
	for _, invalid := range []string{
		"", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.2.03", "1.2.3-", "1.2.3-01", "1.2.3-a..b",
		"1.2.3+", "1.2.3+a_b", "1.2.3-a_b", " 1.2.3", "1.2.3 ", "-1.2.3", "+1.2.3", "1.-2.3", "1.2.x",
		"9223372036854775808.0.0", "1.2.3-é", "1.2.3\n", strings.Repeat("1", version.MaxLength+1) + ".0.0",
	} {
		if v, err := version.Parse(invalid); !errors.Is(err, version.ErrInvalid) {
			t.Errorf("Parse(%q) = %v, %v; want ErrInvalid", invalid, v, err)
		}
	}
}

func TestParseTag(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{
		"v1.2.3": "1.2.3", "1.2.3_b.7": "1.2.3+b.7", "v1.2.3-rc.1_sha-5": "1.2.3-rc.1+sha-5", "1.2.3": "1.2.3",
	} {
		v, err := version.ParseTag(tag)
		if err != nil || v.String() != want {
			t.Errorf("ParseTag(%q) = %v, %v; want %s", tag, v, err, want)
		}
		if got := v.Tag(); got != strings.TrimPrefix(tag, "v") {
			t.Errorf("ParseTag(%q).Tag() = %q", tag, got)
		}
	}
	for _, tag := range []string{"latest", "1.2", "vv1.2.3", "1.2.3_a_b", "V1.2.3", ""} {
		if _, err := version.ParseTag(tag); !errors.Is(err, version.ErrInvalid) {
			t.Errorf("ParseTag(%q): %v; want ErrInvalid", tag, err)
		}
	}
}

// TestOrder compares our order with that of another implementation, on random versions.
func TestOrder(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		a, b := randomVersion(rng), randomVersion(rng)
		got := parse(t, a).Compare(parse(t, b))
		want := semver.MustParse(a).Compare(semver.MustParse(b))
		if got != want {
			t.Fatalf("Compare(%s, %s) = %d; want %d", a, b, got, want)
		}
		if back := parse(t, b).Compare(parse(t, a)); back != -got {
			t.Fatalf("Compare(%s, %s) = %d, but the other way round %d", a, b, got, back)
		}
	}
}

func TestConstraintMatch(t *testing.T) {
	t.Parallel()
	for constraint, cases := range map[string]struct{ yes, no string }{
		"latest":                 {"0.0.0 1.2.3 1.2.3+b", "1.2.3-rc.1"},
		"":                       {"1.2.3", "2.0.0-alpha"},
		"*":                      {"1.2.3", "2.0.0-alpha"},
		"1":                      {"1.0.0 1.99.99", "0.9.9 2.0.0 1.0.0-rc.1 2.0.0-rc.1"},
		"v1":                     {"1.0.0", "2.0.0"},
		"1.2":                    {"1.2.0 1.2.9", "1.1.9 1.3.0 1.2.0-rc.1 1.3.0-rc.1"},
		"1.2.3":                  {"1.2.3 1.2.3+b", "1.2.4 1.2.3-rc.1"},
		"v1.2.3":                 {"1.2.3", "1.2.4"},
		"1.2.3-rc.1":             {"1.2.3-rc.1", "1.2.3 1.2.3-rc.2"},
		"=1.2":                   {"1.2.5", "1.3.0"},
		"!=1.2":                  {"1.1.0 1.3.0", "1.2.0 1.2.9"},
		"!=1.2.3":                {"1.2.4 1.2.2", "1.2.3 1.2.4-rc"},
		">1.2":                   {"1.3.0 2.0.0", "1.2.0 1.2.9 1.3.0-rc"},
		">1.2.3":                 {"1.2.4", "1.2.3"},
		">=1.2 <2":               {"1.2.0 1.9.0", "1.1.9 2.0.0 2.0.0-rc.1"},
		">=1.2, <2":              {"1.2.0 1.9.0", "1.1.9 2.0.0"},
		">=1.2,<2":               {"1.2.0 1.9.0", "1.1.9 2.0.0"},
		">=1.2<2":                {"1.2.0 1.9.0", "1.1.9 2.0.0"},
		">= 1.2 < 2":             {"1.2.0 1.9.0", "1.1.9 2.0.0"},
		"<=1.2":                  {"1.2.9 0.1.0", "1.3.0"},
		"<=1.2.3":                {"1.2.3", "1.2.4"},
		"~1":                     {"1.0.0 1.9.0", "2.0.0"},
		"~1.4":                   {"1.4.0 1.4.9", "1.5.0 1.3.9"},
		"~1.4.2":                 {"1.4.2 1.4.9", "1.4.1 1.5.0"},
		"^1":                     {"1.0.0 1.9.9", "2.0.0 0.9.0"},
		"^1.2.3":                 {"1.2.3 1.9.9", "1.2.2 2.0.0 2.0.0-rc.1"},
		"^0.2":                   {"0.2.0 0.2.9", "0.3.0"},
		"^0.2.3":                 {"0.2.3 0.2.9", "0.3.0 0.2.2"},
		"^0.0.3":                 {"0.0.3", "0.0.4 0.0.2"},
		"^0":                     {"0.0.0 0.9.9", "1.0.0"},
		"~> 1.2":                 {"1.2.0 1.9.9", "2.0.0 1.1.0"},
		"~> 1.2.3":               {"1.2.3 1.2.9", "1.3.0 1.2.2"},
		"~> 1":                   {"1.0.0", "2.0.0"},
		"1.2 || 2":               {"1.2.3 2.5.0", "1.3.0 3.0.0"},
		"<1 || >=2.0.0-rc.1":     {"0.9.0 2.0.0-rc.2 2.0.0 3.0.0", "1.0.0 2.1.0-rc.1 2.0.0-beta"},
		">=2.0.0-rc.1 <2.0.0":    {"2.0.0-rc.1 2.0.0-rc.9", "2.0.0 2.0.0-beta"},
		"^2.0.0-rc.1":            {"2.0.0-rc.1 2.0.0 2.1.0", "3.0.0 2.1.0-rc.1 3.0.0-rc.1"},
		"1 >=2.0.0-alpha":        {"", "1.0.0 2.0.0-alpha 2.0.0"},
		"!=1.2.3-rc.1 >=1.2.3-a": {"1.2.3 1.2.3-b", "1.2.3-rc.1"},
	} {
		c, err := version.ParseConstraint(constraint)
		if err != nil {
			t.Errorf("ParseConstraint(%q): %v", constraint, err)
			continue
		}
		for v := range strings.FieldsSeq(cases.yes) {
			if !c.Match(parse(t, v)) {
				t.Errorf("%q does not match %s", constraint, v)
			}
		}
		for v := range strings.FieldsSeq(cases.no) {
			if c.Match(parse(t, v)) {
				t.Errorf("%q matches %s", constraint, v)
			}
		}
	}
}

func TestConstraintInvalid(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"bleeding", "stable", "1.1.a", "1-rc.1", "1.2-rc.1", "||", "1 ||", "|| 1", ">=", "1 2 x", ">= <1", "01", "1.02",
		"1|2", "1.2.3 latest", "=>1", "1.2.3;2", "-1", "1..2", strings.Repeat(">0 ", 40), strings.Repeat("1", 600),
	} {
		if c, err := version.ParseConstraint(text); !errors.Is(err, version.ErrInvalid) {
			t.Errorf("ParseConstraint(%q) = %v, %v; want ErrInvalid", text, c, err)
		}
	}
}

func TestConstraintForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ exact, alias string }{
		"latest": {"", "latest"}, "": {"", "latest"}, "1": {"", "1"}, "v1.2": {"", "1.2"}, "1.2.3": {"1.2.3", ""},
		"v1.2.3_b": {"1.2.3", ""}, "^1": {"", ""}, "=1.2.3": {"1.2.3", ""}, ">1": {"", ""}, "1 || 2": {"", ""},
	} {
		c, err := version.ParseConstraint(text)
		if err != nil {
			t.Fatal(err)
		}
		exact, ok := c.Exact()
		if ok != (want.exact != "") || ok && exact.String() != want.exact {
			t.Errorf("%q: Exact() = %v, %v; want %q", text, exact, ok, want.exact)
		}
		if alias, ok := c.Alias(); ok != (want.alias != "") || alias != want.alias {
			t.Errorf("%q: Alias() = %q, %v; want %q", text, alias, ok, want.alias)
		}
	}
}

// TestRunnerAgrees holds that for the runner's own grammar our choice is the
// runner's, whatever the versions are.
func TestRunnerAgrees(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		var texts []string
		for range 1 + rng.IntN(12) {
			texts = append(texts, strings.Split(randomVersion(rng), "+")[0])
		}
		constraint := randomRunnerConstraint(rng, texts)
		theirs := runnerChoice(t, constraint, texts)
		c, err := version.ParseConstraint(constraint)
		if err != nil {
			t.Fatal(err)
		}
		var versions []version.Version
		for _, text := range texts {
			versions = append(versions, parse(t, text))
		}
		ours := ""
		if v, ok := c.Select(versions); ok {
			ours = v.String()
		}
		if ours != theirs {
			t.Fatalf("%q of %v: ours %q, the runner's %q", constraint, texts, ours, theirs)
		}
	}
}

func runnerChoice(t *testing.T, constraint string, texts []string) string {
	t.Helper()
	c, err := runner.NewConstraint(constraint)
	if err != nil {
		t.Fatal(err)
	}
	var versions []runner.Version
	for _, text := range texts {
		v, err := runner.New(text)
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, v)
	}
	matching := c.Match(versions)
	if len(matching) == 0 {
		return ""
	}
	return matching[len(matching)-1].String()
}

// TestSelectIgnoresOrder shuffles the input and wants the same answer, which
// must match and be the greatest that does.
func TestSelectIgnoresOrder(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		var versions []version.Version
		for range 1 + rng.IntN(10) {
			versions = append(versions, parse(t, randomVersion(rng)))
		}
		c, err := version.ParseConstraint(randomConstraint(rng))
		if err != nil {
			t.Fatal(err)
		}
		first, ok := c.Select(versions)
		rng.Shuffle(len(versions), func(i, j int) { versions[i], versions[j] = versions[j], versions[i] })
		second, again := c.Select(versions)
		if ok != again || first.String() != second.String() {
			t.Fatalf("%s of %v: %v or %v, by order", c, versions, first, second)
		}
		if ok && !c.Match(first) {
			t.Fatalf("%s chose %s, which it does not match", c, first)
		}
		for _, v := range versions {
			if ok && c.Match(v) && v.Compare(first) > 0 {
				t.Fatalf("%s of %v chose %s, not %s", c, versions, first, v)
			}
		}
		if v, isExact := c.Exact(); isExact && ok && !v.Equal(first) {
			t.Fatalf("%s is exactly %s but chose %s", c, v, first)
		}
	}
}

func FuzzConstraint(f *testing.F) {
	for _, seed := range []string{"latest", "1", "1.2", "1.2.3-rc.1", ">=1.2 <2", "~1.4", "^0.0.3", "~> 1.2", "1 || 2", "!=1", "v1.2.3_b", "*"} {
		f.Add(seed, "1.2.3")
	}
	f.Add("^0.2", "0.2.0-a+b")
	f.Fuzz(func(t *testing.T, text, tag string) {
		c, err := version.ParseConstraint(text)
		if err != nil {
			return
		}
		again, err := version.ParseConstraint(c.String())
		if err != nil || again.String() != c.String() {
			t.Fatalf("%q → %q → %q, %v", text, c, again, err)
		}
		v, err := version.ParseTag(tag)
		if err != nil {
			return
		}
		if c.Match(v) != again.Match(v) {
			t.Fatalf("%q and %q disagree on %s", text, c, v)
		}
		if !version.Exactly(v).Match(v) {
			t.Fatalf("exactly %s does not match it", v)
		}
		if back, err := version.Parse(v.String()); err != nil || back.String() != v.String() {
			t.Fatalf("%s → %s, %v", v, back, err)
		}
	})
}

func Example() {
	c, err := version.ParseConstraint(">=1.2 <2")
	if err != nil {
		fmt.Println(err)
		return
	}
	var versions []version.Version
	for _, tag := range []string{"latest", "1.1.0", "v1.4.0", "1.5.0-rc.1", "2.0.0"} {
		if v, err := version.ParseTag(tag); err == nil {
			versions = append(versions, v)
		}
	}
	chosen, ok := c.Select(versions)
	fmt.Println(chosen, ok)
	// Output: 1.4.0 true
}

func parse(t *testing.T, text string) version.Version {
	t.Helper()
	v, err := version.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func randomVersion(rng *rand.Rand) string {
	v := fmt.Sprintf("%d.%d.%d", rng.IntN(3), rng.IntN(3), rng.IntN(3))
	if rng.IntN(3) == 0 {
		ids := []string{"alpha", "beta", "rc", "1", "2", "11", "a-b", "0"}
		v += "-" + ids[rng.IntN(len(ids))]
		if rng.IntN(2) == 0 {
			v += "." + ids[rng.IntN(len(ids))]
		}
	}
	if rng.IntN(6) == 0 {
		v += fmt.Sprintf("+b%d", rng.IntN(3))
	}
	return v
}

func randomRunnerConstraint(rng *rand.Rand, texts []string) string {
	whole := texts[rng.IntN(len(texts))]
	release, _, _ := strings.Cut(whole, "-")
	parts := strings.Split(release, ".")
	return slices.Concat([]string{"latest", whole}, []string{parts[0], strings.Join(parts[:2], ".")})[rng.IntN(4)]
}

func randomConstraint(rng *rand.Rand) string {
	one := func() string {
		operators := []string{"", "=", "!=", ">", ">=", "<", "<=", "~", "^", "~> "}
		whole, _, _ := strings.Cut(randomVersion(rng), "+")
		release, _, _ := strings.Cut(whole, "-")
		parts := strings.Split(release, ".")
		bound := []string{whole, parts[0], strings.Join(parts[:2], ".")}[rng.IntN(3)]
		return operators[rng.IntN(len(operators))] + bound
	}
	c := one()
	if rng.IntN(2) == 0 {
		c += " " + one()
	}
	if rng.IntN(3) == 0 {
		c += " || " + one()
	}
	return c
}
