package control

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/report"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

func TestAbsence(t *testing.T) {
	t0 := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	for _, c := range []struct {
		name  string
		after time.Duration
		do    func(a *state.Absence)
		due   time.Time
		over  map[int]bool
	}{
		{"it is there", time.Minute, func(*state.Absence) {}, time.Time{}, map[int]bool{0: false, 3600: false}},
		{"away for a minute", time.Minute, func(a *state.Absence) { a.Begins("x", at(0)) }, at(60), map[int]bool{0: false, 59: false, 60: true, 3600: true}},
		{
			"away twice is away since the first time", time.Minute,
			func(a *state.Absence) { a.Begins("x", at(0)); a.Begins("y", at(30)) }, at(60),
			map[int]bool{59: false, 60: true},
		},
		{"back in time", time.Minute, func(a *state.Absence) { a.Begins("x", at(0)); a.Ends() }, time.Time{}, map[int]bool{3600: false}},
		{
			"away again", time.Minute,
			func(a *state.Absence) { a.Begins("x", at(0)); a.Ends(); a.Begins("x", at(100)) }, at(160),
			map[int]bool{159: false, 160: true},
		},
		{"the default never drops", 0, func(a *state.Absence) { a.Begins("x", at(0)) }, time.Time{}, map[int]bool{1 << 30: false}},
	} {
		a := state.Absence{After: c.after}
		c.do(&a)
		if a.Due() != c.due {
			t.Errorf("%s: due at %v, want %v", c.name, a.Due(), c.due)
		}
		for s, want := range c.over {
			if a.Over(at(s)) != want {
				t.Errorf("%s: after %d s it is over: %v, want %v", c.name, s, !want, want)
			}
		}
	}
}

// dropping is a mirror whose source's rows go after five minutes.
func dropping(t *testing.T, after time.Duration) *mirror {
	m := newMirror(t, "ns/a.com", "ns/b.com", "ns/c.com")
	m.mid.State.Roster.Plugins["memory"].Expected.DropAfter, m.mid.State.Roster.Plugins["memory"].Absence.After = after, after
	return m
}

func lost(why string) *pb.FromPlugin { return &pb.FromPlugin{Lost: &pb.Lost{Reason: why}} }

func found() *pb.FromPlugin { return &pb.FromPlugin{Found: &pb.Found{}} }

func (m *mirror) away(want *report.Away) {
	m.t.Helper()
	if d := cmp.Diff(want, m.PluginRows()["memory"].Away); d != "" {
		m.t.Error(d)
	}
}

// TestRowsOfALostSourceAreDropped: after drop-after, not before; they come back with it, as it has
// them by then; nothing is held.
func TestRowsOfALostSourceAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := dropping(t, 5*time.Minute)
		began := time.Now()
		m.m.send(lost("connection refused"))
		m.away(&report.Away{Since: began.UTC(), Why: "connection refused", Drops: began.Add(5 * time.Minute).UTC()})
		time.Sleep(5*time.Minute - time.Second)
		m.run()
		m.sees("a.com", "b.com", "c.com")
		time.Sleep(2 * time.Second)
		m.run()
		m.sees()
		m.holds()
		m.away(&report.Away{Since: began.UTC(), Why: "connection refused", Drops: began.Add(5 * time.Minute).UTC(), Dropped: true})
		want := []report.TableRows{
			{Table: "endpoints", Hidden: []report.HiddenRows{
				{Reason: "onLoss", Text: "the source is away for longer than onLoss allows (drop-after: 5m0s)", Rows: 3, Example: "ns/a.com/http/1.1.1.1:80"},
			}},
			{Table: "services", Hidden: []report.HiddenRows{
				{Reason: "onLoss", Text: "the source is away for longer than onLoss allows (drop-after: 5m0s)", Rows: 3, Example: "ns/a.com"},
			}},
		}
		if d := cmp.Diff(want, m.TableRows("memory")); d != "" {
			t.Error(d)
		}
		m.deletes("ns/b.com") // it learns of that while it is away
		m.m.rows("services", nil, row("ns/d.com", "m"))
		m.run()
		m.sees()
		m.m.send(found())
		m.run()
		m.sees("a.com", "c.com", "d.com")
		m.away(nil)
		m.holds()
	})
}

