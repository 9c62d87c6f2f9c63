package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/guard"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
)

var (
	errStays = errors.New("it stays")
	more     = state.Expected{Name: "more", Kind: pb.KindRegistry, Order: 7}
)

// removal is what was said of one.
type removal struct {
	difference *guard.Difference
	why        []string
	asked      bool
}

// text is what speaks against it.
func (r *removal) text() string { return strings.Join(r.why, "; ") }

// removing begins a removal that is judged as if it were to be dry, or forced.
func (b *bench) removing(name string, forced bool) (*removal, <-chan error) {
	r := &removal{}
	return r, began(func() error {
		return b.Removal(b.t.Context(), name, b.mid.State.Roster.Rules, func(d *guard.Difference, why []string) error {
			if r.asked {
				b.t.Error("it is judged twice")
			}
			r.difference, r.why, r.asked = d, why, true
			if forced {
				return nil
			}
			return errStays
		})
	})
}

// adds lets one more registry say these services.
func (m *mirror) adds(names ...string) *plugin {
	m.t.Helper()
	if err := m.Declare(more, m.mid.State.Roster.Rules); err != nil {
		m.t.Fatal(err)
	}
	p := m.join("more", &pb.Ready{Publishes: []string{"services", "endpoints", "VirtualService"}})
	for _, n := range names {
		p.rows("services", nil, row(n, "more"))
	}
	p.rows("VirtualService", nil, row("ns/v", "1"), row("ns/w", "1")) // of which the generator makes nothing
	p.synced()
	m.run()
	return p
}

// TestRemovalIsJudgedByWhatProxiesLose: not by rows; a dry run says what the removal itself would,
// and nobody sees anything of it.
func TestRemovalIsJudgedByWhatProxiesLose(t *testing.T) {
	for name, c := range map[string]struct {
		has, adds []string
		want      string
		left      []string
	}{
		"rows that no proxy sees":      {[]string{"ns/a.com"}, nil, "", []string{"a.com"}},
		"rows that another plugin has": {[]string{"ns/a.com", "ns/b.com"}, []string{"ns/a.com", "ns/b.com"}, "", []string{"a.com", "b.com"}},
		"one row that a proxy lives from": {
			[]string{"ns/a.com", "ns/b.com", "ns/c.com"}, []string{"ns/x.com"},
			"1 of 5 As would go from 1 proxy (view ): ns/x.com", []string{"a.com", "b.com", "c.com"},
		},
		"all that a proxy has": {nil, []string{"ns/x.com", "ns/y.com"}, "would go from 1 proxy (view ): ns/x.com, ns/y.com", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMirror(t, c.has...)
				p := m.adds(c.adds...)
				before := m.proxy.names(typeA)
				m.each = func() {
					if diff := cmp.Diff(before, m.proxy.names(typeA)); diff != "" {
						t.Error("the proxy sees something of it: ", diff)
					}
				}
				dry, over1 := m.removing("more", false)
				m.run()
				if err := over(t, over1); !errors.Is(err, errStays) {
					t.Fatal(err)
				}
				m.run()
				m.each()
				m.each = nil
				if !strings.Contains(dry.text(), c.want) || c.want == "" && len(dry.why) > 0 {
					t.Errorf("what speaks against it: %q", dry.why)
				}
				if n := len(m.Rows("VirtualService")); n != 2 || len(m.Holds()) > 0 {
					t.Errorf("%d rows are left, %v is held", n, m.Holds())
				}
				p.rows("services", nil, row("ns/late.com", "1")) // it goes on as before
				m.run()
				p.send(deletes("services", "ns/late.com"))
				m.run()
				if diff := cmp.Diff(before, m.proxy.names(typeA)); diff != "" {
					t.Error(diff)
				}

				done, over2 := m.removing("more", true)
				m.run()
				if err := over(t, over2); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(dry.why, done.why); diff != "" || dry.difference.String() != done.difference.String() {
					t.Error("the dry run said something else:", diff)
				}
				_ = p.kill()
				if err := m.Withdraw("more", m.mid.State.Roster.Rules, true); err != nil {
					t.Fatal(err)
				}
				m.run()
				if len(c.left) > 0 {
					m.sees(c.left...)
				}
				m.holds()
				if n := len(m.Rows("VirtualService")); n != 0 || m.mid.Plugins.Removals.Pending != nil || len(m.mid.Plugins.Trials.All) > 0 {
					t.Errorf("%d rows are left, %v, %v", n, m.mid.Plugins.Removals.Pending, m.mid.Plugins.Trials.All)
				}
				m.m.rows("services", nil, row("ns/new.com", "1"))
				m.run()
				m.sees(append(c.left, "new.com")...)
			})
		})
	}
}

