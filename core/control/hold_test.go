package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/report"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

// mirror plays a generator that serves to one view of type A what the table services has, a
// resource for each row.
type mirror struct {
	*world
	bodies uint64
	has    map[string]bool
	each   func() // called after each revision; may be nil
}

// newMirror is a world with these services, which a proxy has; each has an endpoint.
func newMirror(t *testing.T, names ...string) *mirror {
	m := &mirror{world: newWorld(t), bodies: 100, has: map[string]bool{"ns/a.com": true}}
	var services, endpoints []*pb.Row
	for _, n := range names {
		services = append(services, row(n, "m"))
		endpoints = append(endpoints, row(n+"/http/1.1.1.1:80", "1"))
	}
	m.m.rows("endpoints", nil, endpoints...)
	m.m.rows("services", nil, services...)
	m.run()
	return m
}

// run lets revisions come and answers them until there are no more.
func (m *mirror) run() {
	m.t.Helper()
	for range 10 {
		time.Sleep(150 * time.Millisecond)
		s := m.g.state()
		if s == nil {
			return
		}
		for _, t := range s.Tables {
			if t.Table != "services" {
				continue
			}
			for _, r := range t.Upserts {
				m.bodies++
				m.g.send(body(m.bodies, string(r.Payload)), change(typeA, 1, s.Revision, &pb.Entry{Name: r.Key, Body: m.bodies}))
				if m.has[r.Key] = true; string(r.Payload) == "none" {
					m.g.send(&pb.FromPlugin{Change: &pb.Change{Revision: s.Revision, Type: typeA, View: 1, Removes: []string{r.Key}}})
				}
			}
			if len(t.Deletes) > 0 {
				m.g.send(&pb.FromPlugin{Change: &pb.Change{Revision: s.Revision, Type: typeA, View: 1, Removes: t.Deletes}})
			}
		}
		if m.g.done(s.Revision); m.each != nil {
			m.each()
		}
	}
	m.t.Fatal("revisions without end")
}

func (m *mirror) sees(names ...string) {
	m.t.Helper()
	var got []string
	for _, r := range m.proxy.names(typeA) {
		if name, _, _ := strings.Cut(r, "="); name != "a" {
			got = append(got, strings.TrimPrefix(name, "ns/"))
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(names, got); diff != "" {
		m.t.Errorf("the proxy has: %s", diff)
	}
}

func (m *mirror) holds(want ...string) {
	m.t.Helper()
	var got []string
	for _, h := range m.Holds() {
		got = append(got, h.Plugin)
	}
	if !slices.Equal(got, want) {
		m.t.Errorf("held are %v, want %v: %+v", got, want, m.Holds())
	}
}

func (m *mirror) deletes(names ...string) {
	m.m.send(deletes("services", names...))
	for i, n := range names {
		names[i] = n + "/http/1.1.1.1:80"
	}
	m.m.send(deletes("endpoints", names...))
}

// TestGreatLossIsHeld: what a running source takes away is not served, and what it says of the rest
// is.
func TestGreatLossIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, "ns/a.com", "ns/b.com", "ns/c.com", "ns/d.com")
		m.sees("a.com", "b.com", "c.com", "d.com")
		served := m.Revision().Number
		m.deletes("ns/a.com", "ns/b.com", "ns/c.com")
		m.run()
		m.sees("a.com", "b.com", "c.com", "d.com")
		m.holds("memory")
		if h, err := m.Hold("memory"); err != nil || h.Rows != 6 || h.Difference.String() != "−3 endpoints −3 services" ||
			!strings.Contains(strings.Join(h.Reasons, "; "), "3 of 4 services would go") || h.Proxies != 1 {
			t.Errorf("%+v, %v", h, err)
		}
		if h := m.PluginRows()["memory"].Held; h == nil || !slices.Contains(h.Names, report.RowName{Table: "services", Key: "ns/b.com"}) || len(h.Names) != 6 {
			t.Errorf("people see %+v", h)
		}
		if m.Revision().Number <= served {
			t.Error("the revision that undoes it is not served")
		}
		m.m.rows("services", nil, row("ns/e.com", "1"))
		m.run()
		m.sees("a.com", "b.com", "c.com", "d.com", "e.com")
		m.holds("memory")
		// The source says it again, with one less.
		m.deletes("ns/a.com")
		m.m.rows("services", nil, row("ns/b.com", "m"))
		m.run()
		if h := m.Holds(); len(h) != 1 || h[0].Rows != 5 {
			t.Errorf("%+v", h)
		}
		if err := m.ApplyHold("memory"); err != nil {
			t.Fatal(err)
		}
		m.run()
		m.sees("b.com", "d.com", "e.com")
		m.holds()
		if err := m.ApplyHold("memory"); err == nil {
			t.Error("nothing is held, and it was applied")
		}
	})
}

