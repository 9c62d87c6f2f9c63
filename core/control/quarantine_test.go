package control

import (
	"errors"
	"fmt"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

// crowd is a world whose view has more proxies.
type crowd struct {
	*world
	all []*stream
}

func newCrowd(t *testing.T, edit func(*Config), n int) *crowd {
	t.Helper()
	return crowdOf(t, edit, n, readyIstio())
}

// newVoters is one whose resources may be held.
func newVoters(t *testing.T, edit func(*Config), n int) *crowd {
	t.Helper()
	return crowdOf(t, edit, n, readyClusters())
}

func crowdOf(t *testing.T, edit func(*Config), n int, ready *pb.Ready) *crowd {
	t.Helper()
	c := &crowd{world: worldOf(newBench(t, edit, memory, istio), ready)}
	c.all = append(c.all, c.proxy)
	for i := range n - 1 {
		c.all = append(c.all, c.joins(fmt.Sprint("p", i)))
	}
	for _, s := range c.all {
		c.acks(s)
	}
	return c
}

// readyClusters is a generator of clusters.
func readyClusters() *pb.Ready {
	r := readyIstio()
	r.Types[0].Url = typeC
	return r
}

// joins connects another proxy, which is placed in the view, with an identity of its own.
func (c *crowd) joins(id string) *stream {
	c.t.Helper()
	return c.joinsAs(id, peer(id).Identities...)
}

// joinsAs connects one with some identities, or none.
func (c *crowd) joinsAs(id string, identities ...string) *stream {
	c.t.Helper()
	s := c.streamOf(xds.Peer{Node: &corev3.Node{Id: id}, Identities: identities})
	s.Subscribe(c.url, true, nil)
	c.g.others()
	c.g.send(place(s.ID(), c.url, 1, c.at))
	return s
}

// becomes has the generator make another body of resource a.
func (c *crowd) becomes(id uint64, content string) {
	c.t.Helper()
	c.at = c.revise(content)
	c.g.send(c.body(id, content), change(c.url, 1, c.at, &pb.Entry{Name: "a", Body: id}))
	c.g.done(c.at)
	c.g.others()
}

func (c *crowd) acks(s *stream) {
	served := s.Pull()
	s.Report(xds.Outcome{Type: c.url, Version: "v", Number: served.Number, Has: served.Types[c.url], Answered: served.Number})
}

// refuses has a proxy refuse resource a.
func (c *crowd) refuses(s *stream, instead *view.Body) {
	served := s.Pull()
	s.Report(xds.Outcome{
		Type: c.url, Number: served.Number, Refused: "a: it is bad", Culprits: []xds.Culprit{{Body: served.Types[c.url].Get("a"), Instead: instead}},
	})
	synctest.Wait() // the first votes are counted at once, others later
}

func (c *crowd) held(want ...string) {
	c.t.Helper()
	time.Sleep(time.Second) // votes are counted
	var got []string
	for _, r := range operations.NewExplainer(c.Operator()).Refusals() {
		got = append(got, fmt.Sprintf("%s by %d, %d of %d votes, held %v", r.Name, r.Refusing, r.Votes, r.Voters, r.Held))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.t.Errorf("refused are %v, want %v", got, want)
	}
}

func (c *crowd) have(s *stream, want string) {
	c.t.Helper()
	if got := s.names(c.url); len(got) != 1 || got[0] != want {
		c.t.Errorf("it has %v, not %s", got, want)
	}
}

// TestQuarantine: what most identities of a namespace refuse is held at what they had before, for
// its proxies that have not accepted it, and for those that come, until it changes. Nobody else has
// it so.
func TestQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newVoters(t, nil, 4)
		other, plain := c.joinsAs("other", "cart/other"), c.joinsAs("plain")
		good := c.proxy.Pull().Types[c.url].Get("a")
		c.becomes(2, "bad")
		c.acks(c.all[3])
		c.refuses(c.all[0], good)
		c.refuses(c.all[1], good)
		c.held("a by 2, 2 of 4 votes, held false")
		c.have(c.all[2], "a=bad")
		c.refuses(c.all[2], good)
		c.held("a by 3, 3 of 4 votes, held true")
		c.have(c.all[0], "a=bad") // its stream leaves that out
		c.have(c.all[3], "a=bad") // it accepts it
		c.have(c.joins("new"), "a=v1")
		c.have(c.joinsAs("new-other", "cart/new"), "a=bad")
		c.have(c.joinsAs("new-plain"), "a=bad")
		c.have(other, "a=bad")
		c.have(plain, "a=bad")
		c.becomes(3, "better")
		c.held()
		for _, s := range append(c.all, other, plain) {
			c.have(s, "a=better")
		}
	})
}

