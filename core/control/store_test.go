package control

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/outbox"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/internal/store"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
)

// stock is a bench with a controller that may use objects, and writers of tables.
type stock struct {
	*bench
	asker  *plugin
	counts map[string]int
}

const entryTable = "networking.istio.io/ServiceEntry"

// newStock declares the controller `asks` and the config sources `one` and `two`; the first is
// there.
func newStock(t *testing.T, edit func(*state.Expected)) *stock {
	m := &counts{n: map[string]int{}}
	writer := state.Expected{Name: "one", Kind: pb.KindConfig, Limits: state.Limits{Call: 5 * time.Second}}
	if edit != nil {
		edit(&writer)
	}
	b := newBench(t, func(c *Config) { c.Metrics = m }, state.Expected{Name: "asks", Kind: pb.KindController},
		writer, state.Expected{Name: "two", Kind: pb.KindConfig, Optional: true})
	return &stock{b, b.begin(&host.Instance{
		Entry: &manifest.Entry{Name: "asks", Allow: &manifest.Allow{Store: []manifest.Glob{"networking.istio.io/*"}}}, Ready: &pb.Ready{},
	}), m.n}
}

func readyWriter() *pb.Ready {
	return &pb.Ready{Publishes: []string{entryTable}, Writes: []string{entryTable}}
}

// ask sends a request, by the number that the asker gives it.
func (s *stock) ask(id uint64, m pb.Store) {
	s.t.Helper()
	m.Id, m.Table = id, cmp.Or(m.Table, entryTable)
	if m.Verb == 0 {
		m.Verb = pb.VerbGet
	}
	s.asker.send(&pb.FromPlugin{Store: &m})
}

// answers returns the answers that came since, as "id code text".
func (s *stock) answers() (all []string) {
	s.t.Helper()
	for _, m := range s.asker.others() {
		if m.Stored != nil {
			all = append(all, fmt.Sprintf("%d %d %s%s", m.Stored.Id, m.Stored.Code, m.Stored.Object, m.Stored.Error))
		}
	}
	return all
}

// want checks the one answer.
func (s *stock) want(parts ...string) {
	s.t.Helper()
	got := s.answers()
	if len(got) != 1 {
		s.t.Errorf("%d answers, not one: %q", len(got), got)
		return
	}
	for _, p := range parts {
		if !strings.Contains(got[0], p) {
			s.t.Errorf("%q is not in the answer %q", p, got[0])
		}
	}
}

// requests returns what a writer was asked since.
func requests(p *plugin) (all []*pb.Store) {
	p.t.Helper()
	for _, m := range p.others() {
		if m.Store != nil {
			all = append(all, m.Store)
		}
	}
	return all
}

func (p *plugin) stored(m pb.Stored) {
	p.t.Helper()
	p.send(&pb.FromPlugin{Stored: &m})
}

// TestStoreIsRouted: a request comes to the one writer as it was, with another number, and the
// answer back; whoever can't be asked is named.
func TestStoreIsRouted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock(t, nil)
		s.ask(7, pb.Store{})
		s.want("7 5 ", "no plugin of plugins.yaml takes writes of "+entryTable)
		reader := s.join("one", &pb.Ready{Plugin: "config/file", Publishes: []string{entryTable}})
		s.ask(7, pb.Store{})
		s.want("7 5 ", "what plugin one (config/file) publishes of it is changed at its source")
		_ = reader.kill()
		w := s.join("one", readyWriter())
		s.ask(8, pb.Store{Verb: pb.VerbPatch, Namespace: "shop", Name: "web", Object: []byte(`{"a":1}`), Version: "5"})
		got := requests(w)
		if len(got) != 1 || got[0].Verb != pb.VerbPatch || got[0].Namespace != "shop" || got[0].Name != "web" ||
			string(got[0].Object) != `{"a":1}` || got[0].Version != "5" {
			t.Fatalf("%+v", got)
		}
		w.stored(pb.Stored{Id: got[0].Id, Object: []byte(`{"a":2}`)})
		s.want(`8 0 {"a":2}`)

		s.ask(9, pb.Store{Table: "example.com/Thing"})
		s.want("9 6 ", "allow: {store: [example.com/Thing]}", "plugin asks")
		s.ask(10, pb.Store{Verb: pb.VerbCreate, Object: make([]byte, outbox.MaxRow+1)})
		s.want("10 4 ", "1032193 bytes")

		_ = s.join("two", readyWriter())
		s.ask(11, pb.Store{})
		s.want("11 5 ", "plugins one and two all take writes of "+entryTable)
		if more := requests(w); len(more) > 0 {
			t.Errorf("it was asked: %+v", more)
		}
	})
}

// TestStoreIsAway: nobody waits for a writer that is not there, dies, sleeps or says nothing.
func TestStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock(t, nil)
		w := s.join("one", readyWriter())
		s.ask(1, pb.Store{})
		if err := w.kill(); err == nil {
			t.Error("no error")
		}
		s.want("1 7 ", "plugin one ended while it was asked")
		s.ask(2, pb.Store{})
		s.want("2 7 ", "plugin one, which takes writes of "+entryTable+", is away")

		w = s.join("one", readyWriter())
		s.ask(3, pb.Store{})
		time.Sleep(4 * time.Second)
		if got := s.answers(); len(got) > 0 {
			t.Errorf("answered early: %q", got)
		}
		time.Sleep(time.Second)
		s.want("3 8 ", "plugin one did not answer within limits.call, 5s")
		w.stored(pb.Stored{Id: requests(w)[0].Id}) // late
		s.ask(4, pb.Store{})
		w.stored(pb.Stored{Id: requests(w)[0].Id, Code: pb.CodeConflict, Error: "changed"})
		s.want("4 3 changed")
		if s.counts["one late answer"] != 1 {
			t.Error(s.counts)
		}
	})
}

