package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/pieces"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
)

// hostsWorld is a crowd of one proxy that has a route configuration, which is made from the objects
// that people write: each edit names those that it changes.
type hostsWorld struct {
	*crowd
	rows   map[string]int
	bodies uint64
	// has is what the proxy has accepted, left the version of what it refused last.
	has  *view.Snapshot
	left string
	told []string
	// parts are those that it was told of last, by object.
	parts map[string]string
	// split: the generator says from which object each virtual host was made, of its name; bad is
	// what the proxy refuses.
	split bool
	bad   string
	// asked is how often the generator was.
	asked int
	// upper is the patch of the proxies, if they have one, and what it makes of virtual hosts.
	upper *plugin
	makes func(hosts string) string
}

func newHosts(t *testing.T) *hostsWorld { return hostsIn(crowdOf(t, nil, 1, readyHosts())) }

func readyHosts() *pb.Ready {
	ready := readyIstio()
	ready.Types[0].Url = pieces.RouteConfiguration
	ready.Reads = append(ready.Reads, &pb.Read{Table: "test/Route"})
	return ready
}

func hostsIn(c *crowd) *hostsWorld {
	w := &hostsWorld{crowd: c, rows: map[string]int{}, bodies: 10, parts: map[string]string{}, bad: "=bad"}
	r := w.mid.State.Roster.Session("memory").Plugin.Ready
	r.Publishes, r.Blame = append(r.Publishes, "test/Route"), true
	w.has = w.proxy.Pull().Types[w.url]
	return w
}

// edit changes objects, and has the generator make virtual hosts: NAME or NAME=DOMAIN.
func (w *hostsWorld) edit(objects, hosts string) {
	w.t.Helper()
	w.idle()
	var rows []*pb.Row
	for _, o := range strings.Fields(objects) {
		w.rows[o]++
		rows = append(rows, row("ns/"+o, fmt.Sprint(w.rows[o])))
	}
	w.m.rows("test/Route", nil, rows...)
	time.Sleep(time.Second)
	w.at = w.g.state().Revision
	w.bodies++
	w.g.send(body(w.bodies, hostsText(hosts)), change(w.url, 1, w.at, &pb.Entry{Name: "a", Body: w.bodies}))
	w.g.done(w.at)
	synctest.Wait()
	w.patches()
}

// hostsText is a route configuration with virtual hosts. One in domain ! has a route that Envoy's
// own rules refuse.
func hostsText(hosts string) string {
	m := &routev3.RouteConfiguration{Name: "a"}
	for _, h := range strings.Fields(hosts) {
		name, domain, _ := strings.Cut(h, "=")
		host := &routev3.VirtualHost{Name: name, Domains: []string{name + domain}}
		if domain == "!" {
			host.Routes = []*routev3.Route{{}}
		}
		m.VirtualHosts = append(m.VirtualHosts, host)
	}
	b, _ := proto.Marshal(m)
	return string(b)
}

// patches has the patch answer what it is asked.
func (w *hostsWorld) patches() {
	w.t.Helper()
	if w.upper == nil {
		return
	}
	for _, m := range w.upper.others() {
		if m.Patch == nil {
			continue
		}
		r := m.Patch.Resources[0]
		r.Bytes = []byte(hostsText(w.makes(w.hosts(r.Bytes))))
		w.upper.send(&pb.FromPlugin{Patched: &pb.Patched{Id: m.Patch.Id, Resources: []*pb.Resource{r}}})
	}
	synctest.Wait()
}

// said are the virtual hosts of a body.
func (w *hostsWorld) said(b *view.Body) string { return w.hosts(b.Value()) }

func (w *hostsWorld) hosts(text []byte) string {
	w.t.Helper()
	var m routev3.RouteConfiguration
	if err := proto.Unmarshal(text, &m); err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, h := range m.VirtualHosts {
		domain := strings.TrimPrefix(h.Domains[0], h.Name)
		out = append(out, strings.TrimSuffix(h.Name+"="+domain, "="))
	}
	return strings.Join(out, " ")
}

// answer has the proxy answer once, if it is sent anything: it refuses what has a host in a bad
// domain. It returns what it was sent.
func (w *hostsWorld) answer() string {
	w.t.Helper()
	served := w.proxy.Pull()
	snap := served.Types[w.url]
	now, had := snap.Get("a"), w.has.Get("a")
	if now.Version() == had.Version() || now.Version() == w.left {
		return ""
	}
	if said := w.said(now); strings.Contains(said, w.bad) {
		w.left = now.Version()
		w.proxy.Report(xds.Outcome{Type: w.url, Number: served.Number, Refused: "a: it is bad", Culprits: []xds.Culprit{{Body: now, Instead: had}}})
	} else {
		w.has = snap
		w.proxy.Report(xds.Outcome{Type: w.url, Version: "v", Number: served.Number, Has: snap})
	}
	time.Sleep(time.Second) // votes are counted
	w.listen()
	return w.said(now)
}

