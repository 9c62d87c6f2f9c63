package control

import (
	"context"
	"errors"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/control/internal/members"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

func (b *bench) try(e state.Expected) *operations.Trial {
	b.t.Helper()
	t, err := b.Operator().Try(e, b.mid.State.Roster.Rules)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(t.End)
	return t
}

// TestCandidateHearsOfWhoConcernsIt: a connection is told to a candidate when it first asks for a
// type of its, once.
func TestCandidateHearsOfWhoConcernsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.try(istio)
		next := w.candidate("istio", readyIstio())
		next.answer(w.proxy.ID(), "v1")
		next.others()
		two := w.stream("q")
		told := func() (n int) {
			for _, m := range next.others() {
				if m.Attach != nil && m.Attach.Connection == two.ID() {
					n++
				}
			}
			return n
		}
		for i, c := range []struct {
			asks string
			want int
		}{{typeT, 0}, {typeA, 1}, {typeB, 0}} {
			two.Subscribe(c.asks, true, nil)
			if got := told(); got != c.want {
				t.Errorf("%d: it asked for %s, and the candidate was told of it %d times, not %d", i, c.asks, got, c.want)
			}
		}
	})
}

// began runs f in a goroutine and returns what it will return.
func began(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	synctest.Wait()
	return done
}

func over(t *testing.T, done <-chan error) error {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		return err
	default:
		t.Fatal("it is not over")
		return nil
	}
}

func anyway(*guard.Difference) error { return nil }

func TestSwapRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		before := w.Revision().Number
		trial := w.try(memory)
		next := w.candidate("memory", readyMemory())
		next.rows("services", nil, row("ns/a.com", "1"), row("ns/b.com", "1"))
		next.rows("endpoints", nil, row("ns/a.com/http/1.1.1.2:80", "1"))
		if s := w.g.state(); s != nil {
			t.Fatal("the candidate's rows were served")
		}
		ready := began(func() error { return trial.Ready(t.Context()) })
		next.synced()
		if err := over(t, ready); err != nil {
			t.Fatal(err)
		}
		d, err := trial.Compare(t.Context())
		if err != nil || d.String() != "+1 endpoint −1 +1 service" {
			t.Errorf("difference %s, %v", d, err)
		}
		no := errors.New("no")
		if err := trial.Switch(t.Context(), w.mid.State.Roster.Rules, func(*guard.Difference) error { return no }); !errors.Is(err, no) {
			t.Errorf("error %v", err)
		}
		if w.g.state() != nil || w.Revision().Number != before {
			t.Fatal("a switch that was refused had effect")
		}
		if err := trial.Switch(t.Context(), w.mid.State.Roster.Rules, anyway); err != nil {
			t.Fatal(err)
		}
		s := w.g.state()
		if diff := cmp.Diff([]string{"endpoints -ns/a.com/http/1.1.1.1:80", "endpoints ns/a.com/http/1.1.1.2:80=1", "services ns/b.com=1"},
			keys(s)); diff != "" {
			t.Error(diff)
		}
		w.g.done(s.Revision)
		if got := w.mid.State.Course.Served; got.Kind != "swap" || got.Rows != 3 {
			t.Errorf("served %+v", got)
		}
		// The old one is fed and may say more; it counts when it comes back.
		w.m.rows("endpoints", nil, row("ns/a.com/http/1.1.1.3:80", "1"))
		time.Sleep(time.Second)
		if w.g.state() != nil {
			t.Error("rows of the one that was replaced are served")
		}
		if err := trial.Switch(t.Context(), w.mid.State.Roster.Rules, anyway); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"endpoints -ns/a.com/http/1.1.1.2:80", "endpoints ns/a.com/http/1.1.1.1:80=1",
			"endpoints ns/a.com/http/1.1.1.3:80=1", "services -ns/b.com",
		}
		if diff := cmp.Diff(want, keys(w.g.state())); diff != "" {
			t.Error(diff)
		}
	})
}

