package sdk

import (
	"context"

	"github.com/coxswain-mesh/coxswain/sdk/internal/outputs"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// job returns what a message asks of an engine, nil where it asks nothing.
func (g *generation) job(ctx context.Context, m *pb.FromCore) func() {
	switch {
	case m.Attach != nil:
		p := g.proxy(m.Attach)
		return func() { g.attach(ctx, p) }
	case m.Detach != nil:
		g.extensions.Detach(m.Detach.Connection)
		return func() { g.detach(ctx, m.Detach.Connection) }
	case m.Want != nil:
		return func() { g.want(ctx, m.Want) }
	case m.Drop != nil:
		return func() { g.drop(ctx, m.Drop) }
	case m.Freed != nil:
		return func() { g.freed(m.Freed.Bodies) }
	case m.Missing != nil:
		return func() { g.missing(ctx, m.Missing.Bodies) }
	case m.Explain != nil:
		return func() { g.explain(ctx, m.Explain) }
	case m.Ask != nil:
		return func() { g.ask(ctx, m.Ask) }
	case m.Report != nil:
		return func() { g.report(ctx, m.Report) }
	}
	return nil
}

func (g *generation) proxy(a *pb.Attach) *Proxy {
	return &Proxy{
		Connection: a.Connection, Node: a.Node, Extensions: g.extensions.Attach(a.Connection, a.Extensions),
		Identities: a.Identities, RemoteAddress: a.RemoteAddress, Types: a.Types,
	}
}

// guard runs author code that returns nothing; a panic is logged.
func (g *generation) guard(ctx context.Context, what string, f func()) {
	if err := caught(what, func() error { f(); return nil }); err != nil {
		g.log(ctx, Error, "the plugin panicked", "error", err)
	}
}

func (g *generation) attach(ctx context.Context, p *Proxy) {
	out := g.output(ctx, g.revision)
	err := caught("Attach", func() error { return g.engine.Attach(ctx, p, out) })
	if err != nil {
		out.refuse(p.Connection, err)
	} else {
		out.attached(p.Connection)
	}
	g.finish(ctx, out)
}

// want answers a Want. A part of it that fails is not answered, which means: not yet.
func (g *generation) want(ctx context.Context, w *pb.Want) {
	out := g.output(ctx, g.revision)
	ok := true
	ask := func(names []string) {
		err := caught("Want", func() error { return g.engine.Want(ctx, w.Type, w.View, names, out) })
		if err != nil {
			ok = false
			g.log(ctx, Error, "the plugin could not answer", "type", w.Type, "view", w.View, "error", err)
		}
	}
	if w.Wildcard {
		ask(nil)
	}
	if len(w.Names) > 0 {
		ask(w.Names)
	}
	g.finish(ctx, out)
	if ok {
		g.say(ctx, &pb.FromPlugin{Wanted: &pb.Wanted{Id: w.Id, Revision: g.revision}})
	}
}

// finish sends what an output gathered.
func (g *generation) finish(ctx context.Context, out *output) {
	out.flush()
	if len(out.faults) > 0 {
		g.done(ctx, out.faults)
	}
}

// done says that the revision of the last Commit is done, for the first time or again: the faults
// are those of now.
func (g *generation) done(ctx context.Context, faults []*pb.Fault, spans ...*pb.Span) {
	g.pluginSession.done(ctx, g.revision, faults, spans...)
}

func (g *generation) detach(ctx context.Context, connection uint64) {
	g.guard(ctx, "Detach", func() { g.engine.Detach(connection) })
	for _, n := range g.placements.Detach(connection) {
		g.drop(ctx, &pb.Drop{Type: n.Type, View: n.View, All: true})
	}
}

// drop takes back what was wanted. A view that the core dropped before it saw that a connection was
// placed into it stays.
func (g *generation) drop(ctx context.Context, d *pb.Drop) {
	if d.All && g.placements.Keeps(d.Type, d.View) {
		return
	}
	g.guard(ctx, "Drop", func() {
		if d.Wildcard || d.All {
			g.engine.Drop(d.Type, d.View, nil, d.All)
		}
		if len(d.Names) > 0 && !d.All {
			g.engine.Drop(d.Type, d.View, d.Names, false)
		}
	})
	if d.All {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.store.Forget(outputs.Place{Number: d.View})
	}
}

// rest lets an engine let go of what nobody wants.
func (g *generation) rest(ctx context.Context) {
	loose := g.loose
	g.loose = false
	if x, ok := g.engine.(Rester); ok {
		out := g.output(ctx, g.revision)
		g.guard(ctx, "Rest", func() { loose = x.Rest(ctx, out) || loose })
		g.finish(ctx, out)
	}
	if loose {
		freed.Store(true)
	}
}

func (g *generation) freed(ids []uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.store.Freed(ids)
	g.loose = true
}

// missing sends bodies again, and what names them.
func (g *generation) missing(ctx context.Context, ids []uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	wanted := map[uint64]bool{}
	var bodies []*pb.Body
	for _, id := range ids {
		if b := g.store.Body(id); b != nil {
			wanted[id] = true
			bodies = append(bodies, outputs.Pieces(&pb.Body{Id: id, Bytes: b.Whole()}, g.room())...)
		}
	}
	for _, m := range append(outputs.Messages(bodies, g.room()), g.store.Naming(wanted, g.revision, g.room())...) {
		g.say(ctx, m)
	}
}

func (g *generation) explain(ctx context.Context, e *pb.Explain) {
	because := &pb.Because{Id: e.Id}
	err := caught("Explain", func() error {
		x, ok := g.author.(Explainer)
		if !ok {
			x, ok = g.engine.(Explainer)
		}
		if !ok {
			return errNotSupported
		}
		if rows, ok := g.explainPiece(e, x); ok {
			because.Rows, because.Piece = rowNames(rows), true
			return nil
		}
		rows, missing, err := x.Explain(e.Type, e.View, e.Name)
		because.Rows, because.Missing = rowNames(rows), rowNames(missing)
		return err
	})
	if err != nil {
		because.Error = err.Error()
	}
	g.answer(ctx, &pb.FromPlugin{Because: because}, func(reason string) *pb.FromPlugin {
		return &pb.FromPlugin{Because: &pb.Because{Id: e.Id, Error: reason}}
	})
}

// explainPiece explains the piece of a resource that is asked for, if any; false: it isn't known.
func (g *generation) explainPiece(e *pb.Explain, x Explainer) ([]state.Name, bool) {
	by, ok := x.(PieceExplainer)
	if !ok || e.Piece == "" && e.FilterChain == 0 {
		return nil, false
	}
	return by.ExplainPiece(e.Type, e.View, e.Name, Piece{e.Piece, int(e.FilterChain)})
}

func (g *generation) ask(ctx context.Context, a *pb.Ask) {
	answer := &pb.Answer{Id: a.Id}
	ctx, cancel := g.deadline(ctx)
	defer cancel()
	err := caught("Answer", func() error {
		x, ok := g.author.(Answerer)
		if !ok {
			return errNotSupported
		}
		found, err := x.Answer(ctx, a.Connection, a.Type, a.Names)
		answer.Resources = resourcesProto(found)
		return err
	})
	if err != nil {
		answer.Error = err.Error()
	}
	g.answer(ctx, &pb.FromPlugin{Answer: answer}, func(reason string) *pb.FromPlugin {
		return &pb.FromPlugin{Answer: &pb.Answer{Id: a.Id, Error: reason}}
	})
}

func (g *generation) report(ctx context.Context, r *pb.Report) {
	if x, ok := g.author.(Reporter); ok {
		g.guard(ctx, "Report", func() {
			x.Report(Report{
				Connection: r.Connection, Type: r.Type, Event: r.Event, Detail: r.Detail, Revision: state.RevisionOf(r.Revision),
			})
		})
	}
}