// settle has it answer until it is sent nothing more.
func (w *hostsWorld) settle(want string) {
	w.t.Helper()
	for i := 0; w.answer() != ""; i++ {
		if i == 100 {
			w.t.Fatal("it does not end")
		}
	}
	for asked := -1; asked != w.asked; {
		asked = w.asked
		w.listen() // of one piece after another
	}
	if got := w.said(w.has.Get("a")); got != want {
		w.t.Errorf("it has %s, want %s", got, want)
	}
}

// idle has the generator do revisions in which nothing of its is otherwise: bodies are done away
// with.
func (w *hostsWorld) idle() {
	w.t.Helper()
	for s := w.g.state(); s != nil; s = w.g.state() {
		w.at = s.Revision
		w.g.done(w.at)
	}
}

// listen has the generator say that everything is made from all objects, and notes for which of
// them the source was told that they are refused.
func (w *hostsWorld) listen() {
	w.t.Helper()
	w.idle()
	for _, m := range w.g.others() {
		if m.Explain == nil {
			continue
		}
		w.asked++
		because := &pb.Because{Id: m.Explain.Id, Piece: w.split}
		for o := range w.rows {
			if !w.split || o == m.Explain.Piece {
				because.Rows = append(because.Rows, &pb.RowName{Table: "test/Route", Key: "ns/" + o})
			}
		}
		w.g.send(&pb.FromPlugin{Because: because})
	}
	time.Sleep(time.Second)
	for _, m := range w.m.others() {
		if m.Blame == nil {
			continue
		}
		var rows []string
		for _, r := range m.Blame.Rows {
			o := strings.TrimPrefix(r.Key, "ns/")
			rows = append(rows, o)
			w.parts[o] = r.Parts
		}
		slices.Sort(rows)
		if now := strings.Join(rows, " "); len(w.told) == 0 || w.told[len(w.told)-1] != now {
			w.told = append(w.told, now)
		}
	}
}

// blamed: the source was told of these objects, one after another.
func (w *hostsWorld) blamed(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.told); diff != "" {
		w.t.Error("blamed:", diff)
	}
	w.told = nil
}

// TestBlameOutlivesAnEdit: while it is found out which parts of a resource a proxy refuses, other
// objects are edited that it is made from, and the same one. What is new is served at once, and
// judged by itself; whoever is to blame stays it, and nobody else is.
func TestBlameOutlivesAnEdit(t *testing.T) {
	for name, tt := range map[string]func(w *hostsWorld){
		"another object": func(w *hostsWorld) {
			w.edit("one", "one=bad two=x three")
			w.answer()
			w.edit("two", "one=bad two=x three=y")
			if got := w.answer(); got != "one two three=y" {
				w.t.Errorf("it was sent %s", got)
			}
			w.settle("one two=x three=y")
			w.blamed("one")
			if w.parts["one"] != "virtual host one" {
				w.t.Errorf("the source was told of %q", w.parts)
			}
			w.edit("one", "one=fine two=x three=y")
			w.settle("one=fine two=x three=y")
			w.listen()
			w.blamed("")
		},
		"while it is asked the second time": func(w *hostsWorld) {
			w.edit("one", "one=bad two=x three=y")
			w.answer()
			w.answer()
			w.edit("two", "one=bad two=x three=y four")
			w.answer()
			w.edit("two", "one=bad two=x three=y four=z")
			w.settle("one two=x three=y four=z")
			w.blamed("one")
		},
		"the same object": func(w *hostsWorld) {
			w.edit("one", "one=bad two=x three")
			w.answer()
			w.edit("one", "one=fine two=x three")
			w.settle("one=fine two=x three")
			w.listen()
			w.blamed()
		},
		"another bad one meanwhile": func(w *hostsWorld) {
			w.edit("one", "one=bad two=x three")
			w.answer()
			w.edit("two", "one=bad two=x three=bad")
			w.settle("one two=x three")
			w.blamed("one two")
			w.edit("two", "one=bad two=x three=y")
			w.settle("one two=x three=y")
		},
		"another object, a minute later, when all is sent again": func(w *hostsWorld) {
			w.edit("one", "one=bad two=x three")
			w.settle("one two=x three")
			w.blamed("one")
			time.Sleep(2 * time.Minute)
			w.edit("three", "one=bad two=x three=y")
			if got := w.answer(); got != "one=bad two=x three=y" {
				w.t.Errorf("it was sent %s", got)
			}
			w.settle("one two=x three=y")
			w.blamed("", "one")
			time.Sleep(2 * time.Minute)
			w.edit("three", "one=bad two=x three=bad")
			w.settle("one two=x three=y")
			w.blamed("", "one", "one three")
		},
		"another bad one afterwards": func(w *hostsWorld) {
			w.edit("one", "one=bad two=x three")
			w.settle("one two=x three")
			w.edit("two", "one=bad two=x three=bad")
			w.settle("one two=x three")
			w.blamed("one", "one two")
			w.edit("three", "one=bad two=x three=bad four")
			w.settle("one two=x three four")
			w.blamed()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newHosts(t)
				w.edit("one two three", "one two three")
				w.settle("one two three")
				w.blamed()
				tt(w)
			})
		})
	}
}

