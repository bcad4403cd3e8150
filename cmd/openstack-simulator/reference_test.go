package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

const reference = "../../docs/reference/openstack-simulator.md"

func page(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestReferenceShowsTheHelp(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	if help := out.String(); help == "" || !strings.Contains(page(t), "\n"+help+"```\n") {
		t.Errorf("the page does not show\n%s", help)
	}
}

// TestReferenceNamesWhatIsThere: the page names everything that can be asked for.
func TestReferenceNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	seed := openstacksim.DefaultSeed()
	var names []string
	for _, f := range seed.Flavors {
		names = append(names, f.Name)
	}
	for _, i := range seed.Images {
		names = append(names, i.Name)
	}
	for _, n := range seed.Networks {
		names = append(names, n.Name)
	}
	for _, g := range seed.SecurityGroups {
		names = append(names, g.Name)
	}
	for _, g := range seed.ServerGroups {
		names = append(names, g.Name)
	}
	for _, h := range seed.Hosts {
		names = append(names, h.Zone)
	}
	names = append(names, seed.VolumeTypes...)
	names = append(names, seed.Regions...)
	names = append(names, openstacksim.CloudPassword, openstacksim.CloudTiny)
	text := page(t)
	for _, name := range names {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("%s does not name %s", reference, name)
		}
	}
}

// TestReferenceListsTheFaults: the page has every kind of fault, its settings and
// every operation, as the simulator itself describes them.
func TestReferenceListsTheFaults(t *testing.T) {
	t.Parallel()
	if _, shown, _ := strings.Cut(page(t), "cannot be counted:\n\n"); !strings.HasPrefix(shown, faultTables()) {
		t.Errorf("%s does not show\n%s", reference, faultTables())
	}
	if !strings.Contains(page(t), operations()) {
		t.Errorf("%s does not show\n%s", reference, operations())
	}
}

func faultTables() string {
	var b strings.Builder
	b.WriteString("| setting | meaning |\n| --- | --- |\n")
	for _, s := range openstacksim.CommonFaultSettings() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", s.Name, s.Meaning)
	}
	for _, scope := range []struct {
		of    openstacksim.FaultScope
		title string
	}{{openstacksim.ScopeCalls, "Faults of calls"}, {openstacksim.ScopeServers, "Faults of servers"}, {openstacksim.ScopeCloud, "Faults of the whole cloud"}} {
		fmt.Fprintf(&b, "\n### %s\n\n| kind | what happens | settings |\n| --- | --- | --- |\n", scope.title)
		for _, kind := range openstacksim.FaultKinds() {
			if kind.Of == scope.of {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", kind.Name, kind.Effect, describe(kind.Settings))
			}
		}
	}
	return b.String()
}

func describe(settings []openstacksim.FaultSetting) string {
	var parts []string
	for _, s := range settings {
		part := "`" + s.Name + "`: " + s.Meaning
		switch {
		case s.Required:
			part += " (required)"
		case s.Default != "":
			part += " (default `" + s.Default + "`)"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

func operations() string {
	var names []string
	for _, op := range openstacksim.Operations() {
		names = append(names, "`"+string(op)+"`")
	}
	return "Operations are " + strings.Join(names, ", ") + "."
}
