package host

import (
	"errors"
	"testing"
)

// TestGroupsThatCantBe: where there can be no control groups the first plugin hears why, and the next that it was said.
func TestGroupsThatCantBe(t *testing.T) {
	tree, failed := ownTree()
	if failed == nil {
		tree.Close()
		t.Skip("here there are groups; core/host/cgroup tries them")
	}
	var g groups
	defer g.close()
	if made, err := g.make("a", 0); made != nil || err == nil || err.Error() != failed.Error() {
		t.Errorf("%v, %v; not %v", made, err, failed)
	}
	if made, err := g.make("b", 0); made != nil || !errors.Is(err, errSaid) {
		t.Errorf("%v, %v", made, err)
	}
}
