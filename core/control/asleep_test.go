package control

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/grpc/codes"
)

// A generator that starts on demand: it sleeps until somebody asks for its type, holds nothing up
// meanwhile, and sleeps again when nobody does.
func TestOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var woken []string
		b := newBench(t, func(c *Config) { c.OnWanted = func(name string) { woken = append(woken, name) } },
			memory, state.Expected{Name: "lazy", Kind: pb.KindGenerator, OnDemand: true})
		lazy := b.join("lazy", readyIstio())
		if err := <-lazy.end; !errors.Is(err, host.ErrAsleep) {
			t.Fatalf("nobody asks, and Serve returns %v", err)
		}
		m := b.join("memory", readyMemory())
		m.rows("services", nil, row("ns/a.com", "1"))
		m.synced()
		synctest.Wait()
		if why := b.Ready(); len(why) > 0 {
			t.Fatalf("the first revision waits for %v", why)
		}
		p := b.stream("p")
		if _, ok := p.Offers(typeA); !ok {
			t.Fatal("its type is not offered while it sleeps")
		}
		if synctest.Wait(); len(woken) > 0 {
			t.Errorf("a connection alone wakes %v", woken)
		}
		p.Subscribe(typeA, true, nil)
		p.Subscribe(typeB, true, nil)
		if synctest.Wait(); !slices.Equal(woken, []string{"lazy"}) {
			t.Errorf("asking for two types woke %v", woken)
		}

		lazy = b.join("lazy", readyIstio())
		at := lazy.state()
		if at == nil || !slices.Equal(keys(at), []string{"services ns/a.com=1"}) {
			t.Fatalf("it was sent %v", keys(at))
		}
		lazy.send(describe(typeA, 1), place(p.ID(), typeA, 1, at.Revision), body(1, "v1"), change(typeA, 1, at.Revision, &pb.Entry{Name: "a", Body: 1}))
		lazy.done(at.Revision)
		for _, msg := range lazy.others() {
			if msg.Want != nil {
				lazy.send(wanted(msg.Want.Id, at.Revision))
			}
		}
		if synctest.Wait(); !slices.Equal(p.names(typeA), []string{"a=v1"}) {
			t.Errorf("the proxy has %v", p.names(typeA))
		}

		time.Sleep(2 * state.SleepAfter)
		if synctest.Wait(); len(lazy.end) > 0 {
			t.Fatal("it sleeps while a proxy needs it")
		}
		p.Close()
		time.Sleep(2 * state.SleepAfter)
		if err := <-lazy.end; !errors.Is(err, host.ErrAsleep) {
			t.Errorf("nobody asks any more, and Serve returns %v", err)
		}
		m.rows("services", nil, row("ns/a.com", "2"))
		before := time.Now()
		time.Sleep(time.Second)
		if got := b.Revision(); got.Number <= at.Revision.Number || len(got.Partial) > 0 {
			t.Errorf("a second after %v revision %v is served", before, got)
		}
		b.stream("q").Subscribe(typeA, true, nil)
		if synctest.Wait(); len(woken) != 2 {
			t.Errorf("it was not woken again: %v", woken)
		}
	})
}

// A source or controller that starts on demand sleeps while there is nothing for it to read, and
// holds no revision up.
func TestReaderOnDemand(t *testing.T) {
	for _, kind := range []pb.Kind{pb.KindConfig, pb.KindController} {
		t.Run(kind.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testReaderOnDemand(t, kind) }) })
	}
}

// TestLearn: one that is known without a session sleeps, and wakes up at once if somebody came
// before.
func TestLearn(t *testing.T) {
	for _, early := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var woken []string
			b := newBench(t, func(c *Config) { c.OnWanted = func(name string) { woken = append(woken, name) } },
				memory, state.Expected{Name: "lazy", Kind: pb.KindGenerator, OnDemand: true, Optional: early})
			inst := &host.Instance{Entry: &manifest.Entry{Name: "lazy"}, Ready: readyIstio()}
			m := b.join("memory", readyMemory())
			m.synced()
			synctest.Wait()
			if early {
				b.stream("p").Subscribe(typeA, true, nil)
			}
			if err := b.Learn(inst); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if why := b.Ready(); len(why) > 0 {
				t.Errorf("the first revision waits for %v", why)
			}
			if woke := len(woken) == 1; woke != early {
				t.Errorf("who asks came first: %v, and woken are %v", early, woken)
			}
			if !early {
				b.stream("p").Subscribe(typeA, true, nil)
				if synctest.Wait(); !slices.Equal(woken, []string{"lazy"}) {
					t.Errorf("asking for its type woke %v", woken)
				}
			}
			lazy := b.join("lazy", readyIstio())
			if at := lazy.state(); at == nil {
				t.Error("it is sent nothing once it runs")
			}
			if err := b.Learn(inst); err == nil {
				t.Error("it is learned anew while it runs")
			}
		})
	}
}

