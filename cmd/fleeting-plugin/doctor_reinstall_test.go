package main

import (
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	pluginversion "github.com/radome-io/fleeting-plugin-openstack/installer/version"
)

// TestReinstallNamesTheName holds that the command that doctor prints installs
// the version that is there, under the name that is there.
func TestReinstallNamesTheName(t *testing.T) {
	t.Parallel()
	ref, err := installer.ParseReference("127.0.0.1:5000/team/plugin:1.2")
	if err != nil {
		t.Fatal(err)
	}
	installed, err := pluginversion.Parse("1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"registry.example.com/team/plugin": "fleeting-plugin install --reinstall --as registry.example.com/team/plugin 127.0.0.1:5000/team/plugin:1.2.3",
		ref.Name():                         "fleeting-plugin install --reinstall 127.0.0.1:5000/team/plugin:1.2.3",
	} {
		if got := reinstall(installer.Receipt{Name: name, Reference: ref, Version: installed}); got != want {
			t.Errorf("got %s; want %s", got, want)
		}
	}
}
