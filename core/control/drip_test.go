package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// second adds a registry beside that of a mirror, with these services; each has an endpoint.
func (m *mirror) second(names ...string) *plugin {
	m.t.Helper()
	if err := m.Declare(state.Expected{Name: "second", Kind: pb.KindRegistry, Order: 9}, m.mid.State.Roster.Rules); err != nil {
		m.t.Fatal(err)
	}
	p := m.join("second", readyMemory())
	for _, n := range names {
		p.rows("services", nil, row(n, "m"))
		p.rows("endpoints", nil, row(n+"/http/1.1.1.1:80", "1"))
	}
	p.synced()
	m.run()
	return p
}

// TestRegistryThatHasNothingLeft: the last endpoint of a registry and its last row are held, though
// other registries have more.
func TestRegistryThatHasNothingLeft(t *testing.T) {
	for name, c := range map[string]struct {
		has  []string
		do   func(m *mirror, p *plugin)
		want string
	}{
		"its only endpoint": {[]string{"ns/x.com"}, func(_ *mirror, p *plugin) {
			p.send(deletes("endpoints", "ns/x.com/http/1.1.1.1:80"))
		}, "plugin second would have none of its 1 endpoint"},
		"its only service": {[]string{"ns/x.com"}, func(_ *mirror, p *plugin) {
			p.send(deletes("endpoints", "ns/x.com/http/1.1.1.1:80"))
			p.send(deletes("services", "ns/x.com"))
		}, "plugin second would have none of its"},
		"one after the other": {[]string{"ns/x.com", "ns/y.com"}, func(m *mirror, p *plugin) {
			p.send(deletes("endpoints", "ns/x.com/http/1.1.1.1:80"))
			m.run()
			m.holds()
			p.send(deletes("endpoints", "ns/y.com/http/1.1.1.1:80"))
		}, "plugin second would have none of its 1 endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMirror(t, "ns/a.com", "ns/b.com", "ns/c.com", "ns/d.com")
				p := m.second(c.has...)
				c.do(m, p)
				m.run()
				m.holds("second")
				if got := strings.Join(m.Holds()[0].Reasons, "; "); !strings.Contains(got, c.want) {
					t.Errorf("reasons %s", got)
				}
				if !slices.Contains(m.proxy.names(typeA), c.has[0]+"=m") && len(c.has) == 1 {
					t.Errorf("the proxy has %v", m.proxy.names(typeA))
				}
				// Another endpoint comes for the one that went.
				p.rows("services", nil, row(c.has[0], "m"))
				for _, n := range c.has {
					p.rows("endpoints", nil, row(n+"/http/1.1.1.2:80", "1"))
				}
				m.run()
				m.holds()
			})
		})
	}
}

// TestSingleThingThatIsAllOfAProxy: one service of several is taken away, and a proxy would have
// nothing of a type.
func TestSingleThingThatIsAllOfAProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror(t, "ns/a.com", "ns/b.com", "ns/c.com")
		m.g.send(&pb.FromPlugin{Change: &pb.Change{Revision: m.at, Type: typeA, View: 1, Removes: []string{"a"}}}) // what newWorld left
		m.m.rows("services", nil, row("ns/a.com", "none"), row("ns/b.com", "none"))
		m.run()
		m.holds("memory")
		if err := m.ApplyHold("memory"); err != nil {
			t.Fatal(err)
		}
		m.run()
		m.sees("c.com")
		m.deletes("ns/c.com")
		m.run()
		m.holds("memory")
		m.sees("c.com")
	})
}

// TestDrips: what a source takes away one by one adds up for half a minute, and is counted anew
// when it was let through.
func TestDrips(t *testing.T) {
	names := make([]string, 20)
	for i := range names {
		names[i] = fmt.Sprintf("ns/%c.com", 'a'+i)
	}
	for name, c := range map[string]struct {
		what  func(m *mirror, name string)
		pause time.Duration
		held  bool
	}{
		"services":              {func(m *mirror, n string) { m.deletes(n) }, 100 * time.Millisecond, true},
		"services' endpoints":   {func(m *mirror, n string) { m.m.send(deletes("endpoints", n+"/http/1.1.1.1:80")) }, 500 * time.Millisecond, true},
		"services now and then": {func(m *mirror, n string) { m.deletes(n) }, time.Minute, false},
		"services that come back": {func(m *mirror, n string) {
			m.deletes(n)
			m.run()
			m.m.rows("services", nil, row(n, "m"))
			m.m.rows("endpoints", nil, row(n+"/http/1.1.1.1:80", "1"))
		}, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMirror(t, names...)
				drip := func(names ...string) {
					for _, n := range names {
						c.what(m, n)
						m.run()
						time.Sleep(c.pause)
					}
				}
				if drip(names[:10]...); len(m.Holds()) > 0 {
					t.Fatalf("half of them are held: %+v", m.Holds())
				}
				if drip(names[10:14]...); !c.held {
					m.holds()
					return
				}
				m.holds("memory")
				if got := strings.Join(m.Holds()[0].Reasons, "; "); !strings.Contains(got, "would have gone within 30s") {
					t.Errorf("reasons %s", got)
				}
				if err := m.ApplyHold("memory"); err != nil {
					t.Fatal(err)
				}
				m.run()
				drip(names[14])
				m.holds()
			})
		})
	}
}

// TestEditsThatEmptyAService: a service that stays would have no endpoints, by one edit of several;
// by one alone that is meant.
func TestEditsThatEmptyAService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f, d, g := chain(t)
		for i := range 5 {
			f.rows(entryRow, nil, row(fmt.Sprint("ns/", i), "1"))
		}
		// run derives a service of each entry, with an endpoint if the entry says 1.
		run := func() {
			for range 4 {
				time.Sleep(150 * time.Millisecond)
				if s := d.state(); s != nil {
					for _, table := range s.Tables {
						for _, r := range table.Upserts {
							d.rows("services", s.Revision, row(r.Key+".com", "s"))
							e := r.Key + ".com/http/1.1.1.1:80"
							if string(r.Payload) == "1" {
								d.rows("endpoints", s.Revision, row(e, "1"))
								continue
							}
							d.send(&pb.FromPlugin{Rows: &pb.Rows{Revision: s.Revision, Tables: []*pb.TableRows{{Table: "endpoints", Deletes: []string{e}}}}})
						}
					}
					d.done(s.Revision)
				}
				if s := g.state(); s != nil {
					g.done(s.Revision)
				}
			}
		}
		run()
		f.rows(entryRow, nil, row("ns/0", "none"))
		run()
		if held := b.Holds(); len(held) > 0 {
			t.Fatalf("%+v", held)
		}
		f.rows(entryRow, nil, row("ns/1", "none"))
		f.send(deletes(entryRow, "ns/a"))
		run()
		if held := b.Holds(); len(held) != 1 || !strings.Contains(held[0].Reasons[0], "service ns/1.com, which stays, would have no endpoints") {
			t.Errorf("held: %+v", held)
		}
	})
}
