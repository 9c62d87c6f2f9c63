package e2e

import "testing"

// TestStreamsComeAndGo: each stream is the only one in its views, so that the core drops them while
// the generator places the next stream.
func TestStreamsComeAndGo(t *testing.T) {
	g := newGuarded(t)
	for range 200 {
		s, _, err := g.open("")
		if err != nil {
			t.Fatal(err)
		}
		_ = s.CloseSend()
	}
	if p := g.Plugins(t)["edge"]; p.Restarts > 0 {
		t.Error(p.LastError)
	}
}