// TestWhoHasNoVote: what these say counts for themselves alone, however many they are: streams in
// plain text, identities of other namespaces, more streams of one identity, and identities that
// have accepted nothing yet.
func TestWhoHasNoVote(t *testing.T) {
	for name, tt := range map[string]struct {
		identity func(i int) []string
		votes    string
		silent   bool // they have accepted nothing before
	}{
		"plain text":        {identity: func(int) []string { return nil }, votes: "0 of 0"},
		"another namespace": {identity: func(i int) []string { return []string{fmt.Sprint("evil/", i)} }, votes: "12 of 15"},
		"one identity":      {identity: func(int) []string { return []string{"shop/mallory"} }, votes: "1 of 4"},
		"newcomers":         {identity: func(i int) []string { return []string{fmt.Sprint("shop/new-", i)} }, votes: "0 of 3", silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newVoters(t, nil, 3)
				good := c.proxy.Pull().Types[c.url].Get("a")
				var strangers []*stream
				for i := range 12 {
					s := c.joinsAs(fmt.Sprint("x", i), tt.identity(i)...)
					strangers = append(strangers, s)
					if !tt.silent {
						c.acks(s)
					}
				}
				c.becomes(2, "policy")
				for _, s := range strangers {
					c.refuses(s, good)
				}
				want := fmt.Sprintf("a by 12, %s votes, held false", tt.votes)
				if name == "another namespace" {
					want = fmt.Sprintf("a by 12, %s votes, held true", tt.votes) // for that one
				}
				c.held(want)
				late := c.joins("late")
				for _, s := range append(c.all, late) {
					c.have(s, "a=policy")
					c.acks(s)
				}
				for _, s := range strangers {
					s.Close()
				}
				time.Sleep(time.Hour)
				c.held()
				c.have(late, "a=policy")
			})
		})
	}
}

// TestAcceptedStays: who has accepted something is never taken back, whatever others of its
// namespace say, and what is held is never older than what most of them had.
func TestAcceptedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newVoters(t, nil, 2)
		first := c.proxy.Pull().Types[c.url].Get("a")
		var slow []*stream // have the first version, and say nothing
		for i := range 12 {
			s := c.joins(fmt.Sprint("slow", i))
			c.acks(s)
			slow = append(slow, s)
		}
		c.becomes(2, "policy")
		c.acks(c.all[0])
		c.acks(c.all[1])
		for _, s := range slow {
			c.refuses(s, first)
		}
		c.held("a by 12, 12 of 14 votes, held true")
		c.have(c.all[0], "a=policy")
		c.have(c.all[1], "a=policy")
		c.becomes(3, "next")
		c.refuses(slow[0], first)
		for _, s := range c.all {
			c.have(s, "a=next")
		}
	})
}

// TestNoMajorityBefore: where most did not have one version before, nothing is held.
func TestNoMajorityBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newVoters(t, nil, 4)
		first := c.proxy.Pull().Types[c.url].Get("a")
		c.becomes(2, "second")
		second := c.proxy.Pull().Types[c.url].Get("a")
		c.acks(c.all[2])
		c.acks(c.all[3])
		c.becomes(3, "bad")
		for _, s := range c.all[:2] {
			c.refuses(s, first)
		}
		for _, s := range c.all[2:] {
			c.refuses(s, second)
		}
		c.held("a by 4, 4 of 4 votes, held false")
		c.have(c.joins("new"), "a=bad")
	})
}

