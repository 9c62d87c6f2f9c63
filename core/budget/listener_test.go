package budget

import "testing"

// TestPlaces: connections over the bound find no place, all together and those of one address;
// nothing is remembered of who has left.
func TestPlaces(t *testing.T) {
	p := newPlaced(nil, Places{Most: 4, OfAddress: 2, Local: true})
	const a, b, here = "10.0.0.1:1", "10.0.0.2:1", "127.0.0.1:1"
	first, second := p.enter(a), p.enter(a)
	if !first || !second || p.enter(a) {
		t.Error("of one address")
	}
	if !p.enter(b) || !p.enter(here) || p.enter(here) || p.enter(b) {
		t.Error("of all")
	}
	p.leave(a)
	if !p.enter(here) || p.enter(here) {
		t.Error("a place that became free")
	}
	for _, remote := range []string{a, b, here, here} {
		p.leave(remote)
	}
	if p.all != 0 || len(p.by) != 0 {
		t.Errorf("left: %d, %v", p.all, p.by)
	}
}

// TestPlacesOfLoopback: where loopback counts as any address it has no more places; a network of
// IPv6 is one address.
func TestPlacesOfLoopback(t *testing.T) {
	p := newPlaced(nil, Places{Most: 100, OfAddress: 1})
	if !p.enter("127.0.0.1:1") || p.enter("127.0.0.1:2") || !p.enter("127.0.0.2:1") {
		t.Error("loopback")
	}
	if !p.enter("[2001:db8::1]:1") || p.enter("[2001:db8::2]:1") || !p.enter("[2001:db8:0:1::1]:1") {
		t.Error("networks of IPv6")
	}
}
