package budget

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func limitOf(err error) string {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Limit
	}
	return ""
}

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.1:80": "10.0.0.1", "[::ffff:10.0.0.1]:80": "10.0.0.1", "[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64", "pipe": "pipe",
	} {
		if got := Address(in); got != want {
			t.Errorf("%s: %s, not %s", in, got, want)
		}
	}
}

// TestStreamsOfPeers: how many there may be, and how fast they may begin, by peer and in all.
func TestStreamsOfPeers(t *testing.T) {
	now := time.Unix(0, 0)
	p := NewPeers(Limits{Peer: Peer{Streams: 3}})
	var leases []*Lease
	for range 3 {
		l, wait, err := p.Begin("a", now)
		if err != nil || wait != 0 {
			t.Fatal(wait, err)
		}
		leases = append(leases, l)
	}
	if _, _, err := p.Begin("a", now); limitOf(err) != "maxStreamsPerPeer" {
		t.Error(err)
	}
	b, _, err := p.Begin("b", now)
	if err != nil {
		t.Error("another peer:", err)
	}
	if err := b.Become("a", now); limitOf(err) != "maxStreamsPerPeer" {
		t.Error(err)
	}
	leases[0].End()
	leases[0].End()
	if err := b.Become("a", now); err != nil {
		t.Error(err)
	}
	if u := p.Uses(); len(u) != 1 || u[0].Streams != 3 {
		t.Error(u)
	}
}

func TestNewStreams(t *testing.T) {
	now := time.Unix(0, 0)
	p := NewPeers(Limits{Peer: Peer{NewStreams: 2}, Total: Total{NewStreams: 3}})
	begin := func(peer string, times int, limit string) {
		t.Helper()
		for i := range times {
			l, wait, err := p.Begin(peer, now)
			if limitOf(err) != limit || wait > patience {
				t.Fatal(i, wait, err)
			}
			if l != nil {
				l.End()
			}
		}
	}
	begin("a", 20, "") // ten seconds' worth
	begin("a", 2, "")  // after half a second, and after one
	begin("a", 3, "maxNewStreamsPerPeer")
	begin("b", 11, "")
	begin("b", 3, "maxRequestsPerSecond") // what a was refused doesn't count
	now = now.Add(time.Minute)
	begin("a", 20, "")
}

// TestHold: equal things count once in a peer, whatever comes and goes.
func TestHold(t *testing.T) {
	now := time.Unix(0, 0)
	p := NewPeers(Limits{Peer: Peer{Names: 100, Bytes: 1000}})
	x, y := &struct{ int }{}, &struct{ int }{}
	a, _, _ := p.Begin("a", now)
	b, _, _ := p.Begin("a", now)
	hold := func(l *Lease, slot string, h Held, names int, limit string) {
		t.Helper()
		if err := l.Hold(slot, h); limitOf(err) != limit {
			t.Error(err)
		}
		if u := p.Uses(); u[0].Names != names {
			t.Error(u)
		}
	}
	hold(a, "eds", Held{Of: x, Names: 60, Bytes: 10}, 60, "")
	hold(a, "eds", Held{Of: x, Names: 60, Bytes: 10}, 60, "")
	hold(b, "eds", Held{Of: x, Names: 60, Bytes: 10}, 60, "")
	hold(b, "rds", Held{Of: y, Names: 40, Bytes: 10}, 100, "")
	hold(a, "rds", Held{Of: "z", Names: 1, Bytes: 10}, 101, "maxNamesPerPeer")
	hold(a, "rds", Held{}, 100, "")
	hold(a, "eds", Held{}, 100, "") // b still has it
	hold(b, "eds", Held{Of: "z", Names: 1, Bytes: 2000}, 41, "maxBytesPerPeer")
	if err := b.Become("spiffe://b", now); err != nil {
		t.Error(err)
	}
	a.End()
	if u := p.Uses(); len(u) != 1 || u[0].Peer != "spiffe://b" || u[0].Names != 41 || u[0].Bytes != 2010 {
		t.Error(u)
	}
	b.End()
	_ = b.Hold("eds", Held{Of: x, Names: 1, Bytes: 1}) // too late
	for _, e := range p.all {
		if len(e.lists)+e.names+e.bytes+e.streams != 0 {
			t.Errorf("%+v", e)
		}
	}
}

