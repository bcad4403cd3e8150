package plugin

import (
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// phaseOf maps Nova's status and task state to what a group does about it. The
// task state comes first: while Nova deletes a server its status stays what it
// was.
func phaseOf(status, taskState, fault string) fleet.Phase {
	switch taskState {
	case "deleting", "soft-deleting":
		return fleet.Deleting
	}
	switch status {
	case "BUILD":
		return fleet.Building
	case "ACTIVE", "PASSWORD", "MIGRATING", "RESIZE", "VERIFY_RESIZE", "REVERT_RESIZE":
		return fleet.Running
	case "SOFT_DELETED":
		return fleet.Kept
	case "DELETED":
		return fleet.Gone
	case "ERROR":
		return errorPhase(fault)
	case "SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED", "SHELVED_OFFLOADED", "RESCUE":
		return fleet.Broken
	default:
		// UNKNOWN is what a cell that is down gives; a status that this
		// version does not know says nothing either. A server in REBOOT,
		// HARD_REBOOT or REBUILD comes back, or stays there for ever.
		return fleet.Unknown
	}
}

// errorPhase waits a moment before it gives up a server that its host lost:
// an evacuation or a migration may bring it back.
func errorPhase(fault string) fleet.Phase {
	text := strings.ToLower(fault)
	if strings.Contains(text, "evacuat") || strings.Contains(text, "migrat") {
		return fleet.Suspect
	}
	return fleet.Broken
}

// detailOf says why a server is not usable, in Nova's words.
func detailOf(s cloud.Server) string {
	detail := s.Status
	if s.TaskState != "" {
		detail += " (" + s.TaskState + ")"
	}
	if s.Fault != "" {
		detail += ": " + strings.TrimSpace(s.Fault)
	}
	return detail
}
