package plugintest

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// world is what the plugin has said so far.
type world struct {
	rows map[string]map[string]*pb.Row
	// upserts is how many rows were published, however often.
	// deletes is how many were taken back.
	upserts, deletes int
	synced           bool
	done             map[uint64]bool
	faults           []*pb.Fault
	logs             []*pb.Log

	bodies  map[uint64][]byte
	partial map[uint64][]byte
	ends    map[uint64][]byte // of bodies that are edits of others
	parts   map[uint64]map[string]uint64
	views   map[uint64]*view
	placed  map[uint64]map[string]uint64
	refusal map[uint64]string
	wanted  map[uint64]bool

	callers map[uint64]*pb.Caller
	patched map[uint64]*pb.Patched
	because map[uint64]*pb.Because
	answers map[uint64]*pb.Answer
	replies map[uint64]*pb.FromPlugin // Stored and Called
}

type view struct {
	label string
	facts map[string]string
	parts []uint64
	own   map[string]uint64
}

func newWorld() world {
	return world{
		rows: map[string]map[string]*pb.Row{}, done: map[uint64]bool{},
		bodies: map[uint64][]byte{}, partial: map[uint64][]byte{}, ends: map[uint64][]byte{}, parts: map[uint64]map[string]uint64{},
		views: map[uint64]*view{}, placed: map[uint64]map[string]uint64{}, refusal: map[uint64]string{}, wanted: map[uint64]bool{},
		callers: map[uint64]*pb.Caller{}, patched: map[uint64]*pb.Patched{}, because: map[uint64]*pb.Because{},
		answers: map[uint64]*pb.Answer{}, replies: map[uint64]*pb.FromPlugin{},
	}
}

// handle takes a message; an error is a breach of the contract.
func (w *world) handle(m *pb.FromPlugin) error {
	switch {
	case m.Rows != nil:
		w.handleRows(m.Rows)
	case m.Synced != nil:
		w.synced = true
	case m.Done != nil && m.Done.Revision == nil:
		return errors.New("its Done names no revision; a source's is of number 0")
	case m.Done != nil:
		w.done[m.Done.Revision.Number] = true
		w.faults = append(w.faults, m.Done.Faults...)
	case m.Log != nil:
		w.logs = append(w.logs, m.Log)
	case m.Caller != nil:
		w.callers[m.Caller.Id] = m.Caller
	case m.Patched != nil:
		w.patched[m.Patched.Id] = m.Patched
	case m.Because != nil:
		w.because[m.Because.Id] = m.Because
	case m.Answer != nil:
		w.answers[m.Answer.Id] = m.Answer
	case m.Stored != nil:
		w.replies[m.Stored.Id] = m
	case m.Called != nil:
		w.replies[m.Called.Id] = m
	case m.Wanted != nil:
		w.wanted[m.Wanted.Id] = true
	default:
		return w.handleViews(m)
	}
	return nil
}

func (w *world) handleRows(m *pb.Rows) {
	for _, t := range m.Tables {
		table := w.rows[t.Table]
		if table == nil {
			table = map[string]*pb.Row{}
			w.rows[t.Table] = table
		}
		w.upserts += len(t.Upserts)
		w.deletes += len(t.Deletes)
		for _, r := range t.Upserts {
			table[r.Key] = r
		}
		for _, k := range t.Deletes {
			delete(table, k)
		}
	}
}

func (w *world) handleViews(m *pb.FromPlugin) error {
	switch {
	case m.View != nil:
		v := w.view(m.View.View)
		v.label, v.facts = m.View.Label, m.View.Facts
	case m.Place != nil:
		return w.place(m.Place)
	case m.Bodies != nil:
		for _, b := range m.Bodies.Bodies {
			if err := w.body(b); err != nil {
				return err
			}
		}
	case m.Part != nil:
		p := w.parts[m.Part.Part]
		if p == nil {
			p = map[string]uint64{}
			w.parts[m.Part.Part] = p
		}
		return w.entries(p, m.Part.Upserts, m.Part.Removes)
	case m.Change != nil:
		v := w.view(m.Change.View)
		if m.Change.SetParts {
			v.parts = m.Change.Parts
		}
		return w.entries(v.own, m.Change.Upserts, m.Change.Removes)
	}
	return nil
}

func (w *world) view(number uint64) *view {
	v := w.views[number]
	if v == nil {
		v = &view{own: map[string]uint64{}}
		w.views[number] = v
	}
	return v
}

func (w *world) place(p *pb.Place) error {
	at := w.placed[p.Connection]
	if at == nil {
		at = map[string]uint64{}
		w.placed[p.Connection] = at
	}
	if p.Refused != "" {
		w.refusal[p.Connection] = p.Refused
	}
	for _, to := range p.Placements {
		if to.View != 0 && w.views[to.View] == nil {
			return fmt.Errorf("connection %d is placed in view %d, which was not described", p.Connection, to.View)
		}
		at[to.Type] = to.View
	}
	return nil
}

func (w *world) body(b *pb.Body) error {
	if b.Base != 0 {
		base := w.bodies[b.Base]
		if size := uint64(len(base)); b.Head > size || b.Tail > size-b.Head {
			return fmt.Errorf("body %d keeps %d + %d bytes of body %d, which has %d", b.Id, b.Head, b.Tail, b.Base, len(base))
		}
		w.partial[b.Id], w.ends[b.Id] = slices.Clone(base[:b.Head]), base[uint64(len(base))-b.Tail:]
	}
	w.partial[b.Id] = append(w.partial[b.Id], b.Bytes...)
	if b.More {
		return nil
	}
	w.bodies[b.Id] = append(w.partial[b.Id], w.ends[b.Id]...)
	delete(w.partial, b.Id)
	delete(w.ends, b.Id)
	return nil
}

func (w *world) entries(into map[string]uint64, upserts []*pb.Entry, removes []string) error {
	for _, e := range upserts {
		if _, ok := w.bodies[e.Body]; !ok && e.Body != 0 {
			return fmt.Errorf("resource %q names body %d, which was not sent", e.Name, e.Body)
		}
		into[e.Name] = e.Body
	}
	for _, name := range removes {
		delete(into, name)
	}
	return nil
}

// resources returns what a view holds: own entries hide the parts', earlier parts hide later ones.
func (w *world) resources(number uint64) map[string][]byte {
	v := w.views[number]
	if v == nil {
		return nil
	}
	ids := map[string]uint64{}
	for _, p := range slices.Backward(v.parts) {
		maps.Copy(ids, w.parts[p])
	}
	maps.Copy(ids, v.own)
	found := make(map[string][]byte, len(ids))
	for name, id := range ids {
		found[name] = w.bodies[id]
	}
	return found
}
