package plugin

import (
	"errors"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// TestARefusedCreationIsNotAboutAServer: a conflict over a network says
// nothing of a locked server, in the log neither.
func TestARefusedCreationIsNotAboutAServer(t *testing.T) {
	t.Parallel()
	for _, kind := range []error{cloud.ErrConflict, cloud.ErrNotFound} {
		err := createError(&cloud.Error{Op: "create server g-1", Kind: kind, Message: "Multiple possible networks found"})
		if errors.Is(err, fleet.ErrLocked) || errors.Is(err, fleet.ErrGone) || strings.Contains(err.Error(), "locked") {
			t.Errorf("got %v", err)
		}
	}
	if err := createError(&cloud.Error{Kind: cloud.ErrTransient, Doubtful: true}); !errors.Is(err, fleet.ErrDoubtful) {
		t.Errorf("got %v, want ErrDoubtful", err)
	}
}
