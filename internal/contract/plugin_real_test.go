//go:build contract

package contract

import (
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// TestPluginOnReal scales the plugin from 1 to 20 and to 0 servers on the real
// services.
func TestPluginOnReal(t *testing.T) {
	scale(t, realCloud(t), plugin.New(), labPath(t), "lab-appcred")
}