// TestHoldThatIsRepaired: it ends when the source says again what is served.
func TestHoldThatIsRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, "ns/a.com", "ns/b.com")
		m.deletes("ns/a.com", "ns/b.com")
		m.run()
		m.holds("memory")
		m.sees("a.com", "b.com")
		m.m.rows("services", nil, row("ns/a.com", "m"), row("ns/b.com", "m"))
		m.m.rows("endpoints", nil, row("ns/a.com/http/1.1.1.1:80", "1"), row("ns/b.com/http/1.1.1.1:80", "1"))
		m.run()
		m.holds()
		m.sees("a.com", "b.com")
		m.deletes("ns/a.com")
		m.run()
		m.sees("b.com")
	})
}

// TestSourceThatComesBackWithLess is held; dropped, it is asked anew and judged anew.
func TestSourceThatComesBackWithLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, "ns/a.com", "ns/b.com", "ns/c.com")
		again := func(names ...string) {
			_ = m.m.kill()
			m.m = m.join("memory", readyMemory())
			for _, n := range names {
				m.m.rows("services", nil, row(n, "m"))
				m.m.rows("endpoints", nil, row(n+"/http/1.1.1.1:80", "1"))
			}
			m.m.synced()
			m.run()
		}
		again()
		m.sees("a.com", "b.com", "c.com")
		m.holds("memory")
		again("ns/b.com")
		m.sees("a.com", "b.com", "c.com")
		m.holds("memory")
		if err := m.DropHold("memory"); err != nil {
			t.Fatal(err)
		}
		if err := <-m.m.end; err == nil || !strings.Contains(err.Error(), "judged anew") {
			t.Errorf("the session ended with %v", err)
		}
		m.m.end <- nil
		again("ns/a.com", "ns/b.com")
		m.sees("a.com", "b.com")
		m.holds()
	})
}

// TestDailyDeeds are one step.
func TestDailyDeeds(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(m *mirror)
		want []string
	}{
		"one of two services":   {func(m *mirror) { m.deletes("ns/a.com") }, []string{"b.com"}},
		"one is scaled to zero": {func(m *mirror) { m.m.send(deletes("endpoints", "ns/a.com/http/1.1.1.1:80")) }, []string{"a.com", "b.com"}},
		"all are renamed": {func(m *mirror) {
			m.m.rows("services", nil, row("ns/x.com", "1"), row("ns/y.com", "1"))
			m.m.rows("endpoints", nil, row("ns/x.com/http/1.1.1.1:80", "1"), row("ns/y.com/http/1.1.1.1:80", "1"))
			m.deletes("ns/a.com", "ns/b.com")
		}, []string{"x.com", "y.com"}},
		"all have other ports": {func(m *mirror) {
			m.m.send(deletes("endpoints", "ns/a.com/http/1.1.1.1:80", "ns/b.com/http/1.1.1.1:80")) // and none for a moment
			m.m.rows("endpoints", nil, row("ns/a.com/http/1.1.1.1:81", "1"), row("ns/b.com/http/1.1.1.1:81", "1"))
			m.m.rows("services", nil, row("ns/a.com", "81"), row("ns/b.com", "81"))
		}, []string{"a.com", "b.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMirror(t, "ns/a.com", "ns/b.com")
				c.do(m)
				m.run()
				m.holds()
				m.sees(c.want...)
			})
		})
	}
}

