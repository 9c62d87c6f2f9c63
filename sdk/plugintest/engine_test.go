package plugintest_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// scripted is an engine of one view of all endpoints, number 1, of which each row is a resource. It
// holds a Commit while the table `hold` has a row, until release.
type scripted struct {
	state   *state.State
	holding chan struct{}
	release chan struct{}
	commits chan []string
}

func newScripted() *scripted {
	return &scripted{
		state: &state.State{}, holding: make(chan struct{}), release: make(chan struct{}), commits: make(chan []string, 100),
	}
}

func (e *scripted) plugin() sdk.EnginePlugin {
	return sdk.EnginePlugin{
		Name: "scripted", Reads: []string{"endpoints", "hold"}, Types: []sdk.Type{{Url: eds}},
		New: sdk.WithoutConfig(func() (sdk.Engine, error) { return e, nil }),
	}
}

func (e *scripted) Commit(_ context.Context, c *state.Change, out sdk.Output) error {
	e.state = c.State
	e.commits <- c.Keys["endpoints"]
	if len(c.Keys["hold"]) > 0 && c.Before != nil {
		e.holding <- struct{}{}
		<-e.release
	}
	e.report(c, out)
	return nil
}

func (e *scripted) report(c *state.Change, out sdk.Output) {
	for _, k := range c.Keys["endpoints"] {
		if r := c.State.Row("endpoints", k); r != nil {
			out.Change(eds, 1, nil, []sdk.Resource{{Name: k, Body: r.Payload}}, nil)
		} else {
			out.Change(eds, 1, nil, nil, []string{k})
		}
	}
}

func (e *scripted) Overtake(_ context.Context, c *state.Change, out sdk.Output) error {
	e.report(c, out)
	return nil
}

func (e *scripted) Attach(_ context.Context, p *sdk.Proxy, out sdk.Output) error {
	out.View(eds, 1, "everything", map[string]string{"scope": "all"})
	out.Place(p.Connection, eds, 1)
	return nil
}

func (e *scripted) Detach(uint64) {}

func (e *scripted) Want(_ context.Context, _ string, view uint64, names []string, out sdk.Output) error {
	for _, n := range names {
		r := e.state.Row("endpoints", n)
		if r == nil {
			r = &sdk.Row{}
		}
		out.Change(eds, view, nil, []sdk.Resource{{Name: n, Body: r.Payload}}, nil)
	}
	return nil
}

func (e *scripted) Drop(string, uint64, []string, bool) {}

func (e *scripted) Explain(_ string, _ uint64, name string) (rows, missing []state.Name, err error) {
	return []state.Name{{Table: "endpoints", Key: name}}, nil, nil
}

func endpoints(kv ...string) []*sdk.Row {
	var rows []*sdk.Row
	for i := 0; i < len(kv); i += 2 {
		rows = append(rows, &sdk.Row{Key: kv[i], Payload: []byte(kv[i+1])})
	}
	return rows
}

// Endpoints overtake a Commit that runs; they are in its result too, though its State had older
// rows; later States win over them.
func TestOvertake(t *testing.T) {
	e := newScripted()
	h := plugintest.Start(t, e.plugin(), nil)
	h.Update("endpoints", endpoints("a", "1", "b", "1"))
	h.Attach(&sdk.Proxy{Connection: 1, Types: []string{eds}})
	h.Resources(1, eds, "a", "b")

	full := h.Send(plugintest.Rows{Table: "hold", Upserts: endpoints("x", "")}, plugintest.Rows{Table: "endpoints", Upserts: endpoints("a", "2")})
	<-e.holding
	h.WaitDone(h.Overtake(endpoints("a", "3"), "b"))
	if got := fmt.Sprint(h.View(1)); got != "map[a:[51]]" {
		t.Errorf("while the Commit runs: %s", got)
	}
	later := h.Send(plugintest.Rows{Table: "endpoints", Upserts: endpoints("b", "4")})
	e.release <- struct{}{}
	h.WaitDone(full)
	h.WaitDone(later)
	if got := fmt.Sprint(h.View(1)); got != "map[a:[51] b:[52]]" {
		t.Errorf("after all: %s", got)
	}
	// Idle: it is done at once, and a later Want knows it.
	h.WaitDone(h.Overtake(endpoints("c", "5")))
	if got := h.Resources(1, eds, "c"); string(got["c"]) != "5" {
		t.Errorf("overtaking while idle: %v", got)
	}
	if n := len(h.Faults()); n > 0 {
		t.Errorf("faults: %v", h.Faults())
	}
}

