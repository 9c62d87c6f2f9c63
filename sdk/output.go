package sdk

import (
	"context"
	"slices"
	"sync"

	"github.com/coxswain-mesh/coxswain/sdk/internal/outputs"
	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// flushAt is how many bytes an output gathers before it sends.
const flushAt = 256 << 10

// output is an engine's Output for one call. What is said goes through the session's queue, which
// it sends at the latest at its end: so what Overtake and a Commit beside it say of one place is
// sent in the order in which they said it.
type output struct {
	g        *generation
	ctx      context.Context
	revision *pb.Revision

	mu     sync.Mutex
	faults []*pb.Fault
	// placed are the connections of which something was said.
	placed map[uint64]bool
}

// queue is what is to be sent: bodies, before what names them, views, and the rest in its order.
type queue struct {
	bodies []*pb.Body
	views  []*pb.FromPlugin
	rest   []*pb.FromPlugin
	// places are the messages of connections' places that others may join.
	places map[uint64]*pb.Place
	size   int
	// last is the place of the message at the end of rest, if that is one of entries, of a
	// revision, and lastSize bounds its size.
	last     outputs.Place
	of       *pb.Revision
	lastSize int
}

var _ Output = (*output)(nil)

func (o *output) View(typeURL string, view uint64, label string, facts map[string]string) {
	o.g.mu.Lock()
	defer o.g.mu.Unlock()
	o.g.queue.views = append(o.g.queue.views, &pb.FromPlugin{View: &pb.View{View: view, Type: typeURL, Label: label, Facts: facts}})
}

func (o *output) Place(connection uint64, typeURL string, view uint64) {
	o.g.mu.Lock()
	defer o.g.mu.Unlock()
	q := &o.g.queue
	p := q.places[connection]
	if p == nil || p.Revision != o.revision {
		p = &pb.Place{Connection: connection, Revision: o.revision}
		if q.places == nil {
			q.places = map[uint64]*pb.Place{}
		}
		q.places[connection] = p
		o.place(p, 32)
	}
	p.Placements = append(p.Placements, &pb.Placement{Type: typeURL, View: view})
	o.g.placements.Place(connection, typeURL, view)
	q.size += len(typeURL) + 16
}

// attached sees that an Attach is answered: by a Place without placements, if nothing else is to be
// said of the connection.
func (o *output) attached(connection uint64) {
	o.g.mu.Lock()
	defer o.g.mu.Unlock()
	if !o.placed[connection] {
		o.place(&pb.Place{Connection: connection, Revision: o.revision}, 32)
	}
}

func (o *output) refuse(connection uint64, reason error) {
	o.g.mu.Lock()
	defer o.g.mu.Unlock()
	o.place(&pb.Place{Connection: connection, Revision: o.revision, Refused: reason.Error()}, 64)
}

// place queues what is said of a connection.
func (o *output) place(p *pb.Place, size int) {
	if o.placed == nil {
		o.placed = map[uint64]bool{}
	}
	o.placed[p.Connection] = true
	o.g.queue.push(&pb.FromPlugin{Place: p}, size)
}

func (o *output) Part(typeURL string, part uint64, upserts []Resource, removes []string) {
	o.put(outputs.Place{Part: true, Number: part}, typeURL, nil, upserts, removes)
}

func (o *output) Change(typeURL string, view uint64, parts []uint64, upserts []Resource, removes []string) {
	o.put(outputs.Place{Number: view}, typeURL, parts, upserts, removes)
}

// put books a change of a place and queues it. The store's order is the order of sending.
func (o *output) put(p outputs.Place, typeURL string, parts []uint64, upserts []Resource, removes []string) {
	o.g.mu.Lock()
	defer o.g.mu.Unlock()
	q := &o.g.queue
	upserts, removes = o.short(typeURL, upserts, removes)
	found := o.book(p, typeURL, upserts)
	for _, name := range removes {
		o.g.store.Remove(p, typeURL, name)
	}
	if parts != nil {
		o.g.store.List(p.Number, typeURL, parts)
		q.push(&pb.FromPlugin{Change: &pb.Change{Type: typeURL, View: p.Number, Revision: o.revision, SetParts: true, Parts: parts}}, 64+10*len(parts))
	}
	if !o.join(p, typeURL, found, removes) {
		for _, m := range outputs.EntryMessages(p, typeURL, o.revision, found, removes, o.g.room()) {
			q.push(m, m.Size())
			q.last, q.of, q.lastSize = p, o.revision, m.Size()
		}
	}
	if q.size >= flushAt {
		o.send()
	}
}

// short leaves out resources whose names are too long for a message, which is a fault of them
// alone.
func (o *output) short(typeURL string, upserts []Resource, removes []string) ([]Resource, []string) {
	most := outputs.NameRoom(typeURL, o.g.room())
	long := func(r Resource) bool { return len(r.Name) > most }
	if i := slices.IndexFunc(upserts, long); i >= 0 {
		name := cutText(upserts[i].Name, maxReason)
		err := text.Error("its name has ", len(upserts[i].Name), " characters, and may have ", most, ": it is not served")
		o.Log(Error, "a resource's name is too long", "type", typeURL, "resource", name, "reason", err)
		o.Fault("resource "+name+" of type "+typeURL, err)
		upserts = slices.DeleteFunc(slices.Clone(upserts), long)
	}
	longName := func(name string) bool { return len(name) > most }
	if slices.ContainsFunc(removes, longName) {
		removes = slices.DeleteFunc(slices.Clone(removes), longName) // it was never said
	}
	return upserts, removes
}

// join adds entries to the message that was queued last, if that is one of the same place at the
// same revision and all of both is put in: an engine that reports resource by resource would
// otherwise make the core publish as often.
func (o *output) join(p outputs.Place, typeURL string, upserts []*pb.Entry, removes []string) bool {
	q := &o.g.queue
	if len(q.rest) == 0 || q.last != p || q.of != o.revision || len(removes) > 0 {
		return false
	}
	size := q.lastSize
	for _, e := range upserts {
		size += len(e.Name) + 32
	}
	if size > o.g.room() {
		return false
	}
	m := q.rest[len(q.rest)-1]
	switch {
	case m.Change != nil && !p.Part && m.Change.View == p.Number && m.Change.Type == typeURL && len(m.Change.Removes) == 0:
		m.Change.Upserts = append(m.Change.Upserts, upserts...)
	case m.Part != nil && p.Part && m.Part.Part == p.Number && m.Part.Type == typeURL && len(m.Part.Removes) == 0:
		m.Part.Upserts = append(m.Part.Upserts, upserts...)
	default:
		return false
	}
	q.size += size - q.lastSize
	q.lastSize = size
	return true
}

// book numbers bodies and notes who names them.
func (o *output) book(p outputs.Place, typeURL string, resources []Resource) []*pb.Entry {
	found := make([]*pb.Entry, 0, len(resources))
	for i := range resources {
		r := &resources[i]
		b := outputs.Of(r.Body, r.Fields)
		id, fresh := o.g.store.Number(b)
		if fresh {
			o.body(o.g.store.Edit(id, b, o.g.store.Named(p, r.Name), o.g.hello.Edits))
		}
		o.g.store.Set(p, typeURL, r.Name, id)
		found = append(found, &pb.Entry{Name: r.Name, Body: id})
	}
	return found
}

// body queues a body, in pieces if it is large.
func (o *output) body(b *pb.Body) {
	o.g.queue.size += len(b.Bytes)
	o.g.queue.bodies = append(o.g.queue.bodies, outputs.Pieces(b, o.g.room())...)
}

func (o *output) Progress() {
	_ = o.g.link.Send(o.ctx, &pb.FromPlugin{Progress: &pb.Progress{}})
}

func (o *output) Fault(what string, err error, read ...state.Name) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults = append(o.faults, &pb.Fault{What: what, Reason: err.Error(), Rows: rowNames(read)})
}

func (o *output) Log(level Level, words string, args ...any) { o.g.log(o.ctx, level, words, args...) }

// push queues a message, which no other joins unless last says so then.
func (q *queue) push(m *pb.FromPlugin, size int) {
	q.rest = append(q.rest, m)
	q.size += size
	q.last = outputs.Place{}
}

// flush sends what was gathered.
func (o *output) flush() {
	o.g.mu.Lock()
	defer o.g.mu.Unlock()
	o.send()
}

// send sends the queue; its lock is held. An error of Send is the end of the session, which the
// reader sees.
func (o *output) send() {
	q := o.g.queue
	o.g.queue = queue{}
	for _, m := range slices.Concat(outputs.Messages(q.bodies, o.g.room()), q.views, q.rest) {
		o.g.say(o.ctx, m)
	}
}
