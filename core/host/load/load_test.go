package load_test

import (
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/load"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func at(n uint64) *pb.Revision { return &pb.Revision{Number: n} }

func core(s *load.Session, all ...*pb.FromCore) {
	for _, m := range all {
		s.Sent(m, m.Size())
	}
}

func plugin(s *load.Session, all ...*pb.FromPlugin) {
	for _, m := range all {
		s.Received(m, m.Size())
	}
}

// TestGenerator: answers count once, skipped revisions are owed no more, and what nobody asked is
// nothing.
func TestGenerator(t *testing.T) {
	var all load.Meters
	s := all.Of("a").Session()
	plugin(s, &pb.FromPlugin{Ready: &pb.Ready{Kind: pb.KindGenerator}})
	core(s, &pb.FromCore{State: &pb.State{Revision: at(1), More: true}},
		&pb.FromCore{State: &pb.State{Revision: at(1)}}, &pb.FromCore{State: &pb.State{Revision: at(2)}})
	if s.Lag() <= 0 {
		t.Error("nothing is owed while revisions are made")
	}
	plugin(s, &pb.FromPlugin{Done: &pb.Done{Revision: at(2), Faults: []*pb.Fault{{}}}}, &pb.FromPlugin{Done: &pb.Done{Revision: at(2)}})
	core(s, &pb.FromCore{Want: &pb.Want{Id: 1}}, &pb.FromCore{Attach: &pb.Attach{Connection: 1}},
		&pb.FromCore{Attach: &pb.Attach{Connection: 2}}, &pb.FromCore{Detach: &pb.Detach{Connection: 2}})
	plugin(s, &pb.FromPlugin{Wanted: &pb.Wanted{Id: 1}}, &pb.FromPlugin{Place: &pb.Place{Connection: 1}}, &pb.FromPlugin{Place: &pb.Place{Connection: 2}})
	l := all.Of("a").Read()
	if l.Calls != 3 || l.Errors != 1 || l.Times.Count() != 3 || l.BytesIn == 0 || l.BytesOut == 0 || l.Seconds <= 0 {
		t.Errorf("%+v", l)
	}
	if lag := s.Lag(); lag != 0 {
		t.Errorf("something is owed for %v", lag)
	}
	if other := all.Of("b").Read(); other.Calls != 0 || other.BytesIn != 0 {
		t.Errorf("another plugin has %+v", other)
	}
}

// TestCalls of the kinds that are asked, and of one that is not.
func TestCalls(t *testing.T) {
	for name, c := range map[string]struct {
		kind          pb.Kind
		asked         *pb.FromCore
		said          *pb.FromPlugin
		calls, errors uint64
	}{
		"patch":         {pb.KindPatch, &pb.FromCore{Patch: &pb.Patch{Id: 7}}, &pb.FromPlugin{Patched: &pb.Patched{Id: 7}}, 1, 0},
		"failed patch":  {pb.KindPatch, &pb.FromCore{Patch: &pb.Patch{Id: 7}}, &pb.FromPlugin{Patched: &pb.Patched{Id: 7, Error: "x"}}, 1, 1},
		"unasked patch": {pb.KindPatch, &pb.FromCore{Patch: &pb.Patch{Id: 7}}, &pb.FromPlugin{Patched: &pb.Patched{Id: 8}}, 0, 0},
		"refusal": {
			pb.KindAuthenticator, &pb.FromCore{Authenticate: &pb.Authenticate{Id: 1}},
			&pb.FromPlugin{Caller: &pb.Caller{Id: 1, Refusal: "x"}}, 1, 0,
		},
		"failed verdict": {
			pb.KindAuthenticator, &pb.FromCore{Authenticate: &pb.Authenticate{Id: 1}},
			&pb.FromPlugin{Caller: &pb.Caller{Id: 1, Failure: "x"}}, 1, 1,
		},
		"rows of a source":  {pb.KindRegistry, &pb.FromCore{Ping: &pb.Ping{}}, &pb.FromPlugin{Rows: &pb.Rows{}}, 1, 0},
		"state of a patch":  {pb.KindPatch, &pb.FromCore{State: &pb.State{Revision: at(1)}}, &pb.FromPlugin{Pong: &pb.Pong{}}, 0, 0},
		"state, controller": {pb.KindController, &pb.FromCore{State: &pb.State{Revision: at(1)}}, &pb.FromPlugin{Pong: &pb.Pong{}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var all load.Meters
			s := all.Of("a").Session()
			plugin(s, &pb.FromPlugin{Ready: &pb.Ready{Kind: c.kind}})
			core(s, c.asked)
			plugin(s, c.said)
			if l := all.Of("a").Read(); l.Calls != c.calls || l.Errors != c.errors {
				t.Errorf("%d calls and %d errors, want %d and %d", l.Calls, l.Errors, c.calls, c.errors)
			}
			if lag := s.Lag(); c.asked.State != nil && lag != 0 {
				t.Errorf("a state that nobody answers is owed for %v", lag)
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	times := make(load.Times, 19)
	if times.Quantile(.5) != 0 {
		t.Error("nothing took some time")
	}
	times[5], times[8] = 99, 1 // up to 2.5 ms, up to 25 ms
	if p := times.Quantile(.5); p < time.Millisecond || p > 2500*time.Microsecond {
		t.Errorf("p50 is %v", p)
	}
	if p := times.Quantile(.999); p < 10*time.Millisecond || p > 25*time.Millisecond {
		t.Errorf("p99.9 is %v", p)
	}
	later := append(load.Times(nil), times...)
	later[18] = 2 // over 30 s
	if added := later.Since(times); added.Count() != 2 || added.Quantile(.5) != 30*time.Second {
		t.Errorf("%v was added, %v", added, added.Quantile(.5))
	}
	if again := times.Since(later); again.Count() != 100 {
		t.Errorf("a core that started anew has %v", again)
	}
	if c := times.Cumulative(); c[.0025] != 99 || c[30] != 100 || c[.001] != 0 {
		t.Errorf("%v", c)
	}
}

func BenchmarkSession(b *testing.B) {
	var all load.Meters
	s := all.Of("a").Session()
	for n := range uint64(b.N) {
		s.Sent(&pb.FromCore{Patch: &pb.Patch{Id: n}}, 100)
		s.Received(&pb.FromPlugin{Patched: &pb.Patched{Id: n}}, 100)
	}
}