// TestWhatIsSaidDuringARemoval counts when the plugin stays: what it says itself, and what others
// say.
func TestWhatIsSaidDuringARemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, "ns/a.com", "ns/b.com")
		p := m.adds("ns/x.com", "ns/y.com")
		_, stays := m.removing("more", false)
		p.rows("services", nil, row("ns/z.com", "1"))
		p.send(deletes("services", "ns/y.com"))
		m.m.rows("services", nil, row("ns/c.com", "1"))
		m.sees("a.com", "b.com", "x.com", "y.com")
		m.run()
		if err := over(t, stays); !errors.Is(err, errStays) {
			t.Fatal(err)
		}
		m.sees("a.com", "b.com", "c.com", "x.com", "z.com")
		m.holds()
		// It dies meanwhile: its rows stay, and the one that is started takes them over.
		_, stays = m.removing("more", false)
		_ = p.kill()
		m.run()
		if err := over(t, stays); !errors.Is(err, errStays) {
			t.Fatal(err)
		}
		m.sees("a.com", "b.com", "c.com", "x.com", "z.com")
		p = m.join("more", readyMemory())
		p.rows("services", nil, row("ns/x.com", "more"))
		p.synced()
		m.run()
		m.sees("a.com", "b.com", "c.com", "x.com")
		// Nobody waits any more.
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := began(func() error {
			return m.Removal(ctx, "more", m.mid.State.Roster.Rules, func(*guard.Difference, []string) error { return nil })
		})
		cancel(errStays)
		if err := over(t, gone); !errors.Is(err, errStays) {
			t.Fatal(err)
		}
		m.run()
		m.sees("a.com", "b.com", "c.com", "x.com")
		if m.mid.Plugins.Removals.Pending != nil || len(m.mid.Plugins.Trials.All) > 0 {
			t.Errorf("%v, %v", m.mid.Plugins.Removals.Pending, m.mid.Plugins.Trials.All)
		}
	})
}

// TestRemovalAfterARename: what another plugin is about to say, under whose name it goes on, makes
// up for it.
func TestRemovalAfterARename(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, "ns/a.com")
		m.adds("ns/x.com")
		if err := m.Declare(state.Expected{Name: "renamed", Kind: pb.KindRegistry, Order: 8}, m.mid.State.Roster.Rules); err != nil {
			t.Fatal(err)
		}
		p := m.join("renamed", readyMemory())
		r, goes := m.removing("more", true)
		m.run()
		if r.asked {
			t.Error("the other one has not said anything, and was not waited for")
		}
		p.rows("services", nil, row("ns/x.com", "more"))
		p.synced()
		m.run()
		if err := over(t, goes); err != nil || len(r.why) > 0 {
			t.Errorf("%v, %q", err, r.why)
		}
		m.sees("a.com", "x.com")
	})
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, "ns/a.com")
		m.adds("ns/x.com")
		if err := m.Declare(state.Expected{Name: "renamed", Kind: pb.KindRegistry, Order: 8}, m.mid.State.Roster.Rules); err != nil {
			t.Fatal(err)
		}
		r, goes := m.removing("more", true)
		m.run()
		if r.asked {
			t.Error("the other one has not come, and was not waited for")
		}
		p := m.join("renamed", readyMemory())
		p.rows("services", nil, row("ns/x.com", "more"))
		p.synced()
		m.run()
		if err := over(t, goes); err != nil || len(r.why) > 0 {
			t.Errorf("%v, %q", err, r.why)
		}
		m.sees("a.com", "x.com")
	})
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, "ns/a.com")
		m.adds("ns/x.com")
		if err := m.Declare(state.Expected{Name: "silent", Kind: pb.KindRegistry, Order: 8, Optional: true}, m.mid.State.Roster.Rules); err != nil {
			t.Fatal(err)
		}
		m.join("silent", readyMemory())
		r, stays := m.removing("more", false)
		time.Sleep(m.cfg.HoldMax)
		m.run()
		if err := over(t, stays); !errors.Is(err, errStays) || !strings.Contains(r.text(), "1 of 3 As would go") {
			t.Errorf("one that says nothing is waited for: %v, %q", err, r.why)
		}
	})
}