func TestRequests(t *testing.T) {
	now := time.Unix(0, 0)
	p := NewPeers(Limits{Stream: Stream{Requests: 1}, Peer: Peer{Requests: 1.5}})
	a, _, _ := p.Begin("a", now)
	b, _, _ := p.Begin("a", now)
	for range 10 {
		if wait, _ := a.Request(now); wait != 0 {
			t.Fatal(wait)
		}
	}
	if wait, limit := a.Request(now); wait != time.Second || limit != "maxRequestsPerStream" {
		t.Error(wait, limit)
	}
	for range 4 {
		if wait, _ := b.Request(now); wait != 0 {
			t.Fatal(wait)
		}
	}
	if wait, limit := b.Request(now); wait == 0 || limit != "maxRequestsPerPeer" {
		t.Error(wait, limit)
	}
	if wait, _ := b.Request(now.Add(time.Minute)); wait != 0 {
		t.Error(wait)
	}
}

func TestConnect(t *testing.T) {
	now := time.Unix(0, 0)
	p := NewPeers(Limits{Peer: Peer{Connections: 2}, Total: Total{Connections: 3}})
	for _, c := range []struct{ peer, limit string }{{"a", ""}, {"a", ""}, {"a", "maxConnectionsPerPeer"}, {"b", ""}, {"b", "maxConnections"}} {
		if err := p.Connect(c.peer, now); limitOf(err) != c.limit || Full(err) != (c.limit == "maxConnections") {
			t.Error(c, err)
		}
	}
	p.Disconnect("a")
	if err := p.Connect("b", now); err != nil {
		t.Error(err)
	}
}

// TestPeersAreForgotten: those that have gone leave nothing, once it makes no difference.
func TestPeersAreForgotten(t *testing.T) {
	now := time.Unix(0, 0)
	p := NewPeers(Defaults())
	stays, _, err := p.Begin("stays", now)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 * minSweep {
		now = now.Add(time.Second)
		l, _, err := p.Begin(fmt.Sprint(i), now)
		if err != nil {
			t.Fatal(err)
		}
		l.End()
	}
	if n := len(p.all); n > 2*minSweep {
		t.Error(n, "peers are remembered")
	}
	if p.all["stays"] != stays.peer {
		t.Error("one that has a stream was forgotten")
	}
}

func TestFiles(t *testing.T) {
	for limit, want := range map[int]int{0: 0, 64: 32, 128: 64, 256: 192, 1024: 768, 20_000: 19_488, 1 << 20: 1<<20 - 512} {
		if got := Files(limit); got != want {
			t.Errorf("%d: %d, not %d", limit, got, want)
		}
	}
	if err := CheckFiles(31, Files(64)); err != nil {
		t.Error(err)
	}
	if err := CheckFiles(32, Files(64)); limitOf(err) != "files" || !Full(err) {
		t.Error(err)
	}
	if err := CheckFiles(32, 0); err != nil {
		t.Error(err)
	}
}

// TestAsk: long lists of names that nobody has an answer for are asked for in parts; those who ask for what doesn't exist are refused in the end.
func TestAsk(t *testing.T) {
	now := time.Unix(0, 0)
	p := NewPeers(Limits{Stream: Stream{UnknownNames: 10}, Peer: Peer{UnknownNames: 25}})
	begin := func() *Lease {
		l, _, err := p.Begin("a", now)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	a, b, c := begin(), begin(), begin()
	ask := func(l *Lease, of string, absent, unanswered, want int, limit string) {
		t.Helper()
		got, err := l.Ask("eds", Held{Of: of, Names: 30, Absent: absent}, unanswered)
		if got != want || limitOf(err) != limit {
			t.Errorf("%d now, %v", got, err)
		}
	}
	ask(a, "x", 0, 30, 10, "")
	ask(a, "x", 0, 20, 10, "") // the first exist
	ask(b, "x", 0, 20, 10, "") // an equal list costs nothing more
	ask(c, "y", 0, 8, 8, "")
	ask(b, "z", 0, 20, 7, "") // of the 25, 18 are asked for
	ask(a, "x", 9, 11, 1, "")
	ask(a, "x", 10, 0, 0, "")
	ask(a, "x", 10, 10, 0, "maxUnknownNames")
	ask(c, "y", 8, 0, 0, "")
	ask(b, "z", 7, 13, 0, "maxUnknownNamesPerPeer")
	a.End()
	ask(b, "z", 7, 13, 3, "")
	b.End()
	c.End()
	if e := p.all["a"]; e.absent+e.asked+len(e.lists) != 0 {
		t.Errorf("%+v", e)
	}
}
