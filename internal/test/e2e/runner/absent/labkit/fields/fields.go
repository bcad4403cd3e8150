// Package fields stands in for LabKit's: the names of two log fields, and none
// that are deprecated, so that the runner logs under the names that it always had.
package fields

// The names under which the runner logs a duration in seconds and an HTTP status.
const (
	DurationS      = "duration_s"
	HTTPStatusCode = "status"
)

// Deprecation names the field that takes a deprecated one's place.
type Deprecation struct{ Standard string }

// The fields that have, or are, another's successor: none.
var (
	Deprecated     = map[string]Deprecation{}
	VariantVersion = map[string]int{}
)
