// Package nearest finds what a mistyped name was meant to be. It knows no names
// of its own.
package nearest

import (
	"slices"
	"strings"
)

// To returns up to n of the known names that are most like name, closest
// first; names that have little in common with it are left out.
func To(name string, known []string, n int) []string {
	type scored struct {
		name     string
		distance int
	}
	var candidates []scored
	for _, k := range slices.Compact(slices.Sorted(slices.Values(known))) {
		d := distance(strings.ToLower(name), strings.ToLower(k))
		if d <= max(len(name), len(k))/2 {
			candidates = append(candidates, scored{k, d})
		}
	}
	slices.SortStableFunc(candidates, func(a, b scored) int { return a.distance - b.distance })
	var nearest []string
	for _, c := range candidates[:min(n, len(candidates))] {
		nearest = append(nearest, c.name)
	}
	return nearest
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