// TestQuarantineOutlivesASwap: what proxies refuse is held for those of the view of the same name
// that the plugin's next session makes, where it makes the same of it.
func TestQuarantineOutlivesASwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newVoters(t, nil, 1)
		good := c.proxy.Pull().Types[c.url].Get("a")
		c.becomes(2, "bad")
		c.refuses(c.proxy, good)
		c.held("a by 1, 1 of 1 votes, held true")
		trial := c.try(istio)
		next := c.candidate("istio", readyClusters())
		next.answerOf(c.proxy.ID(), cluster(1, "bad"))
		if err := trial.Switch(t.Context(), c.mid.State.Roster.Rules, anyway); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.g = next
		c.have(c.joins("new"), "a=v1")
		c.proxy.Close()
		time.Sleep(time.Minute)
		c.have(c.joins("newer"), "a=v1")
		c.g.send(c.body(9, "better"), change(c.url, 1, c.at, &pb.Entry{Name: "a", Body: 9}))
		c.have(c.joins("newest"), "a=better")
		c.held()
	})
}

// TestBlame: the rows that a refused resource was made from, and that changed with it, are named.
func TestBlame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newVoters(t, nil, 1)
		good := c.proxy.Pull().Types[c.url].Get("a")
		c.becomes(2, "bad")
		c.refuses(c.proxy, good)
		asked := c.g.others()
		if len(asked) != 1 || asked[0].Explain == nil || asked[0].Explain.Name != "a" || asked[0].Explain.View != 1 {
			t.Fatalf("the generator was asked %v", asked)
		}
		c.g.send(&pb.FromPlugin{
			Because: &pb.Because{Id: asked[0].Explain.Id, Rows: []*pb.RowName{{Table: "services", Key: "ns/a.com"}, {Table: "VirtualService", Key: "ns/v"}}},
		})
		c.g.send(&pb.FromPlugin{Because: &pb.Because{Id: 999}}) // which nobody waits for
		synctest.Wait()
		if r := operations.NewExplainer(c.Operator()).Refusals(); len(r) != 1 || r[0].Reason != "a: it is bad" || r[0].Instead != good.Version() {
			t.Errorf("%+v", r)
		}
	})
}

// TestBlameIsTold: a source that wants to know is told for which of its rows proxies refuse
// something, once; when that is over; and anew when it starts again. Others are told nothing.
func TestBlameIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newVoters(t, nil, 1)
		told := func(want ...string) {
			t.Helper()
			var got []string
			for _, m := range c.m.others() {
				if m.Blame == nil {
					t.Errorf("told %v", m)
					continue
				}
				text := "none"
				for _, r := range m.Blame.Rows {
					text = fmt.Sprintf("%s %s, %s, by %d, held %v: %s", r.Table, r.Key, r.Resource, r.Proxies, r.Held, r.Reason)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
		explained := func() {
			t.Helper()
			for _, m := range c.g.others() {
				if m.Explain != nil {
					c.g.send(&pb.FromPlugin{Because: &pb.Because{Id: m.Explain.Id, Rows: []*pb.RowName{{Table: "test/Filter", Key: "ns/f"}}}})
				}
			}
			synctest.Wait()
		}
		ready := c.mid.State.Roster.Session("memory").Plugin.Ready
		ready.Publishes = append(ready.Publishes, "test/Filter")
		c.m.rows("test/Filter", nil, row("ns/f", "1"))
		time.Sleep(time.Second)
		for s := c.g.state(); s != nil; s = c.g.state() {
			c.g.done(s.Revision)
		}
		good := c.proxy.Pull().Types[c.url].Get("a")
		c.becomes(2, "worse")
		c.refuses(c.proxy, good)
		explained()
		told() // it did not ask for it
		ready.Blame = true
		c.becomes(3, "bad")
		c.refuses(c.proxy, good)
		told("test/Filter ns/f, a, by 1, held true: a: it is bad", "none") // from what the next is made is not known yet
		explained()
		told("test/Filter ns/f, a, by 1, held true: a: it is bad")
		c.refuses(c.proxy, good)
		told()
		c.becomes(4, "better")
		told("none")
	})
}