// telling is scripted, but a Commit holds after its report, and nobody says again what was said
// last.
type telling struct {
	*scripted
	mu   sync.Mutex
	told map[string]string
}

func (e *telling) Commit(_ context.Context, c *state.Change, out sdk.Output) error {
	e.report(c, out)
	if len(c.Keys["hold"]) > 0 && c.Before != nil {
		e.holding <- struct{}{}
		<-e.release
	}
	return nil
}

func (e *telling) Overtake(_ context.Context, c *state.Change, out sdk.Output) error {
	e.report(c, out)
	return nil
}

func (e *telling) report(c *state.Change, out sdk.Output) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, k := range c.Keys["endpoints"] {
		if text := string(c.State.Row("endpoints", k).Payload); text != e.told[k] {
			e.told[k] = text
			out.Change(eds, 1, nil, []sdk.Resource{{Name: k, Body: []byte(text)}}, nil)
		}
	}
}

// TestOvertakeReported: what Overtake says after a Commit that goes on is what holds, though the
// Commit had not sent what it said before.
func TestOvertakeReported(t *testing.T) {
	e := &telling{scripted: newScripted(), told: map[string]string{}}
	p := e.plugin()
	p.New = sdk.WithoutConfig(func() (sdk.Engine, error) { return e, nil })
	h := plugintest.Start(t, p, nil)
	h.Update("endpoints", endpoints("a", "1"))
	h.Attach(&sdk.Proxy{Connection: 1, Types: []string{eds}})
	full := h.Send(plugintest.Rows{Table: "hold", Upserts: endpoints("x", "")}, plugintest.Rows{Table: "endpoints", Upserts: endpoints("a", "2")})
	<-e.holding
	h.WaitDone(h.Overtake(endpoints("a", "3")))
	e.release <- struct{}{}
	h.WaitDone(full)
	h.Settle()
	if got := string(h.View(1)["a"]); got != "3" {
		t.Errorf("a is %s", got)
	}
}

// Bodies over a message's size come in pieces; the core may let go of bodies and miss them
// afterwards.
func TestBodies(t *testing.T) {
	e := newScripted()
	h := plugintest.Start(t, e.plugin(), nil)
	h.Update("endpoints", endpoints("a", "1"))
	h.Attach(&sdk.Proxy{Connection: 1, Types: []string{eds}})
	h.Resources(1, eds, "a")

	sent := h.Bodies()
	h.ForgetBodies()
	if err := h.Link().Send(t.Context(), &pb.FromCore{Missing: &pb.Missing{Bodies: []uint64{1}}}); err != nil {
		t.Fatal(err)
	}
	h.Settle()
	if got := h.View(1); string(got["a"]) != "1" || h.Bodies() != sent {
		t.Errorf("after Missing: %v", got)
	}
	h.Update("endpoints", endpoints("a", "2"))
	if err := h.Link().Send(t.Context(), &pb.FromCore{Freed: &pb.Freed{Bodies: []uint64{1}}}); err != nil {
		t.Fatal(err)
	}
	h.Settle()
	h.ForgetBodies()
	h.Update("endpoints", endpoints("a", "1")) // The harness fails if its body is not sent again.
	if got := h.Explain(eds, 1, "a"); len(got.Rows) != 1 || got.Rows[0].Key != "a" {
		t.Errorf("because: %+v", got)
	}
}

// giant is an engine that reports one body of 3 MiB and 60,000 names.
type giant struct{ scripted }

func (e *giant) Commit(_ context.Context, c *state.Change, out sdk.Output) error {
	out.Part(eds, 7, []sdk.Resource{{Name: "giant", Body: bytes.Repeat([]byte{1, 2, 3}, 1<<20)}}, nil)
	many := make([]sdk.Resource, 60_000)
	for i := range many {
		many[i] = sdk.Resource{Name: fmt.Sprintf("outbound|80||service-%d.namespace.svc.cluster.local", i), Body: []byte{byte(i)}}
	}
	out.Change(eds, 1, []uint64{7}, many, nil)
	return nil
}

func TestGiant(t *testing.T) {
	e := &giant{*newScripted()}
	p := e.plugin()
	p.New = sdk.WithoutConfig(func() (sdk.Engine, error) { return e, nil })
	h := plugintest.Start(t, p, nil)
	h.Update("endpoints", nil)
	got := h.View(1)
	if len(got) != 60_001 || len(got["giant"]) != 3<<20 {
		t.Errorf("%d resources, the giant has %d bytes", len(got), len(got["giant"]))
	}
	if h.Bodies() != 257 {
		t.Errorf("%d bodies were sent, want 257", h.Bodies())
	}
}
