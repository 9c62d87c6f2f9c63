// Package nearest finds the right name that somebody may have meant by a wrong one. It imports
// little, so that modules may use it.
package nearest

import (
	"slices"
	"strconv"
	"strings"
)

// Suggest ends a message about a wrong name: with the nearest right one, or with all where they are
// few.
func Suggest(wrong string, right []string) string {
	if best := Name(wrong, right); best != "" {
		return "; did you mean " + strconv.Quote(best) + "?"
	}
	const few = 12
	if len(right) == 0 || len(right) > few {
		return ""
	}
	sorted := slices.Sorted(slices.Values(right))
	return "; known are " + strings.Join(sorted, ", ")
}

// Name returns the right name that is most like a wrong one, empty where none is like it.
func Name(wrong string, right []string) string {
	best, least := "", max(1, min(len(wrong)/3, 4))+1
	for _, name := range right {
		if d := distance(strings.ToLower(wrong), strings.ToLower(name)); d < least && d < max(len(wrong), len(name)) { // some letter is right
			best, least = name, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their neighbour.
func distance(a, b string) int {
	const longest = 100
	if len(a) > longest || len(b) > longest {
		return longest
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
