package main

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// verifiersFlags are flags of cosign and gh that people paste, and what has their
// place here.
func verifiersFlags() map[string]string {
	const (
		identity = "--certificate-identity, with --certificate-oidc-issuer"
		pattern  = "--certificate-identity takes a pattern, too, if it begins with ^ and ends with $: it must match the whole identity"
		issuer   = "--certificate-oidc-issuer, in full; several issuers are several identities in a policy"
		offline  = "omit it: log proofs come with the signature, and no log is contacted"
		source   = "in a policy: source-repository and source-ref of [[rule.identity]]"
	)
	return map[string]string{
		"cert-identity": identity, "identity": identity, "certificate-identity-regexp": pattern, "cert-identity-regex": pattern,
		"cert-oidc-issuer": issuer, "issuer": issuer, "oidc-issuer": issuer, "certificate-oidc-issuer-regexp": issuer,
		"owner": source, "repo": source, "signer-repo": source, "source-ref": source,
		"certificate-github-workflow-repository": source, "certificate-github-workflow-ref": source,
		"insecure-ignore-sct":     "in a policy, for a sigstore instance of your own: insecure-no-sct of [[rule.identity]]",
		"insecure-ignore-tlog":    "omit it for a key; for an identity with a timestamp: timestamp-suffices of [[rule.identity]] in a policy",
		"use-signed-timestamps":   "in a policy: timestamp-suffices of [[rule.identity]], or require-timestamp of [[rule.key]]",
		"private-infrastructure":  offline,
		"offline":                 offline,
		"rekor-url":               "--trusted-root: it names the log, and no log is contacted",
		"allow-http-registry":     "--insecure-plain-http HOST[:PORT]",
		"allow-insecure-registry": "--insecure-plain-http HOST[:PORT], or --ca-file for an authority of its own",
		"bundle":                  "for a file and its bundle: fleeting-plugin verify-files FILE --bundle BUNDLE; those of a published plugin are found automatically",
		"new-bundle-format":       "omit it: signatures are found in every form",
	}
}

// absolute is a name that can be pasted elsewhere.
func absolute(name string) string {
	if whole, err := filepath.Abs(name); err == nil {
		return whole
	}
	return name
}

// rule says which rule decided: the flags that made it, or its scope.
func (p *policyFlags) rule(scope string) string {
	switch {
	case len(p.keys) > 0:
		return "--key " + strings.Join(p.keys, " --key ")
	case p.identity != "":
		return "--certificate-identity " + p.identity
	}
	return scope
}

// explain says what to do about a plugin that no rule is about, in a way that
// can be done as it stands.
func (p *policyFlags) explain(err error) error {
	if all := cli.Apart(err); len(all) > 1 {
		for n, one := range all {
			all[n] = p.explain(one)
		}
		return errors.Join(all...)
	}
	missing, ok := errors.AsType[*installer.NoRuleError](err)
	if !ok {
		return err
	}
	next := "if you trust its publisher, once: --key cosign.pub\nor from now on: "
	if p.read != "" {
		next += "add to " + p.read + ":\n\n" + missing.Suggestion()
	} else {
		next += "fleeting-plugin policy init --scope " + missing.Name + " --signed-by-key cosign.pub"
	}
	if ref, invalid := installer.ParseReference(missing.Name); invalid == nil && errors.Is(err, installer.Reason("name")) {
		next = asName(ref) + "\nand: " + next
	}
	return cli.Hint(err, next)
}
