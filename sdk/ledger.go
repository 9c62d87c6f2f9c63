package sdk

import (
	"hash/maphash"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// ledger is what a generator's session has told the core: bodies by number, and which entries name them. It is what lets equal
// bodies be sent once, and bodies that the core let go too early be sent again.
type ledger struct {
	digest digest
	next   uint64
	byHash map[hash]uint64
	seed   maphash.Seed
	// byFields are bodies by the places of their fields in memory.
	byFields map[uint64]uint64
	bodies   map[uint64]*body
	places   map[place]*entries
}

type hash [16]byte

// body is one that the core has, or should have: bytes, or fields which are that together.
type body struct {
	hash   hash
	bytes  []byte
	fields [][]byte
	places uint64
	// named counts the entries that name it.
	named int
	// freed: the core let it go, so that nothing new may name it.
	freed bool
}

// place is a view or a part of a type.
type place struct {
	part   bool
	number uint64
}

// entries are what a place holds.
type entries struct {
	typeURL string
	bodies  map[string]uint64
	// parts of a view, and how many views list a part.
	parts  []uint64
	listed int
}

func newLedger() *ledger {
	return &ledger{
		byHash: map[hash]uint64{}, bodies: map[uint64]*body{}, places: map[place]*entries{},
		seed: maphash.MakeSeed(), byFields: map[uint64]uint64{},
	}
}

// number returns the number of a body, and whether it is new to the core. That of an absent resource is 0.
func (l *ledger) number(b body) (id uint64, fresh bool) {
	if b.bytes == nil && b.fields == nil {
		return 0, false
	}
	if b.fields != nil {
		b.places = placesOf(l.seed, b.fields)
		id = l.byFields[b.places]
		if have := l.bodies[id]; have != nil && sameFields(have.fields, b.fields) {
			return id, false
		}
		l.byFields[b.places] = l.next + 1
	} else {
		b.hash = l.digest.of(b.bytes)
		if id, ok := l.byHash[b.hash]; ok {
			return id, false
		}
		l.byHash[b.hash] = l.next + 1
	}
	l.next++
	kept := b
	l.bodies[l.next] = &kept
	return l.next, true
}

// named returns the number of the body that an entry names; 0 where it names none that the core still has.
func (l *ledger) named(p place, name string) uint64 {
	if e := l.places[p]; e != nil {
		if b := l.bodies[e.bodies[name]]; b != nil && !b.freed {
			return e.bodies[name]
		}
	}
	return 0
}

// set notes that an entry names a body; remove takes the entry away.
func (l *ledger) set(p place, typeURL, name string, id uint64) {
	e := l.at(p, typeURL)
	old, had := e.bodies[name]
	l.count(id, 1)
	if had {
		l.count(old, -1)
	}
	e.bodies[name] = id
}

func (l *ledger) remove(p place, typeURL, name string) {
	e := l.at(p, typeURL)
	if old, had := e.bodies[name]; had {
		l.count(old, -1)
		delete(e.bodies, name)
	}
}

func (l *ledger) at(p place, typeURL string) *entries {
	e := l.places[p]
	if e == nil {
		e = &entries{typeURL: typeURL, bodies: map[string]uint64{}}
		l.places[p] = e
	}
	return e
}

func (l *ledger) count(id uint64, by int) {
	b := l.bodies[id]
	if b == nil {
		return
	}
	if b.named += by; b.freed && b.named <= 0 {
		delete(l.bodies, id)
	}
}

// list sets the parts of a view; parts that no view lists any more are forgotten.
func (l *ledger) list(view uint64, typeURL string, parts []uint64) {
	e := l.at(place{number: view}, typeURL)
	old := e.parts
	e.parts = append([]uint64(nil), parts...)
	for _, p := range parts {
		l.at(place{part: true, number: p}, typeURL).listed++
	}
	for _, p := range old {
		l.unlist(place{part: true, number: p})
	}
}

func (l *ledger) unlist(p place) {
	if e := l.places[p]; e != nil {
		if e.listed--; e.listed <= 0 {
			l.forget(p)
		}
	}
}

// forget lets go of a place and, for a view, of the parts that only it listed.
func (l *ledger) forget(p place) {
	e := l.places[p]
	if e == nil {
		return
	}
	delete(l.places, p)
	for _, id := range e.bodies {
		l.count(id, -1)
	}
	for _, part := range e.parts {
		l.unlist(place{part: true, number: part})
	}
}

// freed lets go of bodies that the core let go. Those that entries name are kept for the core to ask for, if it takes these entries still; those
// of names that it dropped are asked for by nobody.
func (l *ledger) freed(ids []uint64) {
	for _, id := range ids {
		b := l.bodies[id]
		if b == nil {
			continue
		}
		if b.fields == nil && l.byHash[b.hash] == id {
			delete(l.byHash, b.hash)
		}
		if b.fields != nil && l.byFields[b.places] == id {
			delete(l.byFields, b.places)
		}
		if b.freed = true; b.named <= 0 {
			delete(l.bodies, id)
		}
	}
}

// naming returns the messages that name any of the bodies, as they are now.
func (l *ledger) naming(ids map[uint64]bool, revision *pb.Revision, room int) []*pb.FromPlugin {
	var messages []*pb.FromPlugin
	for p, e := range l.places {
		var found []*pb.Entry
		for name, id := range e.bodies {
			if ids[id] {
				found = append(found, &pb.Entry{Name: name, Body: id})
			}
		}
		if found != nil {
			messages = append(messages, entryMessages(p, e.typeURL, revision, found, nil, room)...)
		}
	}
	return messages
}
