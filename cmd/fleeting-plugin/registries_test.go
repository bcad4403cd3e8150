package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
)

// registriesPage has the table of what every command does with every registry;
// `make docs` writes it anew.
const registriesPage = "../../docs/reference/registries.md"

const tableBegin, tableEnd = "<!-- Written by `make docs` from here; do not edit. -->\n", "<!-- Written by `make docs` up to here. -->\n"

// outcome is what a command did with a registry.
type outcome struct {
	code cli.Code
	// warns says that it reported something that it does not report of a registry
	// that follows the specification.
	warns bool
}

func (o outcome) String() string {
	switch {
	case o.code != cli.OK:
		return fmt.Sprintf("exit code %d", o.code)
	case o.warns:
		return "works, with a warning"
	}
	return "works"
}

// TestRegistries runs every command that speaks to registries against every
// behaviour of registries, and compares the outcomes with the table on the page.
// What works must come to the same as on a registry that follows the
// specification; what does not must be refused clearly. An error of a registry is
// never taken for a missing signature.
func TestRegistries(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	commands, behaviours := registryCommands(), registrytest.Behaviours()
	outcomes := make([]map[string]outcome, len(behaviours))
	t.Run("behaviours", func(t *testing.T) {
		for i, b := range behaviours {
			outcomes[i] = map[string]outcome{}
			t.Run(b.Name, func(t *testing.T) {
				t.Parallel()
				var wg sync.WaitGroup
				var mu sync.Mutex
				for _, c := range commands {
					wg.Go(func() {
						o := s.cell(t, c, b)
						mu.Lock()
						defer mu.Unlock()
						outcomes[i][c.name] = o
					})
				}
				wg.Wait()
			})
		}
	})
	if slices.ContainsFunc(outcomes, func(row map[string]outcome) bool { return len(row) == 0 }) {
		return // -run asks for some of them
	}
	table := registriesTable(behaviours, outcomes)
	page, err := os.ReadFile(registriesPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableBegin)
	old, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table: %q … %q", registriesPage, tableBegin, tableEnd)
	}
	if *update {
		if err := os.WriteFile(registriesPage, []byte(before+tableBegin+table+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(old, table); diff != "" {
		t.Errorf("the table of %s is another, run make docs and look at what changed (-page +seen):\n%s", registriesPage, diff)
	}
}

// registriesTable writes the outcomes, one row for each behaviour.
func registriesTable(behaviours []registrytest.Behaviour, outcomes []map[string]outcome) string {
	var b strings.Builder
	var names []string
	for _, c := range registryCommands() {
		names = append(names, c.name)
	}
	count := map[string]int{}
	for _, row := range outcomes {
		for _, o := range row {
			switch {
			case o.code != cli.OK:
				count["refused"]++
			case o.warns:
				count["warned"]++
			}
		}
	}
	cells := len(behaviours) * len(names)
	fmt.Fprintf(&b, "\n%d commands meet %d ways in which registries behave. Of these %d cases, %d work, %d work with a warning, and %d are refused. Commands: `%s`.\n\n",
		len(names), len(behaviours), cells, cells-count["warned"]-count["refused"], count["warned"], count["refused"], strings.Join(names, "`, `"))
	b.WriteString("| the registry | found in | outcome |\n| --- | --- | --- |\n")
	for i, behaviour := range behaviours {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", behaviour.Name, behaviour.Met, summary(names, outcomes[i]))
	}
	return b.String() + "\n"
}

// summary says what most commands do, and then which do something else.
func summary(names []string, row map[string]outcome) string {
	by := map[outcome][]string{}
	var kinds []outcome
	for _, name := range names {
		o := row[name]
		if by[o] == nil {
			kinds = append(kinds, o)
		}
		by[o] = append(by[o], "`"+name+"`")
	}
	slices.SortStableFunc(kinds, func(a, b outcome) int { return len(by[b]) - len(by[a]) })
	text := kinds[0].String()
	for _, kind := range kinds[1:] {
		text += "; " + strings.Join(by[kind], ", ") + ": " + kind.String()
	}
	return text
}

// unsigned is how errors say that a signature is missing. TestRegistriesUnsigned
// holds that it finds that.
var unsigned = regexp.MustCompile(`(?i)unsigned|not signed|no signature|nobody signed|without signature|no attestation|not attested`)

// TestRegistriesUnsigned: the words by which errors are searched are those that
// errors have.
func TestRegistriesUnsigned(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	commands := registryCommands()
	verify := commands[slices.IndexFunc(commands, func(c registryCommand) bool { return c.name == "verify" })]
	verify.stock = "one without signatures"
	r, err := s.try(t, verify, registrytest.Behaviour{})
	if err != nil || r.code != cli.Refused || len(r.errors) != 1 || !unsigned.MatchString(beforeRest(r.errors[0].Error)) {
		t.Errorf("exit code %d, %v:\n%s", r.code, err, r.errText)
	}
}

// beforeRest leaves out what an error says of the evidence that could be fetched.
func beforeRest(text string) string {
	text, _, _ = strings.Cut(text, "; with what could be fetched: ")
	return text
}

// secrets are what no message may have in it, and pieces of answers that say
// nothing to people.
var secrets = regexp.MustCompile(`(?i)X-Amz-Signature|scope=|return=secret|<html|<!DOCTYPE|invalid character|some-token|read-only-token|` + registrytest.Password)

// checkRefusal returns what is unclear about an error.
func checkRefusal(b registrytest.Behaviour, o outcome, r ran) error {
	if len(r.errors) != 1 {
		return fmt.Errorf("%d errors, want one", len(r.errors))
	}
	one := r.errors[0]
	switch {
	case one.Hint == "":
		return fmt.Errorf("no hint")
	case one.Code != o.code:
		return fmt.Errorf("code %d in the report, exit code %d", one.Code, o.code)
	case o.code == cli.Failed || o.code == cli.Usage:
		return fmt.Errorf("exit code %d, which is for other mistakes", o.code)
	case o.code == cli.Refused && !regexp.MustCompile("altered|longer than|shorter than|without end").MatchString(b.Name):
		return fmt.Errorf("exit code 3, which is for what a signer is missing of")
	case unsigned.MatchString(beforeRest(one.Error)):
		return fmt.Errorf("an error of the registry is taken for a missing signature")
	case !strings.Contains(one.Error, r.host) && !strings.Contains(one.Error, "registry.test"):
		return fmt.Errorf("the registry is not named")
	}
	return nil
}