// TestStoreOfARogue: a writer that answers twice, what nobody asked, with rubbish, or nothing at
// all harms nobody but itself.
func TestStoreOfARogue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock(t, nil)
		w, other := s.join("one", readyWriter()), s.join("two", &pb.Ready{Publishes: []string{"example.com/Thing"}})
		s.ask(1, pb.Store{})
		id := requests(w)[0].Id
		other.stored(pb.Stored{Id: id, Object: []byte("forged")})
		w.stored(pb.Stored{Id: 999})
		s.asker.stored(pb.Stored{Id: id, Object: []byte("forged, too")})
		if got := s.answers(); len(got) > 0 {
			t.Errorf("what others say counts: %q", got)
		}
		w.stored(pb.Stored{Id: id, Code: 77, Error: "?"})
		w.stored(pb.Stored{Id: id})
		s.want("1 7 ", "a code that this core does not know, 77")
		if s.counts["one answer"] != 2 || s.counts["two answer"] != 1 || s.counts["asks answer"] != 1 {
			t.Error(s.counts)
		}
		s.ask(2, pb.Store{})
		w.stored(pb.Stored{Id: requests(w)[0].Id, Code: pb.CodeInvalid, Error: strings.Repeat("x", 900<<10), Object: []byte("secret")})
		if got := s.answers(); len(got) != 1 || len(got[0]) > store.MaxError+100 || strings.Contains(got[0], "secret") {
			t.Errorf("%d answers, the first of %d bytes", len(got), len(got[0]))
		}
		if len(w.end)+len(s.asker.end)+len(other.end) > 0 {
			t.Error("a session has ended")
		}

		// Silent: its requests are bounded, then it ends, and the asker goes on.
		for i := range store.MaxLate {
			s.ask(uint64(100+i), pb.Store{})
			if i%carrier.MaxStores == carrier.MaxStores-1 || i == store.MaxLate-1 {
				time.Sleep(5 * time.Second)
				for _, a := range s.answers() {
					if !strings.Contains(a, " 8 ") {
						t.Fatal(a)
					}
				}
			}
		}
		synctest.Wait()
		select {
		case err := <-w.end:
			if err == nil || !strings.Contains(err.Error(), "without an answer") {
				t.Error(err)
			}
		default:
			t.Error("a writer that never answers goes on")
		}
		s.ask(3, pb.Store{})
		s.want("3 7 ", "is away")
	})
}

// TestStoreOfAFlood: an asker has so many requests on their way, and one that reads no answer ends.
func TestStoreOfAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock(t, nil)
		w := s.join("one", readyWriter())
		for i := range carrier.MaxStores + 1 {
			s.ask(uint64(i), pb.Store{})
		}
		s.want(fmt.Sprintf("%d 7 ", carrier.MaxStores), "has 64 requests on their way already")
		for _, m := range requests(w) {
			w.stored(pb.Stored{Id: m.Id})
		}
		if got := s.answers(); len(got) != carrier.MaxStores {
			t.Errorf("%d answers", len(got))
		}
		s.ask(1, pb.Store{})
		w.stored(pb.Stored{Id: requests(w)[0].Id})
		s.want("1 0 ")

		// It takes no answer: the first ones use its credit up, the others wait.
		for i := 0; len(s.asker.end) == 0; i++ {
			if i > 100*store.MaxUnsent {
				t.Fatal("it goes on")
			}
			if err := s.asker.link.Send(t.Context(),
				&pb.FromPlugin{Store: &pb.Store{Id: 1, Verb: pb.VerbGet, Table: "example.com/" + strings.Repeat("x", 300)}}); err != nil {
				break
			}
			synctest.Wait()
		}
		if err := <-s.asker.end; err == nil || !strings.Contains(err.Error(), "unread") {
			t.Error(err)
		}
		if len(w.end) > 0 {
			t.Error("the writer has ended, too")
		}
	})
}

// TestStoreAndSwap: what the old instance was asked it answers, the new one is asked from then on,
// and a candidate asks in vain.
func TestStoreAndSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStock(t, func(e *state.Expected) { e.Limits.Call = time.Hour })
		old := s.join("one", readyWriter())
		old.synced()
		time.Sleep(time.Second)
		s.ask(1, pb.Store{})
		asked := requests(old)
		trial := s.try(s.mid.State.Roster.Plugins["one"].Expected)
		next := s.candidate("one", readyWriter())
		next.synced()
		next.send(&pb.FromPlugin{Store: &pb.Store{Id: 5, Verb: pb.VerbGet, Table: entryTable}})
		for _, m := range next.others() {
			if m.Store != nil || m.Stored == nil || m.Stored.Code != pb.CodeUnavailable || !strings.Contains(m.Stored.Error, "is not served (yet)") {
				t.Errorf("a candidate was sent %+v", m)
			}
		}
		if err := over(t, began(func() error { return trial.Switch(t.Context(), s.mid.State.Roster.Rules, anyway) })); err != nil {
			t.Fatal(err)
		}
		s.ask(2, pb.Store{})
		old.stored(pb.Stored{Id: asked[0].Id, Object: []byte("x")})
		s.want("1 0 x")
		if got := requests(old); len(got) > 0 {
			t.Errorf("the one that was replaced is asked: %+v", got)
		}
		next.stored(pb.Stored{Id: requests(next)[0].Id, Object: []byte("y")})
		s.want("2 0 y")
	})
}
