package main

import (
	"bytes"
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
