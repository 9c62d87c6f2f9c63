// Package outputs has what a generator's session has told the core, and makes the messages that
// tell it: bodies by number, and which entries name them. It is what lets equal bodies be sent
// once, large ones as an edit, and those that the core let go too early again.
package outputs

import (
	"hash/maphash"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Store is that of one session. Its caller guards it.
type Store struct {
	digest Digest
	next   uint64
	byHash map[Hash]uint64
	seed   maphash.Seed
	// byFields are bodies by the places of their fields in memory.
	byFields map[uint64]uint64
	bodies   map[uint64]*Body
	places   map[Place]*entries
}

// Hash is that of a body.
type Hash [16]byte

// Body is one that the core has, or should have: bytes, or fields which are that together.
type Body struct {
	hash   Hash
	bytes  []byte
	fields [][]byte
	places uint64
	// Named counts the entries that name it.
	named int
	// freed: the core let it go, so that nothing new may name it.
	freed bool
}

// Place is a view or a part of a type.
type Place struct {
	Part   bool
	Number uint64
}

// entries are what a place holds.
type entries struct {
	typeURL string
	bodies  map[string]uint64
	// parts of a view, and how many views list a part.
	parts  []uint64
	listed int
}

// New returns one in which nothing was told.
func New() *Store {
	return &Store{
		byHash: map[Hash]uint64{}, bodies: map[uint64]*Body{}, places: map[Place]*entries{},
		seed: maphash.MakeSeed(), byFields: map[uint64]uint64{},
	}
}

// Number returns the number of a body, and whether it is new to the core. That of an absent
// resource is 0.
func (s *Store) Number(b Body) (id uint64, fresh bool) {
	if b.bytes == nil && b.fields == nil {
		return 0, false
	}
	if b.fields != nil {
		b.places = placesOf(s.seed, b.fields)
		id = s.byFields[b.places]
		if have := s.bodies[id]; have != nil && sameFields(have.fields, b.fields) {
			return id, false
		}
		s.byFields[b.places] = s.next + 1
	} else {
		b.hash = s.digest.Of(b.bytes)
		if id, ok := s.byHash[b.hash]; ok {
			return id, false
		}
		s.byHash[b.hash] = s.next + 1
	}
	s.next++
	kept := b
	s.bodies[s.next] = &kept
	return s.next, true
}

// Named returns the number of the body that an entry names; 0 where it names none that the core
// still has.
func (s *Store) Named(p Place, name string) uint64 {
	if e := s.places[p]; e != nil {
		if b := s.bodies[e.bodies[name]]; b != nil && !b.freed {
			return e.bodies[name]
		}
	}
	return 0
}

// Set notes that an entry names a body.
func (s *Store) Set(p Place, typeURL, name string, id uint64) {
	e := s.at(p, typeURL)
	old, had := e.bodies[name]
	s.count(id, 1)
	if had {
		s.count(old, -1)
	}
	e.bodies[name] = id
}

// Remove takes an entry away.
func (s *Store) Remove(p Place, typeURL, name string) {
	e := s.at(p, typeURL)
	if old, had := e.bodies[name]; had {
		s.count(old, -1)
		delete(e.bodies, name)
	}
}

// Body returns one by its number, nil where the core can't ask for it any more.
func (s *Store) Body(id uint64) *Body { return s.bodies[id] }

func (s *Store) at(p Place, typeURL string) *entries {
	e := s.places[p]
	if e == nil {
		e = &entries{typeURL: typeURL, bodies: map[string]uint64{}}
		s.places[p] = e
	}
	return e
}

func (s *Store) count(id uint64, by int) {
	b := s.bodies[id]
	if b == nil {
		return
	}
	if b.named += by; b.freed && b.named <= 0 {
		delete(s.bodies, id)
	}
}

// List sets the parts of a view; parts that no view lists any more are forgotten.
func (s *Store) List(view uint64, typeURL string, parts []uint64) {
	e := s.at(Place{Number: view}, typeURL)
	old := e.parts
	e.parts = append([]uint64(nil), parts...)
	for _, p := range parts {
		s.at(Place{Part: true, Number: p}, typeURL).listed++
	}
	for _, p := range old {
		s.unlist(Place{Part: true, Number: p})
	}
}

func (s *Store) unlist(p Place) {
	if e := s.places[p]; e != nil {
		if e.listed--; e.listed <= 0 {
			s.Forget(p)
		}
	}
}

// Forget lets go of a place and, for a view, of the parts that only it listed.
func (s *Store) Forget(p Place) {
	e := s.places[p]
	if e == nil {
		return
	}
	delete(s.places, p)
	for _, id := range e.bodies {
		s.count(id, -1)
	}
	for _, part := range e.parts {
		s.unlist(Place{Part: true, Number: part})
	}
}

// Freed lets go of bodies that the core let go. Those that entries name are kept for the core to
// ask for, if it takes these entries still; those of names that it dropped are asked for by nobody.
func (s *Store) Freed(ids []uint64) {
	for _, id := range ids {
		b := s.bodies[id]
		if b == nil {
			continue
		}
		if b.fields == nil && s.byHash[b.hash] == id {
			delete(s.byHash, b.hash)
		}
		if b.fields != nil && s.byFields[b.places] == id {
			delete(s.byFields, b.places)
		}
		if b.freed = true; b.named <= 0 {
			delete(s.bodies, id)
		}
	}
}

// Naming returns the messages that name any of the bodies, as they are now.
func (s *Store) Naming(ids map[uint64]bool, revision *pb.Revision, room int) []*pb.FromPlugin {
	var messages []*pb.FromPlugin
	for p, e := range s.places {
		var found []*pb.Entry
		for name, id := range e.bodies {
			if ids[id] {
				found = append(found, &pb.Entry{Name: name, Body: id})
			}
		}
		if found != nil {
			messages = append(messages, EntryMessages(p, e.typeURL, revision, found, nil, room)...)
		}
	}
	return messages
}