// TestSwapDeriver: a deriver's candidate gets what the served one gets, and takes over at one
// revision.
func TestSwapDeriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f, d, g := chain(t)
		trial := b.try(entries)
		next := b.candidate("serviceentry", readyEntries())
		s := next.state()
		if diff := cmp.Diff([]string{"ServiceEntry ns/a=1"}, keys(s)); diff != "" || !s.Whole {
			t.Fatal(diff)
		}
		next.rows("services", s.Revision, row("ns/a.com", "new from 1"))
		next.done(s.Revision)
		switched := began(func() error { return trial.Switch(t.Context(), b.mid.State.Roster.Rules, anyway) })
		if err := over(t, switched); err != nil {
			t.Fatal(err)
		}
		got := g.state()
		if diff := cmp.Diff([]string{"services ns/a.com=new from 1"}, keys(got)); diff != "" {
			t.Error(diff)
		}
		g.done(got.Revision)
		f.rows(entryRow, nil, row("ns/b", "2"))
		time.Sleep(150 * time.Millisecond)
		s = next.state()
		next.rows("services", s.Revision, row("ns/b.com", "new from 2"))
		next.done(s.Revision)
		got = g.state()
		if diff := cmp.Diff([]string{"services ns/b.com=new from 2"}, keys(got)); diff != "" {
			t.Error(diff)
		}
		g.done(got.Revision)
		old := d.state()
		if diff := cmp.Diff([]string{"ServiceEntry ns/b=2"}, keys(old)); diff != "" {
			t.Error("the old one is not fed:", diff)
		}
	})
}

// answer plays a generator that gives every connection view 1 with these bodies of type A.
func (p *plugin) answer(conn uint64, bodies ...string) {
	p.t.Helper()
	s := p.state()
	p.send(describe(typeA, 1), place(conn, typeA, 1, s.Revision))
	for i, content := range bodies {
		p.send(body(uint64(i+1), content), change(typeA, 1, s.Revision, &pb.Entry{Name: string(rune('a' + i)), Body: uint64(i + 1)}))
	}
	p.answered(s)
}

// answerOf answers with a body 1 of resource a of type C.
func (p *plugin) answerOf(conn uint64, a *pb.FromPlugin) {
	p.t.Helper()
	s := p.state()
	p.send(describe(typeC, 1), place(conn, typeC, 1, s.Revision), a, change(typeC, 1, s.Revision, &pb.Entry{Name: "a", Body: 1}))
	p.answered(s)
}

func (p *plugin) answered(s *pb.State) {
	p.t.Helper()
	p.done(s.Revision)
	for _, m := range p.others() {
		if m.Want != nil {
			p.send(wanted(m.Want.Id, s.Revision))
		}
	}
}

func TestSwapGenerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		trial := w.try(istio)
		next := w.candidate("istio", readyIstio())
		w.proxy.woken = false
		next.answer(w.proxy.ID(), "v1", "b")
		d, err := trial.Compare(t.Context())
		if err != nil || d.String() != "+1 A" || d.Types[0].Proxies != 1 {
			t.Errorf("difference %s, %v", d, err)
		}
		if w.expect("a=v1"); w.proxy.woken {
			t.Error("the candidate's views were served")
		}
		if err := trial.Switch(t.Context(), w.mid.State.Roster.Rules, anyway); err != nil {
			t.Fatal(err)
		}
		if w.expect("a=v1", "b=b"); !w.proxy.woken {
			t.Error("the stream was not woken")
		}
		r := w.revise("2")
		if diff := cmp.Diff([]string{"services ns/a.com=2"}, keys(next.state())); diff != "" {
			t.Error("the new one is not asked:", diff)
		}
		next.done(r)
		w.g.send(body(9, "v9"), change(typeA, 1, r, &pb.Entry{Name: "a", Body: 9}))
		w.g.done(r)
		w.expect("a=v1", "b=b")
		// The new one dies, and the old comes back with what it has made meanwhile.
		if err := next.kill(); err == nil {
			t.Error("no error")
		}
		if err := trial.Switch(t.Context(), w.mid.State.Roster.Rules, anyway); err != nil {
			t.Fatal(err)
		}
		w.expect("a=v9")
		w.proxy.Close()
	})
}

// TestRefusalsAfterASwap: only those of proxies that refused nothing before count, and only after
// the switch.
func TestRefusalsAfterASwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		sick := w.stream("sick")
		report := func(s *stream, refused string) {
			s.Report(xds.Outcome{Type: typeA, Number: w.Revision().Number, Refused: refused})
		}
		report(sick, "always")
		report(w.proxy, "")
		trial := w.try(istio)
		next := w.candidate("istio", readyIstio())
		next.answer(w.proxy.ID(), "v2")
		if err := trial.Switch(t.Context(), w.mid.State.Roster.Rules, anyway); err != nil {
			t.Fatal(err)
		}
		many := trial.OnRefusals(guard.Share{Percent: 10})
		report(sick, "always")
		select {
		case <-many:
			t.Fatal("a proxy counts that refused before")
		default:
		}
		report(w.proxy, "bad v2")
		<-many
		if n, lines := trial.Refusals(); n != 1 || len(lines) != 1 || lines[0] != "p refused "+typeA+": bad v2" {
			t.Errorf("%d: %v", n, lines)
		}
	})
}

