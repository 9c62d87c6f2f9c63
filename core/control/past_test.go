package control

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/history"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// remembering has a Control keep a history.
func remembering(t *testing.T, cfg history.Config) func(*Config) {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	if cfg.Revisions == 0 {
		cfg.Revisions, cfg.Bytes = 100, 1<<20
	}
	h, err := history.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *Config) { c.Earlier.History = h }
}

func (b *bench) past() *operations.Past {
	b.t.Helper()
	p, err := operations.NewPast(b.Operator())
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// described is a view with a label.
func described(url string) *pb.FromPlugin {
	return &pb.FromPlugin{View: &pb.View{Type: url, View: 1, Label: "proxies"}}
}

// labelled gives the view of a crowd the same label.
func (c *crowd) labelled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mid.State.Roster.Session("istio").Maker.Views.Get(typeA, 1).Label = "proxies"
}

// pins pins a revision.
func pins(t *testing.T, p *operations.Past, revision uint64, proxies string, endpoints bool) report.Pin {
	t.Helper()
	pin, err := p.Pin(revision, proxies, endpoints)
	if err != nil {
		t.Fatal(err)
	}
	return pin
}

// TestPin: pinned proxies have what they had at the revision, whatever is made meanwhile and
// whoever makes it; those that come have what their view had. Then they have what is live.
func TestPin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, remembering(t, history.Config{}), 3)
		c.labelled()
		p := c.past()
		first := c.at.Number
		c.becomes(2, "v2")
		second := c.at.Number
		if pin := pins(t, p, first, "", false); len(pin.Pinned) != 3 || pin.Pinned[0].Types[typeA] != "own" {
			t.Errorf("%+v", pin)
		}
		all := func(want string) {
			t.Helper()
			for _, s := range c.all {
				c.have(s, want)
			}
		}
		all("a=v1")
		c.all[1].woken = false
		c.becomes(3, "v3")
		if all("a=v1"); c.all[1].woken {
			t.Error("a pinned proxy was woken by what it does not see")
		}
		c.have(c.joins("new"), "a=v1")
		if got := p.Pins()[0].Pinned; len(got) != 4 || got[3].Types[typeA] != "view" {
			t.Errorf("%+v", got)
		}
		// A new generator takes its place.
		trial := c.try(istio)
		next := c.candidate("istio", readyIstio())
		answers := func(ids ...uint64) {
			s := next.state()
			next.send(described(typeA), body(1, "swapped"), change(typeA, 1, s.Revision, &pb.Entry{Name: "a", Body: 1}))
			for _, id := range ids {
				next.send(place(id, typeA, 1, s.Revision))
			}
			next.done(s.Revision)
			for _, m := range next.others() {
				if m.Want != nil {
					next.send(wanted(m.Want.Id, s.Revision))
				}
			}
		}
		answers(1, 2, 3, 4)
		if d, err := trial.Compare(t.Context()); err != nil || d.String() != "~1 A" {
			t.Errorf("difference %s, %v", d, err)
		}
		if err := trial.Switch(t.Context(), c.mid.State.Roster.Rules, anyway); err != nil {
			t.Fatal(err)
		}
		all("a=v1")
		// What was live while they were pinned was kept, too.
		d, err := p.Diff(first, second, "p")
		if err != nil || len(d.Resources) != 1 || string(d.Resources[0].AfterValue) != "v2" {
			t.Errorf("%+v %v", d, err)
		}
		pins(t, p, second, "", false)
		all("a=v2")
		if gone, err := p.Unpin("", false); err != nil || len(gone) != 1 || gone[0].Revision != second {
			t.Errorf("%+v %v", gone, err)
		}
		all("a=swapped")
		if _, err := p.Unpin("", true); err != operations.ErrNoPin {
			t.Error(err)
		}
	})
}