// TestLearnWhatCannotSleep: the rule is the same as for one that starts.
func TestLearnWhatCannotSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, state.Expected{Name: "lazy", Kind: pb.KindRegistry, OnDemand: true})
		if err := b.Learn(&host.Instance{Entry: &manifest.Entry{Name: "lazy"}, Ready: readyMemory()}); !errors.Is(err, state.ErrReads) {
			t.Error(err)
		}
		if err := b.Learn(&host.Instance{Entry: &manifest.Entry{Name: "other"}, Ready: readyMemory()}); err == nil {
			t.Error("one that is not declared is learned")
		}
	})
}

func testReaderOnDemand(t *testing.T, kind pb.Kind) {
	var woken []string
	b := newBench(t, func(c *Config) { c.OnWanted = func(name string) { woken = append(woken, name) } },
		state.Expected{Name: "memory", Kind: pb.KindRegistry, LossApplies: true}, state.Expected{Name: "keys", Kind: kind, OnDemand: true})
	ready := func() *pb.Ready {
		return &pb.Ready{Reads: []*pb.Read{{Table: "services"}}, Publishes: []string{"jwks"}}
	}
	pass := func(d time.Duration) {
		time.Sleep(d)
		synctest.Wait()
	}
	k := b.join("keys", ready())
	if err := <-k.end; !errors.Is(err, host.ErrAsleep) {
		t.Fatalf("there is nothing to read, and Serve returns %v", err)
	}
	m := b.join("memory", readyMemory())
	m.rows("endpoints", nil, row("ns/a.com/1", "1"))
	m.synced()
	if pass(time.Second); len(b.Ready()) > 0 || len(woken) > 0 {
		t.Fatalf("the first revision waits for %v; woken: %v", b.Ready(), woken)
	}
	m.rows("services", nil, row("ns/a.com", "1"))
	m.rows("services", nil, row("ns/b.com", "1"))
	if pass(time.Second); !slices.Equal(woken, []string{"keys"}) || len(b.Revision().Partial) > 0 {
		t.Fatalf("rows have woken %v; revision %+v", woken, b.Revision())
	}
	k = b.join("keys", ready())
	if got := keys(k.state()); !slices.Equal(got, []string{"services ns/a.com=1", "services ns/b.com=1"}) {
		t.Errorf("it was sent %v", got)
	}
	k.rows("jwks", nil, row("u", "set"))
	k.synced()
	if pass(2 * state.SleepAfter); len(k.end) > 0 {
		t.Fatal("it sleeps while there is something to read")
	}
	m.send(deletes("services", "ns/a.com", "ns/b.com"))
	pass(time.Second)
	k.send(deletes("jwks", "u"))
	pass(2 * state.SleepAfter)
	if err := <-k.end; !errors.Is(err, host.ErrAsleep) {
		t.Errorf("there is nothing to read any more, and Serve returns %v", err)
	}
	m.rows("services", nil, row("ns/c.com", "1"))
	if pass(time.Second); len(woken) != 2 {
		t.Errorf("it was not woken again: %v", woken)
	}
}

func deletes(table string, keys ...string) *pb.FromPlugin {
	return &pb.FromPlugin{Rows: &pb.Rows{Tables: []*pb.TableRows{{Table: table, Deletes: keys}}}}
}