// TestEditThatEmptiesAView: one row is changed, and a proxy would lose all of a type.
func TestEditThatEmptiesAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, "ns/a.com", "ns/b.com")
		m.g.send(&pb.FromPlugin{Change: &pb.Change{Revision: m.at, Type: typeA, View: 1, Removes: []string{"a"}}}) // what newWorld left
		m.m.rows("services", nil, row("ns/a.com", "none"), row("ns/b.com", "none"))
		m.run()
		m.sees("a.com", "b.com")
		m.holds("memory")
		if got := m.Holds()[0].Reasons; len(got) != 1 || !strings.Contains(got[0], "2 of 2 As would go from 1 proxy") {
			t.Errorf("reasons %v", got)
		}
	})
}

// TestGeneratorThatMakesLess: no row changed; the proxy keeps what it has until somebody decides,
// and others are served.
func TestGeneratorThatMakesLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, "ns/a.com", "ns/b.com")
		_ = m.g.kill()
		m.g = m.join("istio", readyIstio())
		s := m.g.state()
		m.g.done(s.Revision)
		m.g.send(describe(typeA, 1), place(m.proxy.ID(), typeA, 1, s.Revision))
		for _, w := range m.g.others() {
			if w.Want != nil {
				m.g.send(wanted(w.Want.Id, s.Revision))
			}
		}
		m.run()
		m.sees("a.com", "b.com")
		m.holds("istio")
		if err := m.ApplyHold("istio"); err != nil {
			t.Fatal(err)
		}
		m.sees()
		m.holds()
	})
}

// TestRowsWithoutProxies are judged themselves.
func TestRowsWithoutProxies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f, d, g := chain(t)
		all := []string{"ns/a"}
		for i := range 5 {
			all = append(all, fmt.Sprint("ns/", i))
			f.rows(entryRow, nil, row(all[i+1], "1"))
		}
		run := func() {
			for range 4 {
				time.Sleep(150 * time.Millisecond)
				if s := d.state(); s != nil {
					d.done(s.Revision)
				}
				if s := g.state(); s != nil {
					g.done(s.Revision)
				}
			}
		}
		run()
		f.send(deletes(entryRow, all[:4]...))
		run()
		if h := b.Holds(); len(h) != 1 || h[0].Plugin != "files" || !strings.Contains(h[0].Reasons[0], "4 of 6 rows of plugin files would go") {
			t.Errorf("held: %+v", h)
		}
		if n := len(b.Rows(entryRow)); n != 6 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// TestOnLossApply lets everything through.
func TestOnLossApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, "ns/a.com", "ns/b.com", "ns/c.com")
		m.mid.State.Roster.Plugins["memory"].Expected.LossApplies = true
		m.deletes("ns/a.com", "ns/b.com", "ns/c.com")
		m.run()
		m.sees()
		m.holds()
	})
}

// TestGeneratorThatStaysAway: what is taken away one by one meanwhile does not add up.
func TestGeneratorThatStaysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, "ns/a.com", "ns/b.com", "ns/c.com", "ns/d.com", "ns/e.com")
		if err := m.Declare(state.Expected{Name: "second", Kind: pb.KindGenerator, Order: 8}, m.mid.State.Roster.Rules); err != nil {
			t.Fatal(err)
		}
		second := m.join("second", readyIstio())
		for range 3 {
			if s := second.state(); s != nil {
				second.done(s.Revision)
			}
			m.run()
		}
		_ = second.kill()
		time.Sleep(20 * time.Second)
		for _, name := range []string{"ns/a.com", "ns/b.com", "ns/c.com", "ns/d.com"} {
			m.deletes(name)
			m.run()
			time.Sleep(time.Minute)
		}
		m.holds()
		m.sees("e.com")
	})
}
