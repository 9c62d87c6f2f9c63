package sdk

import (
	"context"
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// generation runs an engine: its methods one after the other in the order of messages, but for Overtake.
type generation struct {
	*talk
	engine Engine
	// author is what may have extras: the engine, or the generator that was adapted.
	author     any
	serial     *lane
	overtaking *lane
	commits    commits
	// parts of a State that isn't complete, and extensions by id: of the reader alone.
	parts      []*pb.State
	extensions map[uint64][]string
	// revision of the last Commit: of the serial lane alone.
	revision *pb.Revision

	// mu guards what outputs share.
	mu     sync.Mutex
	ledger *ledger
	bodies []*pb.Body
}

func newGeneration(t *talk, e Engine, author any) *generation {
	return &generation{
		talk: t, engine: e, author: author, serial: newLane(), overtaking: newLane(),
		extensions: map[uint64][]string{}, ledger: newLedger(),
	}
}

func (g *generation) proto() pb.Kind { return pb.KindGenerator }

func (g *generation) reports() bool {
	_, ok := g.author.(Reporter)
	return ok
}

func (g *generation) run(ctx context.Context) error {
	return g.feed(ctx, g.lanes)
}

func (g *generation) lanes(ctx context.Context) error {
	var lanes sync.WaitGroup
	lanes.Go(func() { g.overtaking.run(ctx) })
	g.serial.run(ctx)
	lanes.Wait()
	return nil
}

func (g *generation) receive(ctx context.Context, m *pb.FromCore, release func()) error {
	switch {
	case m.State != nil:
		g.state(ctx, m.State, release)
		return nil
	case m.Extensions != nil:
		g.extensions[m.Extensions.Id] = m.Extensions.Names
		release()
		return nil
	}
	if job := g.job(ctx, m); job != nil {
		g.serial.add(func() {
			defer release()
			g.alive(ctx, job)
		})
		return nil
	}
	release()
	return nil
}

// state queues a revision once all its messages are there.
func (g *generation) state(ctx context.Context, m *pb.State, release func()) {
	if m.Overtakes && g.commits.receive(m) {
		g.overtaking.add(func() {
			defer release()
			g.alive(ctx, func() { g.overtake(ctx, m) })
		})
		return
	}
	// Rows live on in the tables: their credit is given back at once, so that a state may be larger than the credit.
	release()
	if g.parts = append(g.parts, m); m.More {
		return
	}
	messages := g.parts
	g.parts = nil
	if !m.Overtakes {
		g.commits.receive(m)
	}
	g.serial.add(func() { g.alive(ctx, func() { g.commit(ctx, messages) }) })
}

// commit takes the engine to a revision, with what overtook it, and says Done.
func (g *generation) commit(ctx context.Context, messages []*pb.State) {
	change, n, err := g.commits.next(messages)
	if err != nil {
		g.log(ctx, Error, "a state can't be applied", "error", err)
		_ = g.link.Close()
		return
	}
	g.revision = change.State.Revision().Proto()
	var faults []*pb.Fault
	for change != nil {
		faults = append(faults, g.step(ctx, change)...)
		if g.commits.finish(n) {
			break
		}
		change, n, _ = g.commits.onTop(n, change.State.Revision())
	}
	_ = g.link.Send(ctx, &pb.FromPlugin{Done: &pb.Done{Revision: g.revision, Faults: faults}})
}

// step is one Commit; the changes of one that fails come again with the next.
func (g *generation) step(ctx context.Context, change *state.Change) []*pb.Fault {
	change = merge(g.commits.missed, change)
	out := g.output(ctx, g.revision)
	err := caught("Commit", func() error { return g.engine.Commit(ctx, change, out) })
	g.commits.missed = nil
	if err != nil {
		g.commits.missed = change
		out.Fault("commit", err)
	}
	out.flush()
	return out.faults
}

func (g *generation) overtake(ctx context.Context, m *pb.State) {
	out := g.output(ctx, m.Revision)
	change := g.commits.overtake(m)
	if err := caught("Overtake", func() error { return g.engine.Overtake(ctx, change, out) }); err != nil {
		out.Fault("overtake", err)
	}
	out.flush()
	_ = g.link.Send(ctx, &pb.FromPlugin{Done: &pb.Done{Revision: m.Revision, Faults: out.faults}})
}

func (g *generation) output(ctx context.Context, revision *pb.Revision) *output {
	return &output{g: g, ctx: ctx, revision: revision}
}
