package sdk

import (
	"context"
	"slices"
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// flushAt is how many bytes an output gathers before it sends.
const flushAt = 256 << 10

// output is an engine's Output for one call. Bodies go before what names them.
type output struct {
	g        *generation
	ctx      context.Context
	revision *pb.Revision

	mu     sync.Mutex
	views  []*pb.FromPlugin
	rest   []*pb.FromPlugin
	places map[uint64]*pb.Place
	size   int
	// last is the place of the message at the end of rest, if that is one of entries, and lastSize bounds its size.
	last     place
	lastSize int
	faults   []*pb.Fault
}

var _ Output = (*output)(nil)

func (o *output) View(typeURL string, view uint64, label string, facts map[string]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.views = append(o.views, &pb.FromPlugin{View: &pb.View{View: view, Type: typeURL, Label: label, Facts: facts}})
}

func (o *output) Place(connection uint64, typeURL string, view uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.places[connection]
	if p == nil {
		p = &pb.Place{Connection: connection, Revision: o.revision}
		if o.places == nil {
			o.places = map[uint64]*pb.Place{}
		}
		o.places[connection] = p
		o.push(&pb.FromPlugin{Place: p}, 32)
	}
	p.Placements = append(p.Placements, &pb.Placement{Type: typeURL, View: view})
	o.g.placements.place(connection, typeURL, view)
	o.size += len(typeURL) + 16
}

// attached sees that an Attach is answered: by a Place without placements, if nothing else is to be said of the connection.
func (o *output) attached(connection uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.places[connection] == nil {
		o.push(&pb.FromPlugin{Place: &pb.Place{Connection: connection, Revision: o.revision}}, 32)
	}
}

func (o *output) refuse(connection uint64, reason error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.push(&pb.FromPlugin{Place: &pb.Place{Connection: connection, Revision: o.revision, Refused: reason.Error()}}, 64)
}

func (o *output) Part(typeURL string, part uint64, upserts []Resource, removes []string) {
	o.put(place{part: true, number: part}, typeURL, nil, upserts, removes)
}

func (o *output) Change(typeURL string, view uint64, parts []uint64, upserts []Resource, removes []string) {
	o.put(place{number: view}, typeURL, parts, upserts, removes)
}

// put books a change of a place and queues it. The ledger's order is the order of sending.
func (o *output) put(p place, typeURL string, parts []uint64, upserts []Resource, removes []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.g.mu.Lock()
	defer o.g.mu.Unlock()
	found := o.book(p, typeURL, upserts)
	for _, name := range removes {
		o.g.ledger.remove(p, typeURL, name)
	}
	if parts != nil {
		o.g.ledger.list(p.number, typeURL, parts)
		o.push(&pb.FromPlugin{Change: &pb.Change{Type: typeURL, View: p.number, Revision: o.revision, SetParts: true, Parts: parts}}, 64+10*len(parts))
		o.last = place{}
	}
	if !o.join(p, typeURL, found, removes) {
		for _, m := range entryMessages(p, typeURL, o.revision, found, removes, o.g.room()) {
			o.push(m, m.Size())
			o.last, o.lastSize = p, m.Size()
		}
	}
	if o.size >= flushAt {
		o.send()
	}
}

// join adds entries to the message that was queued last, if that is one of the same place and all of both is put in: an engine that
// reports resource by resource would otherwise make the core publish as often.
func (o *output) join(p place, typeURL string, upserts []*pb.Entry, removes []string) bool {
	if len(o.rest) == 0 || o.last != p || len(removes) > 0 {
		return false
	}
	size := o.lastSize
	for _, e := range upserts {
		size += len(e.Name) + 32
	}
	if size > o.g.room() {
		return false
	}
	m := o.rest[len(o.rest)-1]
	switch {
	case m.Change != nil && !p.part && m.Change.View == p.number && m.Change.Type == typeURL && len(m.Change.Removes) == 0:
		m.Change.Upserts = append(m.Change.Upserts, upserts...)
	case m.Part != nil && p.part && m.Part.Part == p.number && m.Part.Type == typeURL && len(m.Part.Removes) == 0:
		m.Part.Upserts = append(m.Part.Upserts, upserts...)
	default:
		return false
	}
	o.size += size - o.lastSize
	o.lastSize = size
	return true
}

// book numbers bodies and notes who names them.
func (o *output) book(p place, typeURL string, resources []Resource) []*pb.Entry {
	found := make([]*pb.Entry, 0, len(resources))
	for i := range resources {
		r := &resources[i]
		b := bodyOf(r)
		id, fresh := o.g.ledger.number(b)
		if fresh {
			o.body(o.g.edit(id, b, o.g.ledger.named(p, r.Name)))
		}
		o.g.ledger.set(p, typeURL, r.Name, id)
		found = append(found, &pb.Entry{Name: r.Name, Body: id})
	}
	return found
}

// body queues a body, in pieces if it is large. The queue is the session's, since another output may name the body at once.
func (o *output) body(b *pb.Body) {
	o.size += len(b.Bytes)
	o.g.bodies = append(o.g.bodies, pieces(b, o.g.room())...)
}

func (o *output) Progress() {
	_ = o.g.link.Send(o.ctx, &pb.FromPlugin{Progress: &pb.Progress{}})
}

func (o *output) Fault(what string, err error, read ...state.Name) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults = append(o.faults, &pb.Fault{What: what, Reason: err.Error(), Rows: rowNames(read)})
}

func (o *output) Log(level Level, text string, args ...any) { o.g.log(o.ctx, level, text, args...) }

func (o *output) push(m *pb.FromPlugin, size int) {
	o.rest = append(o.rest, m)
	o.size += size
}

// flush sends what was gathered.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.g.mu.Lock()
	defer o.g.mu.Unlock()
	o.send()
}

// send sends bodies, then the rest; both locks are held, so that what two outputs say of one place goes in the ledger's order.
// An error of Send is the end of the session, which the reader sees.
func (o *output) send() {
	for _, m := range slices.Concat(bodyMessages(o.g.bodies, o.g.room()), o.views, o.rest) {
		o.g.say(o.ctx, m)
	}
	o.g.bodies, o.views, o.rest, o.places, o.size = nil, nil, nil, nil, 0
}