// TestTheDefaultNeverDrops.
func TestTheDefaultNeverDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := dropping(t, 0)
		began := time.Now()
		m.m.send(lost("connection refused"))
		time.Sleep(100 * time.Hour)
		m.run()
		m.sees("a.com", "b.com", "c.com")
		m.away(&report.Away{Since: began.UTC(), Why: "connection refused"})
	})
}

// TestRowsOfADeadPluginAreDropped: a plugin that dies is away, and is so until it has said all
// again; one that starts and does not get that far is away since it died.
func TestRowsOfADeadPluginAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := dropping(t, 5*time.Minute)
		_ = m.m.kill()
		time.Sleep(3 * time.Minute)
		m.m = m.join("memory", readyMemory())
		m.m.rows("services", nil, row("ns/a.com", "m"))
		m.m.send(lost("connection refused"))
		m.run()
		m.sees("a.com", "b.com", "c.com")
		time.Sleep(2*time.Minute + time.Second)
		m.run()
		m.sees()
		m.m.rows("services", nil, row("ns/e.com", "m"))
		m.m.synced()
		m.run()
		m.sees() // it has not said that its source is back
		m.m.send(found())
		m.run()
		m.sees("a.com", "e.com")
		m.holds()
	})
}

// TestSwapOfALostSource: the new instance has what the old one lacks, and its rows count at once.
func TestSwapOfALostSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := dropping(t, 5*time.Minute)
		m.m.send(lost("connection refused"))
		time.Sleep(6 * time.Minute)
		m.run()
		m.sees()
		trial, err := m.Operator().Try(m.mid.State.Roster.Plugins["memory"].Expected, m.mid.State.Roster.Rules)
		if err != nil {
			t.Fatal(err)
		}
		next := m.candidate("memory", readyMemory())
		next.rows("services", nil, row("ns/a.com", "m"), row("ns/b.com", "m"))
		next.rows("endpoints", nil, row("ns/a.com/http/1.1.1.1:80", "1"))
		next.synced()
		if err := trial.Switch(t.Context(), m.mid.State.Roster.Rules, anyway); err != nil {
			t.Fatal(err)
		}
		m.run()
		m.sees("a.com", "b.com")
		m.away(nil)
		m.m.send(lost("still")) // the old one, which nobody is served by
		time.Sleep(10 * time.Minute)
		m.run()
		m.sees("a.com", "b.com")
	})
}

// merged is a mirror beside which a second registry has the same services, with a priority.
func merged(t *testing.T, priority int, names ...string) (*mirror, *plugin) {
	m := newMirror(t, names...)
	if err := m.Declare(state.Expected{Name: "consul", Kind: pb.KindRegistry, Order: 9, Priority: priority}, m.mid.State.Roster.Rules); err != nil {
		t.Fatal(err)
	}
	consul := m.join("consul", readyMemory())
	for _, n := range names {
		consul.rows("services", nil, row(n, "c"))
		consul.rows("endpoints", nil, row(n+"/http/2.2.2.2:80", "1"))
	}
	consul.synced()
	m.run()
	return m, consul
}

// endpoints are the addresses that are served of a service.
func (m *mirror) endpoints(service string) (all []string) {
	for _, r := range m.Rows("endpoints") {
		if environment.ServiceOf(r.Key) == service {
			all = append(all, r.Key[strings.LastIndex(r.Key, "/")+1:])
		}
	}
	slices.Sort(all)
	return all
}

// TestTwoRegistries by priority and by union: what is removed from the preferred one is the
// other's, and when the preferred one dies nothing changes.
func TestTwoRegistries(t *testing.T) {
	for priority, want := range map[int]string{0: "[1.1.1.1:80 2.2.2.2:80]", 10: "[2.2.2.2:80]", -10: "[1.1.1.1:80]"} {
		synctest.Test(t, func(t *testing.T) {
			m, consul := merged(t, priority, "ns/a.com", "ns/b.com", "ns/c.com", "ns/d.com")
			check := func(what, service, want string) {
				t.Helper()
				if got := fmt.Sprint(m.endpoints(service)); got != want {
					t.Errorf("priority %d, %s: %s has %s, want %s", priority, what, service, got, want)
				}
			}
			check("both have it", "ns/a.com", want)
			consul.send(deletes("endpoints", "ns/a.com/http/2.2.2.2:80"))
			consul.send(deletes("services", "ns/a.com"))
			m.run()
			check("one has it no more", "ns/a.com", "[1.1.1.1:80]")
			check("another service", "ns/b.com", want)
			m.holds()
			_ = consul.kill()
			time.Sleep(time.Hour)
			m.run()
			check("one is dead", "ns/b.com", want)
			rows := m.TableRows("memory")
			if hidden := rows[0].Hidden; priority == 10 &&
				(len(hidden) != 1 || hidden[0].By != "consul" || hidden[0].Reason != "priority" || hidden[0].Rows != 3 || rows[0].Served != 1) {
				t.Errorf("rows of endpoints: %+v", rows[0])
			}
		})
	}
}

