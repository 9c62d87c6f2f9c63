package host

import (
	"errors"
	"strings"
	"testing"
)

// TestWhyGroupsCantBe: what control groups can't do here is said of the first plugin, and not
// again.
func TestWhyGroupsCantBe(t *testing.T) {
	tree, why := ownTree()
	if why == nil {
		why = tree.Undivided()
		tree.Close()
	}
	var g groups
	defer g.close()
	made, err := g.make("coxswain-test-first", 0)
	if made != nil {
		defer made.Remove()
	}
	if errors.Is(err, errSaid) || why != nil && (err == nil || !strings.Contains(err.Error(), why.Error())) {
		t.Errorf("the first time it says %v, not %v", err, why)
	}
	again, err := g.make("coxswain-test-second", 0)
	if again != nil {
		defer again.Remove()
	}
	if !errors.Is(err, errSaid) {
		t.Errorf("the second time it says %v", err)
	}
}
