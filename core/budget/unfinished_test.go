package budget

import (
	"strings"
	"testing"
)

// TestUnfinished: what has come of messages counts until they are complete, of one peer and of all.
func TestUnfinished(t *testing.T) {
	u := NewUnfinished(Limits{Peer: Peer{Unfinished: 100}, Total: Total{Unfinished: 150}})
	for i, c := range []struct {
		peer  string
		bytes int
		all   bool
		want  string
	}{
		{"a", 100, false, ""}, {"a", 1, false, "maxUnfinishedBytesPerPeer"}, {"b", 40, false, ""},
		{"a", -1, false, ""}, {"b", 11, true, "maxUnfinishedBytes is 150"},
		{"a", -100, false, ""}, {"b", 49, false, ""}, {"b", -100, false, ""},
	} {
		u.Add(c.peer, c.bytes)
		all, err := u.Check(c.peer)
		if all != c.all || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: %v, %v", i, all, err)
		}
	}
	if u.total != 0 || len(u.peers) != 0 {
		t.Error("left:", u.total, u.peers)
	}
}

// TestWithin: a small process bounds them by itself, a large one not more than it is told to.
func TestWithin(t *testing.T) {
	d := Defaults()
	for _, c := range []struct {
		memory     uint64
		peer, most int
	}{
		{0, d.Peer.Unfinished, d.Total.Unfinished}, {1 << 40, d.Peer.Unfinished, d.Total.Unfinished},
		{64 << 20, 8 << 20, 16 << 20}, {1 << 20, 2 * d.Stream.RequestBytes, 2 * d.Stream.RequestBytes},
	} {
		if l := d.Within(c.memory); l.Peer.Unfinished != c.peer || l.Total.Unfinished != c.most {
			t.Errorf("%d: %d, %d", c.memory, l.Peer.Unfinished, l.Total.Unfinished)
		}
	}
}
