package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/access"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// newPolicyCmd groups the commands about the policy.
func newPolicyCmd(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Write and check the policy: whose plugins may be installed",
	}
	cmd.AddCommand(newPolicyInitCmd(app), newPolicyCheckCmd(app))
	return cmd
}

// newPolicyInitCmd writes a policy to start from.
func newPolicyInitCmd(app *cli.App) *cobra.Command {
	var scopes []string
	var key, identity, issuer, signatures string
	cmd := &cobra.Command{
		Use:        "init [FILE]",
		Short:      "Write a policy to start from",
		SuggestFor: []string{"new", "create", "add"},
		Long: `Write a policy file, with a rule for each --scope if a signer is given. An existing
file is never overwritten.`,
		Example: `  fleeting-plugin policy init
  fleeting-plugin policy init --scope 'registry.example.com/team/**' --signed-by-key cosign.pub`,
		Args: cli.Args(0, 1),
	}
	flags := &policyFlags{app: app} // for the place of the file
	cmd.Flags().StringVar(&flags.file, "policy", "", "`FILE` to write, in place of the argument (default where commands look for it)")
	mapInstallerErrors(app)
	cmd.Flags().StringArrayVar(&scopes, "scope", nil, "`SCOPE` of a rule, a registry with repositories; * and a last ** are wildcards (repeatable)")
	cmd.Flags().StringVar(&key, "signed-by-key", "", "`FILE` with the publisher's public key")
	cmd.Flags().StringVar(&identity, "signed-by-identity", "", "`IDENTITY` of a publisher who signs without a key")
	cmd.Flags().StringVar(&issuer, "issuer", "", "`URL` of the issuer of --signed-by-identity")
	addSignatureRepository(cmd.Flags(), &signatures, "`REPOSITORY` in which the publisher keeps signatures, if not beside the plugins")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		name, _ := flags.path()
		if len(args) == 1 {
			if flags.file != "" {
				return cli.Usagef("either FILE or --policy")
			}
			name = args[0]
		}
		if name == "" {
			return cli.Usagef("no place for the policy: name a FILE")
		}
		content, err := startingPolicy(scopes, key, identity, issuer, signatures)
		if err != nil {
			return err
		}
		if _, err := installer.ParsePolicy([]byte(content), installer.FilesBeside(name)); err != nil {
			return cli.Hint(err, "correct the flags; nothing was written")
		}
		if err := writeNew(name, content); err != nil {
			return err
		}
		return app.Print(map[string]string{"file": name}, func(p *cli.Page) {
			p.Printf("wrote %s\n", name)
		})
	}
	return cmd
}

func startingPolicy(scopes []string, key, identity, issuer, signatures string) (string, error) {
	var b strings.Builder
	b.WriteString(`# Whose plugins fleeting-plugin may install. Plugins that no rule matches are refused.
# See https://github.com/radome-io/fleeting-plugin-openstack/blob/main/docs/reference/policy.md
version = 1

# The makers of fleeting-plugin are trusted for what they publish beneath
# ghcr.io/radome-io. Uncomment to change that.
# built-in-publisher = false
`)
	if len(scopes) == 0 && key == "" && identity == "" && signatures == "" {
		b.WriteString(`
# [[rule]]
# scope = "registry.example.com/team/**"
#
# [[rule.key]]
# file = "cosign.pub"
`)
		return b.String(), nil
	}
	if len(scopes) == 0 || (key == "") == (identity == "") || (identity == "") != (issuer == "") {
		return "", cli.Usagef("a rule needs --scope and either --signed-by-key or --signed-by-identity with --issuer")
	}
	signer, err := startingSigner(key, identity, issuer)
	if err != nil {
		return "", err
	}
	place := ""
	if signatures != "" {
		place = fmt.Sprintf("signature-repository = %s\n", strconv.Quote(signatures))
	}
	for _, scope := range scopes {
		fmt.Fprintf(&b, "\n[[rule]]\nscope = %s\n%s%s", strconv.Quote(scope), place, signer)
	}
	return b.String(), nil
}