// TestPinsOverlap: of two pins that select a proxy the later one counts; without it the other does.
func TestPinsOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, remembering(t, history.Config{}), 2)
		c.labelled()
		p := c.past()
		first := c.at.Number
		c.becomes(2, "v2")
		second := c.at.Number
		c.becomes(3, "v3")
		pins(t, p, first, "id=p*", false)
		if pin := pins(t, p, second, "id=p0", false); len(pin.Pinned) != 1 {
			t.Errorf("%+v", pin)
		}
		c.have(c.all[0], "a=v1")
		c.have(c.all[1], "a=v2")
		if pin := pins(t, p, second, "id=gone", false); len(pin.Pinned) != 0 {
			t.Errorf("%+v", pin)
		}
		c.have(c.joins("gone"), "a=v2")
		if _, err := p.Unpin("id=q", false); err == nil || !strings.Contains(err.Error(), `there are pins of "id=p*", "id=p0", "id=gone"`) {
			t.Error(err)
		}
		if _, err := p.Unpin("id=p0", false); err != nil {
			t.Error(err)
		}
		c.have(c.all[1], "a=v1")
		if gone, err := p.Unpin("", true); err != nil || len(gone) != 2 {
			t.Error(gone, err)
		}
		c.have(c.all[0], "a=v3")
	})
}

// TestNoPin: what can't be pinned is said, and changes nothing.
func TestNoPin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, remembering(t, history.Config{Revisions: 3, Bytes: 1 << 20}), 1)
		p := c.past()
		for i := range uint64(10) {
			c.becomes(2+i, fmt.Sprint("v", 2+i))
		}
		for what, want := range map[string]string{
			"1 ":       "revision 1 is not kept any more; 9 to 11 are",
			"99 ":      "there is no revision 99 yet; 9 to 11 are kept",
			"10 shop":  `"shop" is not KEY=PATTERN`,
			"10 app=x": `nothing of a proxy is called "app"`,
		} {
			number, proxies, _ := strings.Cut(what, " ")
			var n uint64
			fmt.Sscan(number, &n)
			if _, err := p.Pin(n, proxies, false); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", what, err)
			}
		}
		if got := p.Pins(); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		c.have(c.all[0], "a=v11")
		h := p.History()
		var kept []string
		for _, r := range h.Revisions {
			kept = append(kept, fmt.Sprintf("%d%v", r.Push.Revision, r.Kept))
		}
		if want := "[1false 2false 3false 4false 5false 6false 7false 8false 9true 10true 11true]"; fmt.Sprint(kept) != want {
			t.Errorf("%v, want %s", kept, want)
		}
		if last := h.Revisions[10].Push; len(last.Rows) != 1 || last.Rows[0].Key != "ns/a.com" || last.Proxies != 1 {
			t.Errorf("%+v", last)
		}
	})
}

// TestPinWithoutHistory: a core that keeps none says so.
func TestPinWithoutHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, nil, 1)
		p := c.past()
		_, err := p.Pin(1, "", false)
		if _, other := p.Diff(1, 2, ""); err == nil || other == nil || !strings.Contains(err.Error(), "historyRevisions") {
			t.Error(err, other)
		}
		if h := p.History(); h.Fault == "" || len(h.Revisions) != 1 {
			t.Errorf("%+v", h)
		}
	})
}

const (
	typeCluster  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	typeEndpoint = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	typeSecret   = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
)

// mesh is a proxy with clusters, endpoints and a secret.
type mesh struct {
	*bench
	m, g *plugin
	s    *stream
	at   *pb.Revision
	id   uint64
}

