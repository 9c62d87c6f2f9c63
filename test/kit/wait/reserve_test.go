package wait

import "testing"

func TestPortsAreGivenOnce(t *testing.T) {
	given := map[int]bool{}
	for range 500 {
		p := Port(t)
		if given[p] {
			t.Fatalf("port %d was given twice", p)
		}
		given[p] = true
	}
}
