package guard

import (
	"fmt"
	"strings"
	"testing"
)

// TestLossesAreToldInFewLines: however many proxies each lose something of their own, the greatest
// come first.
func TestLossesAreToldInFewLines(t *testing.T) {
	var all []*Loss[*proxy]
	for i := range 500 {
		all = append(all,
			&Loss[*proxy]{taken: taken{trade: trade{typeURL: typeC}, label: fmt.Sprint("view-", i), before: i + 1, lost: i + 1}, conns: []*proxy{{}}})
	}
	lines := Told(all)
	if len(lines) != Examples+1 || !strings.Contains(lines[0], "500 of 500") || lines[Examples] != "and 490 more such losses" {
		t.Errorf("told are %q", lines)
	}
}
