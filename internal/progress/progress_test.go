package progress_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/progress"
)

func TestReader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size, total int64
		want        int64 // the last that is told, 0 for nothing
		least       int
	}{
		"small":         {10, 10, 10, 1},
		"large":         {1<<20 + 1, 1<<20 + 1, 1<<20 + 1, 5},
		"empty":         {0, 0, 0, 0},
		"cut off":       {10, 20, 0, 0},
		"of wrong size": {1 << 20, 10, 1 << 20, 4},
	} {
		var told []int64
		content := strings.NewReader(strings.Repeat("x", int(c.size)))
		r := progress.ReadCloser(io.NopCloser(content), c.total, func(done int64) { told = append(told, done) })
		if n, err := io.Copy(io.Discard, r); n != c.size || err != nil {
			t.Errorf("%s: read %d, %v", name, n, err)
		}
		if len(told) < c.least || c.want == 0 && len(told) > 0 || c.want > 0 && told[len(told)-1] != c.want || !slices.IsSorted(told) {
			t.Errorf("%s: told %v", name, told)
		}
	}
}