// TestServicesMoveToAnotherRegistry: most of what a registry has may go at once where another one
// has it, too.
func TestServicesMoveToAnotherRegistry(t *testing.T) {
	for _, priority := range []int{0, 10} {
		synctest.Test(t, func(t *testing.T) {
			names := []string{"ns/a.com", "ns/b.com", "ns/c.com", "ns/d.com", "ns/e.com", "ns/f.com", "ns/g.com", "ns/h.com"}
			m, consul := merged(t, priority, names...)
			var endpoints []string
			for _, n := range names[1:] {
				endpoints = append(endpoints, n+"/http/2.2.2.2:80")
			}
			consul.send(deletes("services", names[1:]...))
			consul.send(deletes("endpoints", endpoints...))
			m.run()
			m.holds()
			for _, n := range names[1:] {
				if got := fmt.Sprint(m.endpoints(n)); got != "[1.1.1.1:80]" {
					t.Errorf("priority %d: %s has %s", priority, n, got)
				}
			}
			m.m.send(deletes("services", names[1:]...)) // and the other one loses them, too
			for _, n := range names[1:] {
				m.m.send(deletes("endpoints", n+"/http/1.1.1.1:80"))
			}
			m.run()
			m.holds("memory")
		})
	}
}

// TestPreferredSourceThatIsDropped: the services are the other registry's once onLoss allows no
// more, and the preferred one's again when it is back.
func TestPreferredSourceThatIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, consul := merged(t, 10, "ns/a.com", "ns/b.com", "ns/c.com")
		m.mid.State.Roster.Plugins["consul"].Absence.After = time.Minute
		for _, step := range []struct {
			say  *pb.FromPlugin
			wait time.Duration
			want string
		}{{lost("x"), 59 * time.Second, "[2.2.2.2:80]"}, {nil, 2 * time.Second, "[1.1.1.1:80]"}, {found(), time.Second, "[2.2.2.2:80]"}} {
			if step.say != nil {
				consul.send(step.say)
			}
			time.Sleep(step.wait)
			m.run()
			if got := fmt.Sprint(m.endpoints("ns/b.com")); got != step.want {
				t.Errorf("%s are served, want %s", got, step.want)
			}
			m.sees("a.com", "b.com", "c.com")
			m.holds()
		}
	})
}

// TestDropLetsNothingElseThrough: what a generator would take away stays held while a source's rows
// are dropped.
func TestDropLetsNothingElseThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, consul := merged(t, 0, "ns/a.com", "ns/b.com")
		m.mid.State.Roster.Plugins["consul"].Absence.After = time.Minute
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
		m.holds("istio")
		consul.send(lost("x"))
		time.Sleep(2 * time.Minute)
		m.run()
		if a := m.PluginRows()["consul"].Away; a == nil || !a.Dropped {
			t.Fatalf("it is not dropped: %+v", a)
		}
		m.holds("istio")
		m.sees("a.com", "b.com")
		if err := m.ApplyHold("istio"); err != nil {
			t.Fatal(err)
		}
		m.run()
		m.holds()
	})
}

// TestSourceThatFlaps: what comes and goes a thousand times a second makes few lines, and is shown
// as it is in the end.
func TestSourceThatFlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		b := newBench(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }, memory, istio)
		m := &mirror{world: newWorldOf(b), bodies: 100, has: map[string]bool{}}
		m.run()
		for range 1000 {
			m.m.send(lost("connection refused"), found())
		}
		m.m.send(lost("for good"))
		synctest.Wait()
		if n := strings.Count(log.String(), "source is"); n < 2 || n > 20 {
			t.Errorf("%d lines", n)
		}
		m.away(&report.Away{Since: time.Now().UTC(), Why: "for good"})
	})
}
