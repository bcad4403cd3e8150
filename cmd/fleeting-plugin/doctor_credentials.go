package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/access"
)

// checkCredentials says as whom the registries of the plugins would be asked.
// It asks none of them: `login` tries what it stores.
func (d *doctor) checkCredentials(ctx context.Context, plugins []installer.ConfigPlugin) {
	opts, err := d.registry.Options()
	if err != nil {
		d.add("credentials", "problem", err.Error(), d.app.HintOf(err))
		return
	}
	for _, name := range d.registry.CredentialFiles() {
		d.checkCredentialFile(name)
	}
	asked := map[string]bool{}
	for _, ref := range installer.References(plugins) {
		host := ref.Registry()
		found, err := opts.CredentialStore.Get(ctx, ref.Name())
		// Repositories of one registry differ only where somebody says so.
		told := host + " " + found.Username
		if host == "" || asked[told] {
			continue
		}
		asked[told] = true
		switch {
		case err != nil:
			d.add("credentials", "problem", fmt.Sprintf("%s: %v", host, err), cmp.Or(d.app.HintOf(err), "fleeting-plugin login "+host))
		case found.IsZero():
			d.add("credentials", "ok", host+": none, so it is asked anonymously", "")
		case found.Username == "":
			d.add("credentials", "ok", host+": a token", "")
		default:
			d.add("credentials", "ok", host+": as "+found.Username, "")
		}
	}
}

// checkCredentialFile finds passwords that others may read.
func (d *doctor) checkCredentialFile(name string) {
	others, err := access.Of(name)
	if err != nil {
		return
	}
	// It also names credential helpers, which are programs that are run.
	d.guard("credentials", name, name)
	if others.Read != "" {
		d.add("credentials", "warning", fmt.Sprintf("others may read %s: %s", name, others.Read), onlyOwn(name, "chmod 600"))
	}
}
