package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Microversion is a version of Nova's API within 2.x. The zero value is none.
type Microversion struct{ minor int }

// String returns it as Nova writes it, for example "2.52".
func (m Microversion) String() string { return "2." + strconv.Itoa(m.minor) }

// IsZero reports whether none was negotiated.
func (m Microversion) IsZero() bool { return m.minor == 0 }

// Bounds of what is asked for. Nova 2.52 (Pike) brought tags at creation,
// 2.67 (Stein) volume types, and 2.96 (2024.1) is the newest that this package
// was checked against: later ones may take fields away.
const (
	minorTags       = 52
	minorVolumeType = 67
	minorCeiling    = 96
)

// negotiate chooses the microversion: the newest that both sides know.
func (c *Client) negotiate(ctx context.Context, volumeType bool) error {
	need, why := minorTags, "server tags"
	if volumeType {
		need, why = minorVolumeType, "server.volume_type"
	}
	var document struct {
		Version struct {
			Version string `json:"version"`
			Status  string `json:"status"`
		} `json:"version"`
	}
	err := c.get(ctx, "read the version of the compute service", computeRoot, "", nil, &document)
	highest, parsed := parseMinor(document.Version.Version)
	var failed *Error
	switch {
	case errors.As(err, &failed) && (failed.Status == http.StatusNotFound || failed.Status == http.StatusMultipleChoices):
		// No version document, or one behind a proxy: ask for what is needed
		// and let Nova refuse it.
		highest = need
	case err != nil:
		return err
	case !parsed:
		return fmt.Errorf("%w: the compute service offers no microversions; %s need 2.%d (OpenStack Pike) at least", ErrUnsupported, why, need)
	}
	if highest < need {
		return fmt.Errorf("%w: the compute service offers microversion 2.%d at most, but %s need 2.%d",
			ErrUnsupported, highest, why, need)
	}
	c.microversion = Microversion{min(highest, minorCeiling)}
	return nil
}

func parseMinor(version string) (int, bool) {
	major, minor, ok := strings.Cut(version, ".")
	if !ok || major != "2" {
		return 0, false
	}
	n, err := strconv.Atoi(minor)
	return n, err == nil && n > 0
}
