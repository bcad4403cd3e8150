package installer

import (
	"errors"
	"strings"
	"testing"
)

// TestLongPath: the limit is in units of UTF-16, as Windows counts.
func TestLongPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]error{
		`C:\` + strings.Repeat("a", 256): nil, `C:\` + strings.Repeat("a", 257): errLongPath,
		`C:\` + strings.Repeat("ü", 256): nil, `C:\` + strings.Repeat("😀", 128): nil, `C:\` + strings.Repeat("😀", 129): errLongPath,
	} {
		if err := shortEnough(path); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v; want %v", len(path), err, want)
		}
	}
}