func startingSigner(key, identity, issuer string) (string, error) {
	if key != "" {
		pem, err := readInput(key, nextKey)
		return fmt.Sprintf("\n[[rule.key]]\npem = '''\n%s'''\n", pem), err
	}
	subject := "subject"
	if strings.HasPrefix(identity, "^") {
		subject = "subject-pattern"
	}
	return fmt.Sprintf("\n[[rule.identity]]\nissuer = %s\n%s = %s\n", strconv.Quote(issuer), subject, literal(identity)), nil
}

// literal is a TOML string without escapes where it can be: patterns are full of
// backslashes.
func literal(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r == '\'' || r < ' ' || r == 0x7f }) {
		return strconv.Quote(s)
	}
	return "'" + s + "'"
}

// writeNew writes a file that must not exist yet.
func writeNew(name, content string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // the runner, another user, reads it
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // public keys and names, read by the runner too
	if errors.Is(err, fs.ErrExist) {
		return cli.Hint(cli.WithCode(err, cli.Usage), "edit it, or name another FILE")
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, content)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// newPolicyCheckCmd reads a policy and says what it means.
func newPolicyCheckCmd(app *cli.App) *cobra.Command {
	var refs []string
	cmd := &cobra.Command{
		Use:        "check [FILE]",
		Short:      "Check a policy and explain its rules",
		SuggestFor: []string{"show", "list", "test", "validate", "verify", "explain", "lint"},
		Long: `Check a policy as install does, and show its rules, the most specific first. With
--for, show every rule that matches a reference, which of them decides, and why.
Warn of other users who may write the policy, its keys and trusted roots, or a
folder above them.`,
		Example: `  fleeting-plugin policy check
  fleeting-plugin policy check policy.toml --for registry.example.com/team/plugin`,
		Args: cli.Args(0, 1),
	}
	flags := newPolicyFlags(app, cmd)
	mapInstallerErrors(app)
	cmd.Flags().StringArrayVar(&refs, "for", nil, "`REF` to find the rule for (repeatable)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			flags.file = args[0]
		}
		policy, err := flags.policy()
		if errors.Is(err, installer.Reason("policy")) {
			return cli.Hint(err, "correct it: docs/reference/policy.md has every key; files are sought beside the policy")
		}
		if err != nil {
			return err
		}
		sayOrigin(app, flags)
		if err := warnWriters(app, flags.anchors); err != nil {
			return err
		}
		if len(refs) > 0 {
			return flags.explain(printMatches(cmd, app, policy, refs))
		}
		rules := policy.Rules()
		warnLax(app, rules)
		return app.Print(rules, func(p *cli.Page) { writeRules(p, rules) })
	}
	return cmd
}

// warnWriters warns of who else may change what decides about trust.
func warnWriters(app *cli.App, anchors []string) error {
	told := map[string]bool{}
	for _, anchor := range anchors {
		writers, err := access.Way(anchor)
		if err != nil {
			return err
		}
		for _, w := range writers {
			if !told[w.Path] {
				told[w.Path] = true
				app.Warnf("%s may write %s, and so change %s", w.Who, w.Path, anchor)
			}
		}
	}
	return nil
}

// sayOrigin says which policy this is.
func sayOrigin(app *cli.App, flags *policyFlags) {
	switch {
	case flags.read != "":
		app.Statusf("read %s", flags.read)
	case flags.missing != "":
		app.Statusf("no policy file at %s; only the built-in rule", flags.missing)
	}
}

// warnLax tells of rules that verify less than they seem to.
func warnLax(app *cli.App, rules []installer.RuleSummary) {
	for _, r := range rules {
		if trustsClaims(r) {
			app.Warnf("the rule for %s accepts provenance that a key signed: the holder of the key can write any builder and source; %s", r.Scope, nextClaims)
		}
		if r.Unsafe && strings.Contains(r.Scope, "*") {
			app.Warnf("the rule for %s verifies nothing and matches more than one plugin", r.Scope)
		}
		for _, scope := range r.YieldsTo {
			app.Warnf("the rules for %s and %s overlap, and neither is narrower: for names that match both, %s decides", r.Scope, scope, scope)
		}
	}
}

