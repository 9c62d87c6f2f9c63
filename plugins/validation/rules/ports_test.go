package rules

import "testing"

func TestBoundsOfPorts(t *testing.T) {
	for number, want := range map[uint32]bool{0: false, 1: true, 80: true, 65535: true, 65536: false, 4294967295: false} {
		var c checker
		c.port("port.number", number)
		if got := len(c.found) == 0; got != want {
			t.Errorf("port %d is taken: %v", number, got)
		}
	}
}
