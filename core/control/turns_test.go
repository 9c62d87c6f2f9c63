package control

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// from connects a proxy from an address.
func (b *bench) from(address, id string) *stream {
	b.t.Helper()
	s := &stream{t: b.t}
	conn, err := b.Connect(b.t.Context(), xds.Peer{Node: &corev3.Node{Id: id}, RemoteAddress: address}, func(xds.Wake) { s.woken = true })
	if err != nil {
		b.t.Fatal(err)
	}
	s.Connection = conn
	b.t.Cleanup(conn.Close)
	return s
}

// placed puts a proxy into a view of typeB.
func (w *world) placed(s *stream, view uint64) {
	w.t.Helper()
	s.Subscribe(typeB, false, []string{"seed"})
	w.g.take()
	w.g.send(describe(typeB, view), place(s.ID(), typeB, view, w.at))
	for _, m := range w.g.take() {
		if m.Want != nil {
			w.g.send(wanted(m.Want.Id, w.at))
		}
	}
}

func unknown(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("unknown-%06d", i)
	}
	return names
}

// However many new names one client asks for, the generator has few of them in hand: an edit goes
// before the rest, and so does what others ask for.
func TestNamesOfOneDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stranger, other := w.from("127.0.0.9:1", "stranger"), w.from("127.0.0.10:1", "other")
		w.placed(stranger, 7)
		w.placed(other, 8)
		const all = 100_000
		stranger.Subscribe(typeB, false, unknown(all))
		for i := range 50 { // and from connections beside it
			s := w.from(fmt.Sprintf("127.0.0.9:%d", i+2), fmt.Sprint(i))
			s.Subscribe(typeB, false, unknown(1000))
		}
		w.m.rows("services", nil, row("ns/a.com", "2"))
		time.Sleep(150 * time.Millisecond)
		other.Subscribe(typeB, false, []string{"mine", "seed"})
		asked, states := map[string]int{}, 0
		first := w.g.take()
		for _, m := range first {
			switch {
			case m.Want != nil && m.Want.View == 7:
				for _, n := range m.Want.Names {
					asked[n]++
				}
			case m.State != nil:
				states++
				w.g.done(m.State.Revision)
			}
		}
		if states != 1 || len(asked) > 3*placement.MostPiece {
			t.Errorf("%d states, with %d names in hand", states, len(asked))
		}
		mine := -1
		open := first
		for round := 0; len(open) > 0; round++ {
			for _, m := range open {
				if m.Want == nil {
					continue
				}
				if round > 0 && m.Want.View == 7 {
					for _, n := range m.Want.Names {
						asked[n]++
					}
				}
				if slices.Contains(m.Want.Names, "mine") && mine < 0 {
					mine = round
				}
				w.g.send(wanted(m.Want.Id, w.at))
			}
			open = w.g.take()
		}
		if mine < 0 || mine > 2 {
			t.Errorf("the other's name was asked for after %d rounds", mine)
		}
		if len(asked) != all || slices.Max(slices.Collect(maps.Values(asked))) != 1 {
			t.Errorf("%d of %d names were asked for, one %d times", len(asked), all, slices.Max(slices.Collect(maps.Values(asked))))
		}
	})
}

// What nobody wants any more is not asked for; what another wants of the same is.
func TestNamesThatWereGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.from("127.0.0.9:1", "a"), w.from("127.0.0.10:1", "b")
		w.placed(a, 7)
		b.Subscribe(typeB, false, []string{"seed"})
		w.g.take()
		w.g.send(place(b.ID(), typeB, 7, w.at))
		w.g.take()
		names := unknown(20_000)
		a.Subscribe(typeB, false, names)
		b.Subscribe(typeB, false, []string{names[19_999], "seed"})
		a.Close()
		asked := map[string]bool{}
		for open := w.g.take(); len(open) > 0; open = w.g.take() {
			for _, m := range open {
				if m.Want != nil {
					for _, n := range m.Want.Names {
						asked[n] = true
					}
					w.g.send(wanted(m.Want.Id, w.at))
				}
			}
		}
		if !asked[names[19_999]] || len(asked) > 4*placement.MostPiece {
			t.Errorf("asked for %d names, the other's among them: %v", len(asked), asked[names[19_999]])
		}
	})
}

// A revision that moves a connection waits for what it has, not for names that it has asked for and
// nobody has promised.
func TestRevisionWaitsForPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.proxy.Subscribe(typeA, false, append(unknown(50_000), "a"))
		answer := func(r *pb.Revision) {
			for open := w.g.take(); len(open) > 0; open = w.g.take() {
				for _, m := range open {
					if m.Want != nil {
						w.g.send(wanted(m.Want.Id, r))
					}
				}
			}
		}
		answer(w.at)
		r := w.revise("2")
		w.g.send(describe(typeA, 2), place(w.proxy.ID(), typeA, 2, r))
		var promised uint64
		for _, m := range w.g.take() {
			if m.Want != nil && slices.Contains(m.Want.Names, "a") {
				promised = m.Want.Id
				if len(m.Want.Names) != 1 {
					t.Errorf("it is asked for among %d names", len(m.Want.Names))
				}
			}
		}
		w.g.done(r)
		if got := w.Revision().Number; got == r.Number || promised == 0 {
			t.Fatalf("revision %d is served before what the connection has (want %d)", got, promised)
		}
		w.g.send(body(2, "moved"), change(typeA, 2, r, &pb.Entry{Name: "a", Body: 2}), wanted(promised, r))
		if got := w.Revision().Number; got != r.Number {
			t.Errorf("revision %d is served, not %d: it waits for names that nobody has", got, r.Number)
		}
		if s := w.proxy.Pull().Types[typeA].Get("a"); string(s.Value()) != "moved" {
			t.Errorf("it is %q", s.Value())
		}
	})
}