// Nothing says when what reads no rows is needed, or what derives rows from others of its tables.
func TestOnDemandReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, state.Expected{Name: "lazy", Kind: pb.KindRegistry, OnDemand: true})
		for _, ready := range []*pb.Ready{
			readyMemory(),
			{Derives: true, Reads: []*pb.Read{{Table: "services", Sources: true}}, Publishes: []string{"services"}},
		} {
			if err := <-b.join("lazy", ready).end; !errors.Is(err, state.ErrReads) {
				t.Error(err)
			}
		}
	})
}

// sleepyChain is files and memory -> serviceentry, which starts on demand -> istio; past the first
// revision, for which nothing was to be derived.
func sleepyChain(t *testing.T, woken *[]string) (b *bench, f, m, g *plugin) {
	b = newBench(t, func(c *Config) { c.OnWanted = func(name string) { *woken = append(*woken, name) } },
		state.Expected{Name: "files", Kind: pb.KindConfig, LossApplies: true}, memory,
		state.Expected{Name: "serviceentry", Kind: pb.KindRegistry, OnDemand: true, LossApplies: true}, istio)
	if err := b.Learn(&host.Instance{Entry: &manifest.Entry{Name: "serviceentry"}, Ready: readySelecting()}); err != nil {
		t.Fatal(err)
	}
	f, m, g = b.join("files", readyFiles()), b.join("memory", readyMemory()), b.join("istio", readyIstio())
	f.rows("VirtualService", nil, row("ns/v", "1"))
	m.rows("services", nil, row("ns/m.com", "1"))
	f.synced()
	m.synced()
	g.done(g.state().Revision)
	if reasons := b.Ready(); len(reasons) > 0 || len(*woken) > 0 {
		t.Fatalf("the first revision waits for %v; woken: %v", reasons, *woken)
	}
	return b, f, m, g
}

// readySelecting is of a deriver that looks at what other registries have, too.
func readySelecting() *pb.Ready {
	r := readyEntries()
	r.Reads = append(r.Reads, &pb.Read{Table: "services", Sources: true})
	return r
}

// A deriver that starts on demand sleeps while there are no rows that it derives from. The revision
// of the first such row waits for it.
func TestDeriverOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var woken []string
		b, f, m, g := sleepyChain(t, &woken)
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		m.rows("services", nil, row("ns/m.com", "2"))
		pass(time.Second)
		if s := g.state(); s == nil || len(woken) > 0 {
			t.Fatalf("rows that it does not derive from: state %v; woken: %v", keys(s), woken)
		} else {
			g.done(s.Revision)
		}

		f.rows(entryRow, nil, row("ns/a", "1"))
		pass(time.Second)
		if s := g.state(); s != nil || !slices.Equal(woken, []string{"serviceentry"}) {
			t.Fatalf("the revision does not wait for it: state %v; woken: %v", keys(s), woken)
		}
		d := b.join("serviceentry", readySelecting())
		s := d.state()
		if got := keys(s); !slices.Equal(got, []string{"ServiceEntry ns/a=1", "services ns/m.com=2"}) {
			t.Fatalf("it was sent %v", got)
		}
		d.rows("services", s.Revision, row("ns/a.com", "from 1"))
		d.done(s.Revision)
		at := g.state()
		if got := keys(at); !slices.Equal(got, []string{"services ns/a.com=from 1"}) || at.Revision.Number != s.Revision.Number {
			t.Errorf("the generator was sent %v", got)
		}
		g.done(at.Revision)
		if synctest.Wait(); len(b.Revision().Partial) > 0 {
			t.Errorf("the revision is without %v", b.Revision().Partial)
		}

		if pass(2 * state.SleepAfter); len(d.end) > 0 {
			t.Fatal("it sleeps while there is something to derive from")
		}
		f.send(deletes(entryRow, "ns/a"))
		pass(time.Second)
		s = d.state()
		if pass(2 * state.SleepAfter); len(d.end) > 0 {
			t.Fatal("it sleeps while there is what it has derived")
		}
		d.send(&pb.FromPlugin{Rows: &pb.Rows{Revision: s.Revision, Tables: []*pb.TableRows{{Table: "services", Deletes: []string{"ns/a.com"}}}}})
		d.done(s.Revision)
		pass(time.Second)
		if at := g.state(); at != nil {
			g.done(at.Revision)
		}
		pass(2 * state.SleepAfter)
		if err := <-d.end; !errors.Is(err, host.ErrAsleep) {
			t.Errorf("there is nothing to derive from any more, and Serve returns %v", err)
		}
		f.rows(entryRow, nil, row("ns/b", "1"))
		if pass(time.Second); len(woken) != 2 {
			t.Errorf("it was not woken again: %v", woken)
		}
	})
}