// TestExplainNeedsNoAnswer: a generator that never explains is not blamed, and who asks is told.
func TestExplainNeedsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		x := operations.NewExplainer(w.Operator())
		e, err := x.Explain(t.Context(), "p", typeA, "a")
		if err != nil || e.Unknown == "" || len(e.Reads) != 3 || e.Version == "" {
			t.Errorf("%+v %v", e, err)
		}
		time.Sleep(time.Hour)
		select {
		case err := <-w.g.end:
			t.Errorf("the generator was ended: %v", err)
		default:
		}
		if n := w.Calls.Size(); n != 0 {
			t.Errorf("%d questions are kept", n)
		}
		if _, err := x.Explain(t.Context(), "p", typeA, "b"); err == nil {
			t.Error("a resource that is not there was explained")
		}
		if _, err := x.Explain(t.Context(), "q", typeA, "a"); err == nil {
			t.Error("a proxy that is not there was explained")
		}
	})
}

// TestNoPushes: where pushes are not followed, nobody is told that all have been reached.
func TestNoPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newVoters(t, func(cfg *Config) { cfg.Earlier.NoPushes = true }, 1)
		c.becomes(2, "v2")
		c.have(c.proxy, "a=v2")
		c.acks(c.proxy)
		x := operations.NewExplainer(c.Operator())
		if all, err := x.Pushes(0); !errors.Is(err, state.ErrNoPushes) {
			t.Errorf("%v, %v", all, err)
		}
		if p, err := x.Progress(report.RowName{Table: "services", Key: "ns/a.com"}); !errors.Is(err, state.ErrNoPushes) {
			t.Errorf("%v, %v", p, err)
		}
	})
}

// TestPushesAreFollowed: a push says what changed, whom it reached and who refused it, and is over
// when all have answered or left.
func TestPushesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newVoters(t, nil, 3)
		x := operations.NewExplainer(c.Operator())
		last := func() report.Push {
			all, _ := x.Pushes(0)
			return all[len(all)-1]
		}
		c.becomes(2, "v2")
		if p := last(); p.Proxies != 3 || p.Waiting != 3 || len(p.Rows) != 1 || p.Rows[0].Key != "ns/a.com" ||
			p.Rows[0].What != "changed" || p.Rows[0].Plugin != "memory" || p.Views[c.url] != 1 {
			t.Errorf("%+v", p)
		}
		if p, _ := x.Progress(report.RowName{Table: "services", Key: "ns/gone"}); !p.Row.Gone || len(p.Waiting) != 3 {
			t.Errorf("of a row that is gone: %+v", p)
		}
		row := report.RowName{Table: "services", Key: "ns/a.com"}
		c.acks(c.all[0])
		if p, _ := x.Progress(row); len(p.Waiting) != 2 || p.Row.Revision != last().Revision {
			t.Errorf("%+v", p)
		}
		c.refuses(c.all[1], nil)
		c.acks(c.all[1]) // of the rest
		c.all[2].Close()
		if p := last(); p.Waiting != 0 || p.Left != 1 || p.Refusals != 1 || p.Done.IsZero() || p.Sent[c.url].Responses != 2 {
			t.Errorf("%+v", p)
		}
		if p, _ := x.Progress(row); len(p.Waiting) != 0 {
			t.Errorf("%+v", p)
		}
	})
}