func newMesh(t *testing.T, edit func(*Config)) *mesh {
	t.Helper()
	b := newBench(t, edit, memory, istio)
	w := &mesh{bench: b, m: b.join("memory", readyMemory()), g: b.join("istio", &pb.Ready{
		Reads: []*pb.Read{{Table: "services"}}, Types: []*pb.Type{{Url: typeCluster}, {Url: typeEndpoint}, {Url: typeSecret}},
	})}
	w.m.rows("services", nil, row("ns/a.com", "1"))
	w.m.synced()
	w.at = w.g.state().Revision
	w.g.done(w.at)
	w.s = b.stream("p")
	w.s.Subscribe(typeCluster, true, nil)
	w.s.Subscribe(typeEndpoint, false, []string{"x", "y"})
	w.s.Subscribe(typeSecret, false, []string{"key"})
	w.g.take()
	for _, url := range []string{typeCluster, typeEndpoint, typeSecret} {
		w.g.send(describe(url, 1), place(w.s.ID(), url, 1, w.at))
	}
	for _, m := range w.g.take() {
		if m.Want != nil {
			w.g.send(wanted(m.Want.Id, w.at))
		}
	}
	return w
}

// says has the generator make resources of a type; empty content: there is none of the name.
func (w *mesh) says(url string, resources ...string) {
	w.t.Helper()
	for _, r := range resources {
		name, content, _ := strings.Cut(r, "=")
		e := &pb.Entry{Name: name}
		if content != "" {
			w.id++
			e.Body = w.id
			w.g.send(&pb.FromPlugin{Bodies: &pb.Bodies{Bodies: []*pb.Body{{Id: w.id, Bytes: named(name, content)}}}})
		}
		w.g.send(change(url, 1, w.at, e))
	}
}

// named is a resource with its name in field 1, and content in field 15 of bytes, which is unknown.
func named(name, content string) []byte {
	out := append([]byte{0x0a, byte(len(name))}, name...)
	return append(append(out, 0xfa, 0x3e, byte(len(content))), content...)
}

func (w *mesh) has(url string, want ...string) {
	w.t.Helper()
	synctest.Wait()
	var got []string
	for _, b := range w.s.Pull().Types[url].Bodies() {
		v := b.Value()
		got = append(got, b.Name()+"="+string(v[len(b.Name())+5:]))
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("it has %v, not %v", got, want)
	}
}

func (w *mesh) revise(do func()) uint64 {
	w.t.Helper()
	w.at = (&world{bench: w.bench, m: w.m, g: w.g}).revise(fmt.Sprint("r", w.id))
	do()
	w.g.done(w.at)
	synctest.Wait()
	return w.at.Number
}

// TestPinnedEndpoints: with a pin endpoints stay live, but for those of clusters that are not there
// any more; secrets are live always.
func TestPinnedEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMesh(t, remembering(t, history.Config{}))
		p := w.past()
		first := w.revise(func() {
			w.says(typeCluster, "x=c1", "y=c1")
			w.says(typeEndpoint, "x=e1", "y=e1")
			w.says(typeSecret, "key=s1")
		})
		w.has(typeEndpoint, "x=e1", "y=e1")
		w.revise(func() {
			w.says(typeCluster, "x=c2")
			w.g.send(&pb.FromPlugin{Change: &pb.Change{Type: typeCluster, View: 1, Revision: w.at, Removes: []string{"y"}}})
			w.says(typeEndpoint, "x=e2", "y=")
			w.says(typeSecret, "key=s2")
		})
		w.has(typeCluster, "x=c2")
		w.has(typeEndpoint, "x=e2")
		pin := pins(t, p, first, "", false)
		if got := pin.Pinned[0].Types; got[typeCluster] != "own" || got[typeSecret] != "live" {
			t.Error(got)
		}
		w.has(typeCluster, "x=c1", "y=c1")
		w.has(typeEndpoint, "x=e2", "y=e1")
		w.has(typeSecret, "key=s2")
		w.revise(func() { w.says(typeEndpoint, "x=e3") })
		w.has(typeEndpoint, "x=e3", "y=e1")
		pins(t, p, first, "", true)
		w.has(typeEndpoint, "x=e1", "y=e1")
		w.revise(func() {
			w.says(typeEndpoint, "x=e4")
			w.says(typeSecret, "key=s3")
		})
		w.has(typeEndpoint, "x=e1", "y=e1")
		w.has(typeSecret, "key=s3")
		d, err := p.Diff(first, w.at.Number, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range d.Resources {
			if r.Type == typeSecret {
				t.Error("a secret is kept")
			}
		}
		if _, err := p.Unpin("", true); err != nil {
			t.Fatal(err)
		}
		w.has(typeCluster, "x=c2")
		w.has(typeEndpoint, "x=e4")
	})
}