// TestRefusalsThatAreNotItsDoing: what a swap left as it was, what was accepted after it and what
// another revision changed counts for nothing; what it changed does, also for a proxy that comes
// later.
func TestRefusalsThatAreNotItsDoing(t *testing.T) {
	for name, tt := range map[string]struct {
		content  string // of the new one's resource
		accepted bool   // by the proxy, after the switch
		revised  bool   // the resource changes again before it is refused
		late     bool   // a proxy that comes after the switch refuses
		typeURL  string
		counts   bool
	}{
		"what it changed":                     {content: "v2", typeURL: typeA, counts: true},
		"what it changed, by who comes later": {content: "v2", late: true, typeURL: typeA, counts: true},
		"nothing was changed":                 {content: "v1", typeURL: typeA},
		"nothing was changed, later it is":    {content: "v1", revised: true, typeURL: typeA},
		"nothing, by who comes later":         {content: "v1", late: true, typeURL: typeA},
		"accepted first":                      {content: "v2", accepted: true, revised: true, typeURL: typeA},
		"changed again":                       {content: "v2", revised: true, typeURL: typeA},
		"of another type":                     {content: "v2", typeURL: "another"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.proxy.Report(xds.Outcome{Type: typeA, Version: "v", Number: w.Revision().Number})
				w.proxy.Report(xds.Outcome{Type: "another", Version: "v", Number: w.Revision().Number})
				trial := w.try(istio)
				next := w.candidate("istio", readyIstio())
				next.answer(w.proxy.ID(), tt.content)
				if err := trial.Switch(t.Context(), w.mid.State.Roster.Rules, anyway); err != nil {
					t.Fatal(err)
				}
				at := w.Revision()
				if tt.accepted {
					w.proxy.Report(xds.Outcome{Type: typeA, Number: at.Number})
				}
				if tt.revised {
					r := w.revise("2")
					w.g.done(r)
					if next.state() == nil {
						t.Fatal("the new one was not asked")
					}
					next.send(body(9, "v9"), change(typeA, 1, r, &pb.Entry{Name: "a", Body: 9}))
					next.done(r)
					w.expect("a=v9")
				}
				refuses := w.proxy
				if tt.late {
					refuses = w.streamOf(xds.Peer{Node: &corev3.Node{Id: "late"}, Identities: peer("p").Identities})
					refuses.Subscribe(typeA, true, nil)
					next.send(place(refuses.ID(), typeA, 1, w.at))
					if got := refuses.names(typeA); len(got) != 1 {
						t.Fatalf("it has %v", got)
					}
				}
				refuses.Report(xds.Outcome{Type: tt.typeURL, Number: w.Revision().Number, Refused: "no"})
				if n, lines := trial.Refusals(); (n == 1) != tt.counts {
					t.Errorf("%d: %v", n, lines)
				}
			})
		})
	}
}

// TestCandidateDies: who waits for it is told, and nothing has changed.
func TestCandidateDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		trial := w.try(istio)
		next := w.candidate("istio", readyIstio())
		ready := began(func() error { return trial.Ready(t.Context()) })
		_ = next.kill()
		if err := over(t, ready); !errors.Is(err, members.ErrEnded) {
			t.Errorf("error %v", err)
		}
		w.expect("a=v1")
	})
}

func TestDeclareAndWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		more := state.Expected{Name: "more", Kind: pb.KindRegistry, Order: 7}
		if err := w.Declare(more, w.mid.State.Roster.Rules); err != nil {
			t.Fatal(err)
		}
		if reasons := w.Ready(); len(reasons) > 0 {
			t.Errorf("not ready: %v", reasons)
		}
		m := w.join("more", readyMemory())
		m.rows("services", nil, row("ns/more.com", "1"))
		m.synced()
		time.Sleep(150 * time.Millisecond)
		s := w.g.state()
		if diff := cmp.Diff([]string{"services ns/more.com=1"}, keys(s)); diff != "" {
			t.Error(diff)
		}
		w.g.done(s.Revision)
		if err := w.Withdraw("more", w.mid.State.Roster.Rules, false); err == nil {
			t.Error("a plugin that runs was withdrawn")
		}
		_ = m.kill()
		if err := w.Withdraw("more", w.mid.State.Roster.Rules, false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(150 * time.Millisecond)
		if diff := cmp.Diff([]string{"services -ns/more.com"}, keys(w.g.state())); diff != "" {
			t.Error(diff)
		}
	})
}