// TestRemovalThatCannotBeJudged: a generator that does not answer, or is away, and no proxy at all;
// rows speak then.
func TestRemovalThatCannotBeJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, "ns/a.com")
		m.adds("ns/x.com")
		r, stays := m.removing("more", false)
		time.Sleep(11 * time.Second)
		if err := over(t, stays); !errors.Is(err, errStays) || !strings.Contains(r.text(), "plugins did not answer in time: istio") {
			t.Errorf("%v, %q", err, r.why)
		}
		m.run()
		m.sees("a.com", "x.com")
		_ = m.g.kill()
		r, stays = m.removing("more", false)
		if err := over(t, stays); !errors.Is(err, errStays) || !strings.Contains(r.text(), "2 VirtualServices, 1 service would go with it") ||
			!strings.Contains(r.text(), "plugins are away that would say what proxies need of them: istio") {
			t.Errorf("%v, %q", err, r.why)
		}
		m.proxy.Close()
		r, stays = m.removing("more", false)
		if err := over(t, stays); !errors.Is(err, errStays) || !strings.Contains(r.text(), "no proxy is connected") {
			t.Errorf("%v, %q", err, r.why)
		}
	})
}

// TestRemovalOfADeriver: its rows come back, too.
func TestRemovalOfADeriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f, d, g := chain(t)
		p := b.stream("p")
		p.Subscribe(typeA, true, nil)
		g.others()
		g.send(describe(typeA, 1), place(p.ID(), typeA, 1, &pb.Revision{Epoch: b.mid.State.Course.Epoch, Number: b.Revision().Number}))
		at := &pb.Revision{Epoch: b.mid.State.Course.Epoch, Number: b.Revision().Number}
		g.send(body(1, "1"), change(typeA, 1, at, &pb.Entry{Name: "a.com", Body: 1}), wanted(g.others()[0].Want.Id, at))
		r, stays := b.removing("serviceentry", false)
		s := g.state()
		if diff := cmp.Diff([]string{"services -ns/a.com"}, keys(s)); diff != "" {
			t.Fatal(diff)
		}
		g.send(&pb.FromPlugin{Change: &pb.Change{Revision: s.Revision, Type: typeA, View: 1, Removes: []string{"a.com"}}})
		g.done(s.Revision)
		if err := over(t, stays); !errors.Is(err, errStays) || !strings.Contains(r.text(), "1 of 1 A would go") {
			t.Errorf("%v, %q", err, r.why)
		}
		s = g.state()
		if diff := cmp.Diff([]string{"services ns/a.com=from 1"}, keys(s)); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff([]string{"a.com=1"}, p.names(typeA)); diff != "" {
			t.Error(diff)
		}
		g.send(change(typeA, 1, s.Revision, &pb.Entry{Name: "a.com", Body: 1}))
		g.done(s.Revision)
		f.rows(entryRow, nil, row("ns/b", "2"))
		time.Sleep(150 * time.Millisecond)
		s = d.state()
		if diff := cmp.Diff([]string{"ServiceEntry ns/b=2"}, keys(s)); diff != "" {
			t.Fatal(diff)
		}
		d.rows("services", s.Revision, row("ns/b.com", "from 2"))
		d.done(s.Revision)
		if diff := cmp.Diff([]string{"services ns/b.com=from 2"}, keys(g.state())); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRemovalThinsEndpoints: a service that keeps some of its endpoints may lose too many.
func TestRemovalThinsEndpoints(t *testing.T) {
	for lost, want := range map[int]string{2: "", 3: "3 of 5 endpoints of service ns/a.com would go"} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMirror(t, "ns/a.com")
				p := m.adds("ns/a.com")
				for i := range 4 {
					from := m.m
					if i < lost {
						from = p
					}
					from.rows("endpoints", nil, row(fmt.Sprintf("ns/a.com/http/1.1.1.%d:80", i+2), "1"))
				}
				m.run()
				r, stays := m.removing("more", false)
				s := m.g.state() // its endpoints are in the resources, too
				m.bodies++
				m.g.send(body(m.bodies, "fewer"), change(typeA, 1, s.Revision, &pb.Entry{Name: "ns/a.com", Body: m.bodies}))
				m.g.done(s.Revision)
				m.run()
				if err := over(t, stays); !errors.Is(err, errStays) || !strings.Contains(r.text(), want) || want == "" && len(r.why) > 0 {
					t.Errorf("%v, %q", err, r.why)
				}
			})
		})
	}
}