// Whoever connects first is to have what is derived, too: the first revision is not begun before
// the deriver is there, however long that takes.
func TestDeriverOnDemandAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var woken []string
		b := newBench(t, func(c *Config) { c.OnWanted = func(name string) { woken = append(woken, name) } },
			files, state.Expected{Name: "serviceentry", Kind: pb.KindRegistry, OnDemand: true}, istio)
		if err := b.Learn(&host.Instance{Entry: &manifest.Entry{Name: "serviceentry"}, Ready: readySelecting()}); err != nil {
			t.Fatal(err)
		}
		f, g := b.join("files", readyFiles()), b.join("istio", readyIstio())
		f.rows(entryRow, nil, row("ns/a", "1"))
		f.synced()
		time.Sleep(time.Minute)
		if reasons := b.Ready(); !slices.Equal(reasons, []string{"plugin serviceentry, which rows ask for, has not started"}) || g.state() != nil {
			t.Fatalf("the first revision waits for %q", reasons)
		}
		d := b.join("serviceentry", readySelecting())
		s := d.state()
		d.rows("services", s.Revision, row("ns/a.com", "from 1"))
		d.done(s.Revision)
		if got := keys(g.state()); !slices.Equal(got, []string{"services ns/a.com=from 1"}) {
			t.Errorf("the generator was sent %v", got)
		}
		if !slices.Equal(woken, []string{"serviceentry"}) {
			t.Errorf("woken: %v", woken)
		}
	})
}

// A row that is committed in the moment in which the deriver is put to sleep is derived from in its
// own revision all the same.
func TestDeriverOnDemandIdle(t *testing.T) {
	// idle sends a row so long after the deriver has nothing left to derive from, 0 for none, and
	// returns after how long it slept.
	idle := func(t *testing.T, after time.Duration) (slept time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			var woken []string
			b, f, _, g := sleepyChain(t, &woken)
			f.rows(entryRow, nil, row("ns/a", "1"))
			time.Sleep(time.Second)
			d := b.join("serviceentry", readySelecting())
			d.done(d.state().Revision) // it makes nothing of it
			f.send(deletes(entryRow, "ns/a"))
			time.Sleep(time.Second)
			d.done(d.state().Revision)
			g.state()
			began := time.Now()
			if after == 0 {
				<-d.end
				slept = time.Since(began)
				return
			}
			time.Sleep(after)
			served := b.Revision().Number
			f.rows(entryRow, nil, row("ns/b", "1"))
			time.Sleep(time.Second)
			if now := b.Revision().Number; now != served {
				t.Errorf("a row after %v: revision %d is served before anything was derived", after, now)
			}
			if len(d.end) > 0 {
				d = b.join("serviceentry", readySelecting())
			}
			s := d.state()
			if got := keys(s); !slices.Contains(got, "ServiceEntry ns/b=1") {
				t.Fatalf("a row after %v: it was sent %v", after, got)
			}
			d.rows("services", s.Revision, row("ns/b.com", "from 1"))
			d.done(s.Revision)
			if got := keys(g.state()); !slices.Equal(got, []string{"services ns/b.com=from 1"}) {
				t.Errorf("a row after %v: the generator was sent %v", after, got)
			}
		})
		return slept
	}
	sleeps := idle(t, 0)
	for _, before := range []time.Duration{0, 1, 99, 100, 101} { // rows wait for 100 ms to be committed
		idle(t, sleeps-before*time.Millisecond)
	}
}