// TestSwapPatch: a candidate is asked about all that proxies have, and what it makes of it is
// served in one step; nobody is asked again for that.
func TestSwapPatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		w.answer(w.asked())
		w.sees("a1=11", "a2=22", "a2-copy=2", "b=3")
		trial := w.try(state.Expected{Name: "upper", Kind: pb.KindPatch, Order: 2, Limits: state.Limits{Call: time.Second}})
		old := w.upper
		ready := readyPatch()
		ready.PluginVersion = "2"
		w.upper = w.candidate("upper", ready)
		compared := began(func() error { return trial.Ready(t.Context()) })
		for _, c := range w.asked() {
			r := c.Resources[0]
			w.upper.send(&pb.FromPlugin{Patched: &pb.Patched{Id: c.Id, Resources: []*pb.Resource{{Name: r.Name, Bytes: append(r.Bytes, r.Bytes...)}}}})
		}
		if err := over(t, compared); err != nil {
			t.Fatal(err)
		}
		if d, err := trial.Compare(t.Context()); err != nil || d.String() != "−1 T" || d.Types[0].Proxies != 1 {
			t.Errorf("difference %s, %v", d, err)
		}
		w.sees("a1=11", "a2=22", "a2-copy=2", "b=3")
		if err := trial.Switch(t.Context(), w.mid.State.Roster.Rules, anyway); err != nil {
			t.Fatal(err)
		}
		w.sees("a1=11", "a2=22", "b=3")
		if calls := w.asked(); len(calls) > 0 {
			t.Errorf("it was asked again: %v", calls)
		}
		// The old one comes back: it knows what it said.
		if err := trial.Switch(t.Context(), w.mid.State.Roster.Rules, anyway); err != nil {
			t.Fatal(err)
		}
		w.upper = old
		w.sees("a1=11", "a2=22", "a2-copy=2", "b=3")
	})
}

// TestSwapAuthenticator: both are asked about live connections first; the old one answers until the
// switch.
func TestSwapAuthenticator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := state.Limits{Call: 5 * time.Second}
		door := state.Expected{Name: "door", Kind: pb.KindAuthenticator, Limits: limits}
		shown := &caller.Credentials{Headers: map[string]string{"authorization": "Bearer secret-of-p"}}
		b := newBench(t, func(c *Config) { c.Shown = func(context.Context) (*caller.Credentials, error) { return shown, nil } }, door)
		old := b.join("door", &pb.Ready{})
		b.stream("p")
		trial := b.try(door)
		next := b.candidate("door", &pb.Ready{})
		compare := func(says func(id uint64)) *guard.Difference {
			t.Helper()
			var d *guard.Difference
			done := began(func() (err error) { d, err = trial.Compare(t.Context()); return err })
			old.accept(asked(old).Id, webIdentity)
			synctest.Wait()
			says(asked(next).Id)
			if err := over(t, done); err != nil {
				t.Fatal(err)
			}
			return d
		}
		if d := compare(func(id uint64) { next.accept(id, webIdentity) }); !d.Empty() {
			t.Errorf("difference %s", d)
		}
		d := compare(func(id uint64) { next.reject(id, "I don't know secret-of-p") })
		want := "the caller of p: accepted as [" + webIdentity + "] -> refused (I don't know (hidden))"
		if len(d.Refused) != 1 || d.Refused[0] != want || len((guard.Guard{}).Check(d)) != 1 {
			t.Errorf("difference %+v", d)
		}
		switched := began(func() error { return trial.Switch(t.Context(), b.mid.State.Roster.Rules, anyway) })
		old.accept(asked(old).Id, webIdentity)
		next.accept(asked(next).Id, webIdentity)
		if err := over(t, switched); err != nil {
			t.Fatal(err)
		}
		got := (&gate{b, nil}).call(t.Context(), shown.Headers)
		next.accept(asked(next).Id, webIdentity)
		if v := <-got; v.err != nil || asked(old) != nil {
			t.Errorf("%v", v.err)
		}
	})
}
