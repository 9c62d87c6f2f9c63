package sdk

import (
	"context"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/internal/connections"
	"github.com/coxswain-mesh/coxswain/sdk/internal/outputs"
	"github.com/coxswain-mesh/coxswain/sdk/internal/serial"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// generation runs an engine: its methods one after the other in the order of messages, but for
// Overtake.
type generation struct {
	*pluginSession
	engine Engine
	// author is what may have extras: the engine, or the generator that was adapted.
	author     any
	serial     *serial.Queue
	overtaking *serial.Queue
	commits    commits
	// parts of a State that isn't complete, and lists of extensions: of the reader alone.
	parts      []*pb.State
	extensions connections.Extensions
	placements *connections.Placements
	// revision of the last Commit, jobs that came before the first one, what ends the session, and
	// whether bodies were freed since the last rest: of the serial queue alone.
	revision *pb.Revision
	loose    bool
	early    []func()
	broken   error
	stop     context.CancelFunc

	// mu guards what outputs share.
	mu    sync.Mutex
	store *outputs.Store
	queue queue
}

func newGeneration(ps *pluginSession, e Engine, author any) *generation {
	return &generation{
		pluginSession: ps, engine: e, author: author, serial: serial.New(), overtaking: serial.New(),
		extensions: connections.NewExtensions(), placements: connections.NewPlacements(), store: outputs.New(),
	}
}

func (g *generation) proto() pb.Kind { return pb.KindGenerator }

func (g *generation) reports() bool {
	_, ok := g.author.(Reporter)
	return ok
}

func (g *generation) run(ctx context.Context) error {
	return feed(ctx, g.ownSource(g.author, pb.KindGenerator), g.lanes)
}

func (g *generation) lanes(ctx context.Context) error {
	ctx, g.stop = context.WithCancel(ctx)
	defer g.stop()
	var lanes sync.WaitGroup
	lanes.Go(func() { g.overtaking.Run(ctx) })
	g.serial.Rest = func() { g.rest(ctx) }
	g.serial.Run(ctx)
	lanes.Wait()
	return g.broken
}

func (g *generation) receive(ctx context.Context, m *pb.FromCore, release func()) error {
	switch {
	case m.State != nil:
		g.state(ctx, m.State, release)
		return nil
	case m.Extensions != nil:
		g.extensions.Add(m.Extensions.Id, m.Extensions.Names)
		release()
		return nil
	}
	if job := g.job(ctx, m); job != nil {
		g.serial.Add(func() {
			defer release()
			g.begin(func() { g.alive(ctx, job) })
		})
		return nil
	}
	release()
	return nil
}

// begin runs a job; before the first Commit it keeps it, since what it reports must belong to a
// revision. (The core attaches proxies that are connected already when a plugin is back.)
func (g *generation) begin(job func()) {
	if g.revision == nil {
		g.early = append(g.early, job)
		return
	}
	job()
}

// catchUp runs what was kept.
func (g *generation) catchUp() {
	early := g.early
	g.early = nil
	for _, job := range early {
		job()
	}
}

// state queues a revision once all its messages are there. Rows live on in the tables, so their
// credit is given back at once: a state may be larger than the credit.
func (g *generation) state(ctx context.Context, m *pb.State, release func()) {
	release()
	if m.Overtakes {
		if change, busy := g.commits.overtake(m); change != nil {
			g.overtakes(ctx, change, busy)
			return
		}
	}
	if g.parts = append(g.parts, m); m.More {
		return
	}
	messages := g.parts
	g.parts = nil
	g.commits.receive()
	g.serial.Add(func() { g.alive(ctx, func() { g.commit(ctx, messages) }) })
}

// overtakes queues Overtake beside a Commit that runs or waits, or in its own turn; and a Commit of
// the same rows.
func (g *generation) overtakes(ctx context.Context, change *state.Change, busy bool) {
	l := g.serial
	if busy {
		l = g.overtaking
	}
	l.Add(func() { g.alive(ctx, func() { g.overtake(ctx, change) }) })
	g.serial.Add(func() { g.alive(ctx, func() { g.fold(ctx) }) })
}

// commit takes the engine to a revision, with what overtook it, and says Done.
func (g *generation) commit(ctx context.Context, messages []*pb.State) {
	began := time.Now()
	change, n, err := g.commits.next(messages)
	if err != nil {
		g.breach(err)
		return
	}
	g.revision = messages[len(messages)-1].Revision
	var faults []*pb.Fault
	for {
		faults = append(faults, g.step(ctx, change)...)
		if g.commits.finish(n) {
			break
		}
		if change, n, err = g.commits.more(n); err != nil {
			g.breach(err)
			return
		}
	}
	initialized()
	g.catchUp()
	g.done(ctx, faults, since("Commit", began))
}

// fold commits what overtook and is not part of a Commit yet. What that changes belongs to the
// revision of the last Commit.
func (g *generation) fold(ctx context.Context) {
	began := time.Now()
	change, n, err := g.commits.fold()
	switch {
	case err != nil:
		g.breach(err)
	case change != nil:
		faults := g.step(ctx, change)
		g.commits.folded(n)
		g.done(ctx, faults, since("Commit", began))
	}
}

// breach ends a session whose states make no sense.
func (g *generation) breach(err error) {
	g.broken = err
	g.stop()
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

func (g *generation) overtake(ctx context.Context, change *state.Change) {
	revision := change.State.Revision().Proto()
	began, out := time.Now(), g.output(ctx, revision)
	if err := caught("Overtake", func() error { return g.engine.Overtake(ctx, change, out) }); err != nil {
		out.Fault("overtake", err)
	}
	out.flush()
	g.say(ctx, &pb.FromPlugin{Done: &pb.Done{Revision: revision, Faults: bounded(g.told.large.with(out.faults)), Spans: []*pb.Span{since("Overtake", began)}}})
}

func (g *generation) output(ctx context.Context, revision *pb.Revision) *output {
	return &output{g: g, ctx: ctx, revision: revision}
}
