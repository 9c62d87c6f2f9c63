package settings

import (
	"fmt"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
)

// Hint returns `, did you mean "x"?` for the candidate nearest to word, or nothing where none is
// near.
func Hint(word string, candidates []string) string {
	if best := nearest.Name(word, candidates); best != "" {
		return fmt.Sprintf(", did you mean %q?", best)
	}
	return ""
}