// TestEverybodyRefusesAll: hundreds of proxies that refuse thousands of resources, as after a patch
// of all listeners that is wrong, cost each answer what the resources are, not that for each proxy.
func TestEverybodyRefusesAll(t *testing.T) {
	const proxies, resources = 200, 1000
	synctest.Test(t, func(t *testing.T) {
		c := newVoters(t, nil, proxies)
		all := func(from uint64, content string) {
			t.Helper()
			c.at = c.revise(content)
			bodies, entries := &pb.Bodies{}, []*pb.Entry{}
			for i := range uint64(resources) {
				bytes, _ := proto.Marshal(&clusterv3.Cluster{Name: fmt.Sprint("r", i), AltStatName: fmt.Sprint(content, i)})
				bodies.Bodies = append(bodies.Bodies, &pb.Body{Id: from + i, Bytes: bytes})
				entries = append(entries, &pb.Entry{Name: fmt.Sprint("r", i), Body: from + i})
			}
			c.g.send(&pb.FromPlugin{Bodies: bodies}, change(c.url, 1, c.at, entries...))
			c.g.done(c.at)
			c.g.others()
		}
		all(1000, "good")
		for _, s := range c.all {
			c.acks(s)
		}
		before := c.proxy.Pull().Types[c.url]
		all(10_000, "bad")
		for _, s := range c.all {
			served := s.Pull()
			o := xds.Outcome{Type: c.url, Number: served.Number, Refused: "all is bad"}
			for i := range resources {
				name := fmt.Sprint("r", i)
				o.Culprits = append(o.Culprits, xds.Culprit{Body: served.Types[c.url].Get(name), Instead: before.Get(name)})
			}
			s.Report(o)
		}
		time.Sleep(10 * time.Second) // votes are counted, some at once
		for s := c.g.state(); s != nil; s = c.g.state() {
			c.g.done(s.Revision)
		}
		asked := 0
		for _, m := range c.g.others() {
			if m.Explain != nil {
				asked++
			}
		}
		if asked != operations.ExplainAtOnce {
			t.Errorf("the generator was asked about %d resources at once", asked)
		}
		if got := c.joins("new").Pull().Types[c.url].Get("r7"); got.Version() != before.Get("r7").Version() {
			t.Error("a proxy that comes gets what all refuse")
		}
		all(20_000, "better")
		c.held()
		if got := c.proxy.Pull().Types[c.url].Get("r7"); got.Version() == before.Get("r7").Version() {
			t.Error("what is better is held")
		}
	})
}

const typeExtension = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"

// TestRefusedExtension: a filter's configuration that proxies ask for by its name is refused for
// each of them: it keeps what it had, and who has none has none, so that Envoy answers in its
// place. It is never held for others, be the refusal everybody's; the rest arrives, and its owner
// is told.
func TestRefusedExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := readyIstio()
		ready.Types[0].Url = typeExtension
		ready.Reads = append(ready.Reads, &pb.Read{Table: "test/Filter"})
		c := crowdOf(t, nil, 2, ready)
		source := c.mid.State.Roster.Session("memory").Plugin.Ready
		source.Publishes, source.Blame = append(source.Publishes, "test/Filter"), true
		c.m.rows("test/Filter", nil, row("ns/a", "1"), row("ns/b", "1"))
		time.Sleep(time.Second)
		for s := c.g.state(); s != nil; s = c.g.state() {
			c.g.done(s.Revision)
		}
		good := c.proxy.Pull().Types[c.url].Get("a")
		c.becomes(2, "bad")
		c.refuses(c.all[0], good)
		c.refuses(c.all[1], good)
		c.held("a by 2, 2 of 2 votes, held false")
		for _, m := range c.g.others() {
			if m.Explain != nil {
				c.g.send(&pb.FromPlugin{Because: &pb.Because{Id: m.Explain.Id, Rows: []*pb.RowName{{Table: "test/Filter", Key: "ns/a"}}}})
			}
		}
		time.Sleep(time.Second)
		var told []string
		for _, m := range c.m.others() {
			for _, r := range rowsOf(m.Blame) {
				told = append(told, r.Key+" "+r.Parts)
			}
		}
		if fmt.Sprint(told) != "[ns/a ]" {
			t.Errorf("the source was told of %q", told)
		}
		c.have(c.joins("new"), "a=bad") // it finds out by itself
		c.becomes(3, "better")
		c.held()
	})
}

func rowsOf(b *pb.Blame) []*pb.Blamed {
	if b == nil {
		return nil
	}
	return b.Rows
}
