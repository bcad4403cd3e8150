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

// distance is Levenshtein's, in bytes, with two neighbours exchanged as one step.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
