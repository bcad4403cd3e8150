package fleet

// State is what a group says of one of its servers.
type State string

// States, in the words of fleeting.
const (
	Creating      State = "creating"
	InUse         State = "running"
	BeingDeleted  State = "deleting"
	WasDeleted    State = "deleted"
	notReportable State = ""
)