// as has another proxy, which refuses what it likes, do something in place of the first.
func (w *hostsWorld) as(other *stream, bad string, do func()) {
	w.t.Helper()
	proxy, has, left, mine := w.proxy, w.has, w.left, w.bad
	w.proxy, w.bad, w.left = other, bad, ""
	do()
	w.proxy, w.has, w.left, w.bad = proxy, has, left, mine
}

// TestOwnersByPiece: of objects that change at once, that is blamed from which the refused virtual
// host was made, and no other.
func TestOwnersByPiece(t *testing.T) {
	for name, tt := range map[string]func(w *hostsWorld){
		"edited at once": func(w *hostsWorld) {
			w.edit("one two three", "one=x two=bad three=y")
			w.settle("one=x two three=y")
			w.blamed("two")
			if w.parts["two"] != "virtual host two" {
				w.t.Errorf("the source was told of %q", w.parts)
			}
			w.edit("two", "one=x two=fine three=y")
			w.settle("one=x two=fine three=y")
			w.listen()
			w.blamed("")
		},
		"two of three": func(w *hostsWorld) {
			w.edit("one two three", "one=bad two=x three=bad")
			w.settle("one two=x three")
			if last := w.told[len(w.told)-1]; last != "one three" || len(w.parts) != 2 || w.parts["three"] != "virtual host three" {
				w.t.Errorf("told %q, of %q", w.told, w.parts)
			}
			w.told = nil
			w.edit("one two", "one=x two=y three=bad")
			w.settle("one=x two=y three")
			w.blamed("three")
		},
		"an object that was edited before it was found out": func(w *hostsWorld) {
			w.edit("one two", "one=bad two=x three")
			w.answer()
			w.edit("two three", "one=bad two=y three=bad")
			w.settle("one two=y three")
			if last := w.told[len(w.told)-1]; last != "one three" {
				w.t.Errorf("told %q", w.told)
			}
		},
		"nobody has edited its object": func(w *hostsWorld) {
			w.edit("one", "one=x two=bad three")
			w.settle("one=x two three")
			w.blamed("two")
		},
		"a stranger refuses another": func(w *hostsWorld) {
			plain := w.joinsAs("plain")
			w.edit("one two three", "one=x two=bad three=y")
			w.as(plain, "three=y", func() { w.settle("one=x two=bad three") })
			w.blamed()
			w.settle("one=x two three=y")
			w.blamed("two")
			plain.Close()
		},
		"a generator that can't tell": func(w *hostsWorld) {
			w.split = false
			w.edit("one two", "one=bad two=x three")
			w.settle("one two=x three")
			w.blamed("one two")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newHosts(t)
				w.split = true
				w.edit("one two three", "one two three")
				w.settle("one two three")
				w.blamed()
				tt(w)
			})
		})
	}
}

// TestFewOwnersAreAskedFor: however many virtual hosts a proxy refuses, the generator is asked
// about so many.
func TestFewOwnersAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHosts(t)
		w.split = true
		var good, bad []string
		for i := range 300 {
			good = append(good, fmt.Sprint("h", i))
			bad = append(bad, fmt.Sprintf("h%d=bad", i))
		}
		w.edit("h7", strings.Join(good, " "))
		w.settle(strings.Join(good, " "))
		w.edit("h7", strings.Join(bad, " "))
		w.settle(strings.Join(good, " "))
		if w.asked != 100 {
			t.Errorf("the generator was asked %d times", w.asked)
		}
	})
}