// nextClaims is what to do about a rule that trusts claims.
const nextClaims = "use [[rule.identity]], whose certificate names the workflow and the repository"

// trustsClaims says that a rule asks for a provenance that a key may sign. A key
// certifies no builder and no source: whoever has it writes what they like, from
// wherever they are.
func trustsClaims(r installer.RuleSummary) bool {
	return slices.ContainsFunc(r.Signers, func(s string) bool { return strings.HasPrefix(s, "key ") }) &&
		slices.ContainsFunc(r.Attestations, func(a installer.AttestationSummary) bool {
			return slices.Contains(a.Types, packager.PredicateProvenance)
		})
}

// writeRules writes one rule beneath the other: a table of identities would be
// wider than any screen.
func writeRules(p *cli.Page, rules []installer.RuleSummary) {
	for n, r := range rules {
		if n > 0 {
			p.Print("\n")
		}
		p.Printf("%s\n", r.Scope)
		writeRule(p, r)
	}
}

// writeRule writes what a rule asks for.
func writeRule(p *cli.Page, r installer.RuleSummary) {
	p.Field(15, "  needs", needs(r))
	for _, signer := range r.Signers {
		// An identity is long, and ends in "from ISSUER".
		who, issuer, keyless := strings.Cut(signer, " from ")
		p.Field(15, "  signer", who)
		if keyless {
			p.Field(15, "", "from "+issuer)
		}
	}
	for _, attestation := range r.Attestations {
		writeAttestation(p, attestation)
	}
	if r.MinimumAge != "" {
		p.Field(15, "  minimum age", r.MinimumAge)
	}
	for _, denied := range r.DeniedVersions {
		p.Field(15, "  denied", "versions "+denied)
	}
	if r.SignatureRepository != "" {
		p.Field(15, "  signatures", "in "+r.SignatureRepository)
	}
	for _, denied := range r.DeniedDigests {
		p.Field(15, "  denied", denied.String())
	}
}

func writeAttestation(p *cli.Page, a installer.AttestationSummary) {
	p.Field(15, "  attestation", strings.Join(a.Types, " or "))
	for _, condition := range []struct{ word, value string }{
		{"built by", a.Builder}, {"from", a.SourceRepository}, {"at", a.SourceRef},
	} {
		if condition.value != "" {
			p.Field(15, "", condition.word+" "+condition.value)
		}
	}
}

// match is a rule that matches a reference.
type match struct {
	For installer.Reference `json:"for"`
	installer.RuleMatch
}

// printMatches shows every rule that matches the references.
func printMatches(cmd *cobra.Command, app *cli.App, policy installer.Policy, texts []string) error {
	refs, err := parseReferences(texts)
	if err != nil {
		return err
	}
	var all []match
	err = each(cmd.Context(), refs, func(ref installer.Reference) error {
		rules, err := policy.Matches(ref)
		for _, rule := range rules {
			all = append(all, match{ref, rule})
		}
		return err
	})
	if err != nil {
		return err
	}
	var deciding []installer.RuleSummary
	for _, m := range all {
		if m.Decides {
			deciding = append(deciding, m.RuleSummary)
		}
	}
	warnLax(app, deciding)
	return app.Print(all, func(p *cli.Page) { writeMatches(p, all) })
}

func writeMatches(p *cli.Page, all []match) {
	for _, m := range all {
		if !m.Decides {
			p.Field(15, "  also matches", m.Scope+": "+m.Why)
			continue
		}
		p.Printf("%s\n", m.For)
		p.Field(15, "  decided by", m.Scope+": "+m.Why)
		writeRule(p, m.RuleSummary)
	}
}

func needs(r installer.RuleSummary) string {
	switch {
	case r.Unsafe:
		return "NOTHING (insecure-unsigned): anyone who controls the registry controls what is installed"
	case r.Threshold == 0:
		return "attestations"
	case r.Threshold == 1:
		return "1 signature"
	}
	return strconv.Itoa(r.Threshold) + " signatures"
}
