package budget

import (
	"strings"
	"testing"
)

// TestShort: who is refused reads how much is used of how much.
func TestShort(t *testing.T) {
	if text := Short(3<<20, 5<<20).Error(); !strings.Contains(text, "it uses 3 MiB of memoryLimit, 5 MiB:") {
		t.Error(text)
	}
}
