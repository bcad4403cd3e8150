package fleet_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// TestATimeoutSaysWhatWasMissing: that a server runs, but has no address, must
// not read like a slow build.
func TestATimeoutSaysWhatWasMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.add(fleet.Server{
			ID: "a", Name: "g-abcd1234", Owned: true, Phase: fleet.Building, Detail: "ACTIVE, without an address", Created: time.Now(),
		})
		var log bytes.Buffer
		set := settings(1)
		set.BuildTimeout = time.Minute
		group := fleet.New(set, c, slog.New(slog.NewTextHandler(&log, nil)), time.Now)
		report(t, group)
		<-time.After(2 * time.Minute)
		report(t, group)
		if !strings.Contains(log.String(), "without an address") {
			t.Errorf("log:\n%s", log.String())
		}
	})
}
