package main

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

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
	if ref, invalid := installer.ParseReference(missing.Name); invalid == nil && errors.Is(err, installer.ErrName) {
		next = asName(ref) + "\nand: " + next
	}
	return cli.Hint(err, next)
}