// TestPinOutlivesARestart: another core with the same file goes on with the numbers of revisions,
// and serves what is pinned, to those that were not there either.
func TestPinOutlivesARestart(t *testing.T) {
	dir := t.TempDir()
	first, last := uint64(0), uint64(0)
	synctest.Test(t, func(t *testing.T) {
		keep := remembering(t, history.Config{Dir: dir, Revisions: 100, Bytes: 1 << 20})
		c := newCrowd(t, keep, 2)
		c.labelled()
		first = c.at.Number
		c.becomes(2, "v2")
		last = c.at.Number
		if pin := pins(t, c.past(), first, "id=p*", false); pin.Note != "" {
			t.Error(pin.Note)
		}
		closeHistory(t, keep)
	})
	synctest.Test(t, func(t *testing.T) {
		keep := remembering(t, history.Config{Dir: dir, Revisions: 100, Bytes: 1 << 20})
		b := newBench(t, keep, memory, istio)
		p := b.past()
		w := &world{bench: b, url: typeA, m: b.join("memory", readyMemory()), g: b.join("istio", readyIstio())}
		w.m.rows("services", nil, row("ns/a.com", "1"))
		w.m.synced()
		if w.at = w.g.state().Revision; w.at.Number <= last {
			t.Errorf("revision %d is not after %d", w.at.Number, last)
		}
		w.g.done(w.at)
		c := &crowd{world: w}
		w.g.send(described(typeA), body(1, "v3"), change(typeA, 1, w.at, &pb.Entry{Name: "a", Body: 1}))
		for _, id := range []string{"p", "pnew", "other"} {
			s := c.stream(id)
			s.Subscribe(typeA, true, nil)
			w.g.send(place(s.ID(), typeA, 1, w.at))
			for _, m := range w.g.others() {
				if m.Want != nil {
					w.g.send(wanted(m.Want.Id, w.at))
				}
			}
			c.all = append(c.all, s)
		}
		c.have(c.all[0], "a=v1")
		c.have(c.all[1], "a=v1")
		c.have(c.all[2], "a=v3")
		got := p.Pins()
		if len(got) != 1 || got[0].Revision != first || len(got[0].Pinned) != 2 {
			t.Errorf("%+v", got)
		}
		if _, err := p.Unpin("id=p*", false); err != nil {
			t.Error(err)
		}
		c.have(c.all[0], "a=v3")
		if d, err := p.Diff(first, last, "p"); err != nil || len(d.Resources) != 1 {
			t.Errorf("%+v %v", d, err)
		}
		closeHistory(t, keep)
	})
}

// closeHistory ends the history that a Config has.
func closeHistory(t *testing.T, keep func(*Config)) {
	t.Helper()
	var c Config
	keep(&c)
	if err := c.Earlier.History.Close(); err != nil {
		t.Error(err)
	}
}

// TestOfPinsNothingIsNoted: the history has what is live, as if nobody were pinned.
func TestOfPinsNothingIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, remembering(t, history.Config{}), 2)
		p := c.past()
		first := c.at.Number
		c.becomes(2, "v2")
		second := c.at.Number
		pins(t, p, first, "", false)
		c.becomes(3, "v3")
		third := c.at.Number
		for number, want := range map[uint64]string{first: "v1", second: "v2", third: "v3"} {
			im, err := c.cfg.Earlier.History.At(number)
			if err != nil {
				t.Fatal(err)
			}
			var b *view.Body
			if s := im.Snapshot(history.Key{Node: "p", Type: typeA}); s != nil {
				b = s.Get("a")
			}
			if b == nil || string(b.Value()) != want {
				t.Errorf("revision %d is not %s", number, want)
			}
		}
	})
}
