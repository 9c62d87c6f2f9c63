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
		"10.0.0.1:80": "10.0.0.1", "[::ffff:10.0.0.1]:80": "10.0.0.1", "[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80": "fe80::/64", "pipe": "pipe",
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
		if err := l.Hold(slot, h, now); limitOf(err) != limit {
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
	_ = b.Hold("eds", Held{Of: x, Names: 1, Bytes: 1}, now) // too late
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
	for limit, want := range map[int]int{0: 0, 128: 96, 1 << 20: 1<<20 - 256} {
		if got := FilesOfPages(limit); got != want {
			t.Errorf("%d: %d, want %d", limit, got, want)
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

// TestAsk: long lists of names that nobody has an answer for are asked for in parts; those who ask
// for what doesn't exist are refused in the end.
func TestAsk(t *testing.T) {
	now := time.Unix(0, 0)
	p := NewPeers(Limits{Stream: Stream{UnknownNames: 1000}, Peer: Peer{UnknownNames: 20_000}}) // at once: 200 by a stream, 500 by a peer, 2000 by all
	begin := func(peer string) *Lease {
		l, _, err := p.Begin(peer, now)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	ask := func(l *Lease, of string, absent, unanswered, want int, limit string) {
		t.Helper()
		got, err := l.Ask("eds", Held{Of: of, Absent: absent}, unanswered, absent == 0, now)
		if got != want || limitOf(err) != limit {
			t.Errorf("%d now, %v; want %d, %s", got, err, want, limit)
		}
	}
	a, b, c := begin("a"), begin("a"), begin("a")
	ask(a, "x", 0, 3000, 200, "")
	ask(a, "x", 0, 2800, 200, "") // the first exist
	ask(b, "x", 0, 2800, 200, "") // an equal list costs nothing more
	ask(c, "y", 0, 2800, 200, "")
	ask(b, "z", 0, 2800, 100, "") // of the 500 400 are asked for
	d := begin("a")
	ask(d, "zz", 0, 2800, 50, "") // a few always go: perhaps they are known
	ask(d, "zz", 1, 2799, 0, "")
	ask(a, "x", 900, 2000, 100, "")
	ask(a, "x", 1000, 0, 0, "")
	ask(a, "x", 1000, 1, 0, "maxUnknownNames")
	for _, l := range []*Lease{a, b, c, d} {
		l.End()
	}
	if e := p.all["a"]; e.absent+e.asked+len(e.lists)+p.total.asked != 0 {
		t.Errorf("%+v", e)
	}
}

// TestAskInVain: who finds out again and again that names don't exist may do so ever more slowly;
// who asks for what exists is not slowed down.
func TestAskInVain(t *testing.T) {
	now := time.Unix(0, 0)
	p := NewPeers(Limits{Stream: Stream{UnknownNames: 1000}, Peer: Peer{UnknownNames: 20_000}})
	use := func(peer string, absent bool, seconds int) (asked int) {
		for end := now.Add(time.Duration(seconds) * time.Second); now.Before(end); now = now.Add(20 * time.Millisecond) {
			l, _, err := p.Begin(peer, now)
			if err != nil {
				t.Fatal(err)
			}
			h := Held{Of: now}
			n, err := l.Ask("eds", h, 2000, true, now)
			if err != nil {
				t.Fatal(err)
			}
			if asked += n; absent {
				h.Absent = n
			}
			if _, err := l.Ask("eds", h, 0, false, now); err != nil {
				t.Fatal(err)
			}
			l.End()
		}
		return asked
	}
	if n := use("vain", true, 100); n < 30_000 || n > 45_000 { // 20,000 and 200 a second
		t.Errorf("%d names", n)
	}
	if n := use("right", false, 100); n != 200*50*100 {
		t.Errorf("%d names", n)
	}
}

// TestNewLists: who brings ever new lists waits; equal ones cost nothing.
func TestNewLists(t *testing.T) {
	now := time.Unix(0, 0)
	p := NewPeers(Limits{Peer: Peer{Names: 2000}}) // 1000 of new lists at once, and 10 a second
	a, _, _ := p.Begin("a", now)
	b, _, _ := p.Begin("a", now)
	hold := func(l *Lease, of string, names int, want time.Duration) {
		t.Helper()
		if err := l.Hold("eds", Held{Of: of, Names: names}, now); err != nil {
			t.Error(err)
		}
		if wait, limit := l.Request(now); wait != want || (limit != "") != (want > 0) {
			t.Error(wait, limit)
		}
	}
	hold(a, "x", 900, 0)
	hold(b, "x", 900, 0)
	hold(a, "y", 200, 10*time.Second)
	now = now.Add(time.Minute)
	hold(a, "z", 100, 0)
}