// TestRemovalOfAGenerator: proxies would lose what it makes for them; where another one makes it,
// they would not.
func TestRemovalOfAGenerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, "ns/a.com", "ns/b.com")
		r, stays := m.removing("istio", false)
		if err := over(t, stays); !errors.Is(err, errStays) || !strings.Contains(r.text(), "As would go from 1 proxy (view ): a, ns/a.com, ns/b.com") {
			t.Errorf("%v, %q", err, r.why)
		}
		if err := m.Declare(state.Expected{Name: "second", Kind: pb.KindGenerator, Order: 8}, m.mid.State.Roster.Rules); err != nil {
			t.Fatal(err)
		}
		second := m.join("second", readyIstio())
		s := second.state()
		second.done(s.Revision)
		m.run()
		r, goes := m.removing("istio", true)
		if err := over(t, goes); err != nil || len(r.why) > 0 {
			t.Fatalf("beside another one: %v, %q", err, r.why)
		}
		// What the other one makes is less: the proxy keeps what it has.
		_ = m.g.kill()
		if err := m.Withdraw("istio", m.mid.State.Roster.Rules, false); err != nil {
			t.Fatal(err)
		}
		at := &pb.Revision{Epoch: m.mid.State.Course.Epoch, Number: m.Revision().Number}
		second.send(describe(typeA, 1), place(m.proxy.ID(), typeA, 1, at))
		for _, w := range second.others() {
			if w.Want != nil {
				second.send(wanted(w.Want.Id, at))
			}
		}
		m.sees("a.com", "b.com")
		m.holds("second")
		if err := m.ApplyHold("second"); err != nil {
			t.Fatal(err)
		}
		m.sees()
	})
}

// TestRemovalOfAPatch: what it changes and adds would go; one that changes nothing goes unasked.
func TestRemovalOfAPatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		w.answer(w.asked())
		w.sees("a1=11", "a2=22", "a2-copy=2", "b=3")
		w.mid.State.Roster.Rules.Patches = func(string, *corev3.Node) []string { return nil }
		without := w.mid.State.Roster.Rules
		w.mid.State.Roster.Rules.Patches = w.cfg.Patches
		var why []string
		err := w.Removal(t.Context(), "upper", without, func(_ *guard.Difference, said []string) error { why = said; return errStays })
		if !errors.Is(err, errStays) || len(why) != 1 || !strings.Contains(why[0], "what it makes of 3 Ts would go from 1 proxy: a1, a2, a2-copy") {
			t.Errorf("%v, %q", err, why)
		}
		w.sees("a1=11", "a2=22", "a2-copy=2", "b=3")
	})
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		for _, call := range w.asked() {
			w.upper.send(&pb.FromPlugin{Patched: &pb.Patched{Id: call.Id}})
		}
		w.sees("a1=1", "a2=2", "b=3")
		r, goes := w.removing("upper", true)
		if err := over(t, goes); err != nil || len(r.why) > 0 {
			t.Errorf("%v, %q", err, r.why)
		}
	})
}

// TestRemovalOfAnAuthenticator: callers that no other one knows would be unknown.
func TestRemovalOfAnAuthenticator(t *testing.T) {
	for name, second := range map[string]bool{"the only one": false, "one of two that know the caller": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shown := &caller.Credentials{Headers: map[string]string{"authorization": "Bearer secret-of-p"}}
				known := func(name string) state.Expected {
					return state.Expected{Name: name, Kind: pb.KindAuthenticator, Limits: state.Limits{Call: time.Second}}
				}
				b := newBench(t, func(cfg *Config) {
					cfg.Shown = func(context.Context) (*caller.Credentials, error) { return shown, nil }
				}, known("first"), known("second"))
				first, other := b.join("first", &pb.Ready{}), b.join("second", &pb.Ready{})
				b.stream("p")
				r, stays := b.removing("first", false)
				first.accept(asked(first).Id, webIdentity)
				if q := asked(other); second {
					other.accept(q.Id, webIdentity)
				} else {
					other.reject(q.Id, "who is that?")
				}
				if err := over(t, stays); !errors.Is(err, errStays) || second != (len(r.why) == 0) ||
					!second && r.why[0] != "the caller of p would be unknown" {
					t.Errorf("%v, %q", err, r.why)
				}
			})
		})
	}
}