// What a generator publishes is for those whom it serves: its rows go when it sleeps, and who reads
// them is told.
func TestOnDemandPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, memory, state.Expected{Name: "reader", Kind: pb.KindConfig, LossApplies: true},
			state.Expected{Name: "lazy", Kind: pb.KindGenerator, OnDemand: true})
		ready := readyIstio()
		ready.Publishes = []string{"nodes"}
		if err := <-b.join("lazy", ready).end; !errors.Is(err, host.ErrAsleep) {
			t.Fatalf("nobody asks, and Serve returns %v", err)
		}
		m := b.join("memory", readyMemory())
		m.rows("services", nil, row("ns/a.com", "1"))
		m.synced()
		reader := b.join("reader", &pb.Ready{Reads: []*pb.Read{{Table: "nodes"}}, Publishes: []string{"jwks"}})
		reader.synced()
		synctest.Wait()
		p := b.stream("p")
		p.Subscribe(typeA, true, nil)
		lazy := b.join("lazy", ready)
		lazy.synced()
		lazy.rows("nodes", nil, row("a", "1"))
		if at := lazy.state(); at != nil {
			lazy.done(at.Revision)
		}
		time.Sleep(time.Second)
		if got := keys(reader.state()); !slices.Contains(got, "nodes a=1") {
			t.Fatalf("the reader was sent %v", got)
		}
		p.Close()
		time.Sleep(2 * state.SleepAfter)
		if err := <-lazy.end; !errors.Is(err, host.ErrAsleep) {
			t.Fatalf("nobody asks any more, and Serve returns %v", err)
		}
		at := reader.state()
		if at == nil || len(at.Tables) != 1 || !slices.Equal(at.Tables[0].Deletes, []string{"a"}) {
			t.Errorf("the reader was sent %v", keys(at))
		}
	})
}

// An authenticator that starts on demand is started for the first caller, who waits for it, and
// sleeps when none has come for a while.
func TestAuthenticatorOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var woken []string
		b := newBench(t, func(c *Config) { c.OnWanted = func(name string) { woken = append(woken, name) } },
			state.Expected{Name: "door", Kind: pb.KindAuthenticator, OnDemand: true, Limits: state.Limits{Call: 5 * time.Second}})
		g := &gate{bench: b}
		early := g.call(t.Context(), nil)
		d := g.join("door", &pb.Ready{})
		d.accept(asked(d).Id, webIdentity)
		if v := <-early; v.err != nil || len(woken) > 0 {
			t.Errorf("a caller before its first start: %v; woken: %v", v.err, woken)
		}
		time.Sleep(3 * state.SleepAfter)
		if err := <-d.end; !errors.Is(err, host.ErrAsleep) {
			t.Fatalf("no caller came, and Serve returns %v", err)
		}
		if err := <-g.join("door", &pb.Ready{}).end; !errors.Is(err, host.ErrAsleep) {
			t.Fatalf("nobody calls, and Serve returns %v", err)
		}
		one, two := g.call(t.Context(), nil), g.call(t.Context(), nil)
		if !slices.Equal(woken, []string{"door"}) {
			t.Fatalf("callers have woken %v", woken)
		}
		d = g.join("door", &pb.Ready{})
		for _, m := range d.others() {
			d.accept(m.Authenticate.Id, webIdentity)
		}
		for _, got := range []<-chan verdicts{one, two} {
			if v := <-got; v.err != nil || !slices.Equal(v.identities, []string{webIdentity}) {
				t.Error(v)
			}
		}
		for range 3 {
			time.Sleep(state.SleepAfter * 2 / 3)
			got := g.call(t.Context(), nil)
			d.accept(asked(d).Id, webIdentity)
			if v := <-got; v.err != nil {
				t.Fatalf("it sleeps while callers come: %v", v.err)
			}
		}
		time.Sleep(3 * state.SleepAfter)
		if err := <-d.end; !errors.Is(err, host.ErrAsleep) {
			t.Fatalf("no caller came, and Serve returns %v", err)
		}
		if len(woken) != 1 {
			t.Errorf("woken: %v", woken)
		}
		// One that can't be started makes nobody wait for ever, and one that is declared no more is
		// waited for by none.
		got := g.call(t.Context(), nil)
		wantErr(t, (<-got).err, codes.Unavailable, "did not start within limits.call")
		got = g.call(t.Context(), nil)
		if err := g.Withdraw("door", g.mid.State.Roster.Rules, true); err != nil {
			t.Fatal(err)
		}
		wantErr(t, (<-got).err, codes.Unavailable, "is away")
		g.keepsNothing()
	})
}
