package nearest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/nearest"
)

func TestTo(t *testing.T) {
	t.Parallel()
	known := []string{"key", "policy", "platform", "output", "quiet"}
	for name, want := range map[string][]string{
		"kye": {"key"}, "keys": {"key"}, "ouptut": {"output"}, "plaform": {"platform"}, "KEY": {"key"}, "x": nil, "verbose": nil, "plo": nil,
	} {
		if diff := cmp.Diff(want, nearest.To(name, known, 1)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
