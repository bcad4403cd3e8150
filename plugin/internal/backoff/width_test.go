package backoff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/backoff"
)

func TestWidth(t *testing.T) {
	t.Parallel()
	const widen, narrow, late = "widen", "narrow", "late"
	for name, row := range map[string]struct {
		start, most int
		outcomes    []string
		want        []int
	}{
		"grows one by one to its bound": {
			10, 12,
			[]string{widen, widen, widen},
			[]int{11, 12, 12},
		},
		"an explicit bound is never exceeded": {3, 3, []string{widen, widen}, []int{3, 3}},
		"halves down to one, and grows again": {
			10, 20,
			[]string{narrow, narrow, narrow, narrow, narrow, widen},
			[]int{5, 2, 1, 1, 1, 2},
		},
		"a round that fails narrows once, and what it took on widens nothing": {
			10, 20,
			[]string{narrow, late, late, widen},
			[]int{5, 5, 5, 6},
		},
		"never none": {0, 0, []string{widen}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			width := backoff.NewWidth(row.start, row.most)
			var got []int
			for _, outcome := range row.outcomes {
				switch outcome {
				case widen:
					width.Widen(width.Round())
				case narrow:
					width.Narrow(width.Round())
				case late:
					width.Narrow(width.Round() - 1)
					width.Widen(width.Round() - 1)
				}
				got = append(got, width.Limit())
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("widths (-want +got):\n%s", diff)
			}
		})
	}
}
