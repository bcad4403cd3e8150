//go:build contract

package contract

import (
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// TestPluginOnReal scales the plugin from 1 to 20 and to 0 servers on the real
// services.
func TestPluginOnReal(t *testing.T) {
	path := labPath(t, labFolder())
	scale(t, realCloud(t, path), plugin.New(), path, "lab-appcred")
}

// TestPluginWithAQuotaOfTwoOnReal has the plugin serve 15 jobs with the quota of two
// servers that the project tiny has.
func TestPluginWithAQuotaOfTwoOnReal(t *testing.T) {
	path := labPath(t, labFolder())
	serveJobs(t, realCloud(t, path), plugin.New(), path, "lab-tiny")
}
