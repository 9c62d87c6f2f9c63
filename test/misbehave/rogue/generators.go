package main

import (
	"context"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/sdk/wire"
)

const (
	cds = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	eds = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// generator serves clusters, by hand. place and want say what is sent when a connection is there,
// and when clusters are wanted.
type generator struct {
	*rogue
	revision *pb.Revision
	waiting  []*pb.Attach
	place    func(g *generator, connection uint64) []*pb.FromPlugin
	want     func(g *generator, id uint64) []*pb.FromPlugin
}

func (g *generator) run() error {
	g.ready(&pb.Ready{Kind: pb.KindGenerator, Types: []*pb.Type{{Url: cds}}})
	for {
		m, err := g.recv()
		if err != nil {
			return err
		}
		if m.Drain != nil {
			return nil
		}
		for _, answer := range g.answers(m) {
			if err := g.send(answer); err != nil {
				return err
			}
		}
	}
}

func (g *generator) answers(m *pb.FromCore) []*pb.FromPlugin {
	var all []*pb.FromPlugin
	switch {
	case m.State != nil && !m.State.More:
		g.revision = m.State.Revision
		all = append(all, &pb.FromPlugin{Done: &pb.Done{Revision: g.revision}})
	case m.Attach != nil:
		g.waiting = append(g.waiting, m.Attach)
	case m.Want != nil:
		return g.want(g, m.Want.Id)
	}
	if g.revision == nil {
		return nil
	}
	for _, a := range g.waiting {
		all = append(all, g.place(g, a.Connection)...)
	}
	g.waiting = nil
	return all
}

// placed puts a connection into view 1.
func placed(g *generator, connection uint64) []*pb.FromPlugin {
	return []*pb.FromPlugin{
		{View: &pb.View{View: 1, Type: cds, Label: "rogue"}},
		{Place: &pb.Place{Connection: connection, Revision: g.revision, Placements: []*pb.Placement{{Type: cds, View: 1}}}},
	}
}

func wanted(g *generator, id uint64) *pb.FromPlugin {
	return &pb.FromPlugin{Wanted: &pb.Wanted{Id: id, Revision: g.revision}}
}

// undeclaredType speaks of endpoints, which it did not declare.
func undeclaredType(r *rogue) error {
	g := &generator{rogue: r, want: nil}
	g.place = func(*generator, uint64) []*pb.FromPlugin {
		return []*pb.FromPlugin{{View: &pb.View{View: 1, Type: eds}}}
	}
	return g.run()
}

// undecodable makes a cluster that is none, and a good one under one name twice.
func undecodable(r *rogue) error {
	g := &generator{rogue: r, place: placed}
	g.want = func(g *generator, id uint64) []*pb.FromPlugin {
		const name, altStatName = 1, 28
		good := wire.String(nil, name, "good")
		other := wire.String(good, altStatName, "other")
		return []*pb.FromPlugin{
			{Bodies: &pb.Bodies{Bodies: []*pb.Body{{Id: 1, Bytes: good}, {Id: 2, Bytes: []byte("\xff\xff garbage")}, {Id: 3, Bytes: other}}}},
			{Change: &pb.Change{Type: cds, View: 1, Revision: g.revision, Upserts: []*pb.Entry{
				{Name: "good", Body: 3}, {Name: "bad", Body: 2}, {Name: "good", Body: 1},
			}}},
			wanted(g, id),
		}
	}
	return g.run()
}

func wantedUnknown(r *rogue) error {
	g := &generator{rogue: r, place: placed}
	g.want = func(g *generator, _ uint64) []*pb.FromPlugin { return []*pb.FromPlugin{wanted(g, 999)} }
	return g.run()
}

func wantedTwice(r *rogue) error {
	g := &generator{rogue: r, place: placed}
	g.want = func(g *generator, id uint64) []*pb.FromPlugin { return []*pb.FromPlugin{wanted(g, id), wanted(g, id)} }
	return g.run()
}

// patches answers late, twice, and for ids that it was never asked.
func patches(r *rogue) error {
	r.ready(&pb.Ready{Kind: pb.KindPatch, Types: []*pb.Type{{Url: cds}}})
	for {
		m, err := r.recv()
		if err != nil {
			return err
		}
		switch {
		case m.Drain != nil:
			return nil
		case m.Patch == nil:
			continue
		}
		id := m.Patch.Id
		for _, unknown := range []uint64{id + 1000, id + 1000} {
			if err := r.send(&pb.FromPlugin{Patched: &pb.Patched{Id: unknown, Removes: []string{"good"}}}); err != nil {
				return err
			}
		}
		late := make(chan struct{})
		time.AfterFunc(3*time.Second, func() { close(late) })
		<-late
		for range 2 {
			if err := r.send(&pb.FromPlugin{Patched: &pb.Patched{Id: id, Removes: []string{"good"}}}); err != nil {
				return err
			}
		}
	}
}

// derives is a deriver that says of each VirtualService that it has seen it. It dies of one called
// cursed, unless it does something else with all.
func derives(name string, instead func()) sdk.DeriverPlugin {
	return sdk.DeriverPlugin{
		Name: name, Version: "v1", Reads: []string{virtualServices}, Publishes: []string{"rogue.example/Seen"},
		New: sdk.WithoutConfig(func() (sdk.Deriver, error) { return deriver(instead), nil }),
	}
}

const virtualServices = "networking.istio.io/VirtualService"

type deriver func()

func (d deriver) Derive(_ context.Context, change *state.Change, out sdk.Publisher) error {
	if d != nil {
		d()
	}
	var rows []*sdk.Row
	for _, key := range change.State.Table(virtualServices).Keys() {
		if strings.HasSuffix(key, "/cursed") {
			go panic("I can't stand " + key) // where the SDK does not catch it
			select {}
		}
		rows = append(rows, &sdk.Row{Key: key})
	}
	return out.Update("rogue.example/Seen", rows, nil)
}
