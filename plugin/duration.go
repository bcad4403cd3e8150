package plugin

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a length of time that is written with its unit, such as "15m".
// In JSON it is a string; a bare number is refused, since nobody can tell
// whether it means seconds or nanoseconds.
type Duration time.Duration

// UnmarshalJSON reads what time.ParseDuration reads.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf(`must be a string with a unit, such as "15m" or "90s", not %s`, raw)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`%q is no duration; write a number and a unit, such as "15m" or "90s"`, text)
	}
	*d = Duration(parsed)
	return nil
}

// MarshalJSON writes the form that UnmarshalJSON reads.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// String returns the form that UnmarshalJSON reads.
func (d Duration) String() string { return time.Duration(d).String() }
