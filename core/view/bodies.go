package view

import (
	"errors"
	"fmt"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Bodies are the bodies that one generator's session has sent: each is kept while it comes, checked
// when it is used first, and there until nobody uses it and the plugin knows. Not safe for
// concurrent use.
type Bodies struct {
	types Types
	sent  map[uint64]*stored
	refs  map[*Body]*stored
	freed []*stored
	held  int // bytes of bodies
	// adopted are bodies of another session that stand for some of this one, by version and name.
	adopted map[string]*Body
}

// Types says what is particular about bodies of types.
type Types struct {
	// Carried are the type URLs of bodies that differ from those of their types.
	Carried map[string]string
	// Trusted are the types whose resources need not be checked by the rules of Envoy's fields:
	// their plugin has done that.
	Trusted map[string]bool
}

// NewBodies returns the bodies of a new session: none.
func NewBodies(t Types) *Bodies {
	return &Bodies{types: t, sent: map[uint64]*stored{}, refs: map[*Body]*stored{}, adopted: map[string]*Body{}}
}

// MissingError names bodies that were used before they were sent.
type MissingError struct{ Bodies []uint64 }

// Error implements error.
func (e *MissingError) Error() string {
	return fmt.Sprintf("bodies %v were named but never sent", e.Bodies)
}

// Len returns how many bodies, and how many of their bytes, are kept.
func (bs *Bodies) Len() (bodies, bytes int) {
	for _, s := range bs.sent {
		bytes += s.value.size()
		if s.body != nil {
			bytes += s.body.Size(true)
		}
	}
	return len(bs.sent), bytes
}

// drop lets go of bodies that nothing will name: they came for a view that is gone.
func (bs *Bodies) drop(entries []*pb.Entry) {
	for _, e := range entries {
		if s := bs.sent[e.Body]; s != nil && s.refs == 0 {
			bs.freed = append(bs.freed, s)
		}
	}
}

var errMissing = errors.New("the body was never sent")

// use returns the body that an entry names, in the place of another one or of nil, and counts the
// use.
func (bs *Bodies) use(typeURL string, e *pb.Entry, before *Body) (*Body, error) {
	if e.Body == 0 {
		return Absent(e.Name), nil
	}
	trusted := bs.types.Trusted[typeURL]
	if other, ok := bs.types.Carried[typeURL]; ok {
		typeURL = other
	}
	s := bs.sent[e.Body]
	if s == nil || s.more {
		return nil, errMissing
	}
	if s.bad != nil {
		return nil, s.bad
	}
	if s.body == nil {
		if s.bad = bs.judge(s, typeURL, before, trusted); s.bad != nil {
			return nil, s.bad
		}
		if err := checkName(typeURL, e.Name, s.value); err != nil {
			return nil, err
		}
		made := newBody(typeURL, e.Name, s.value, e.Ttl)
		if s.body = bs.adoptedAs(made); s.body == made {
			s.value = nil
			if made.apart == nil {
				bs.holdCopy(s, len(made.fragment))
			}
		}
		bs.refs[s.body] = s
	}
	if s.body.name != e.Name {
		if err := checkName(typeURL, e.Name, s.bytes()); err != nil {
			return nil, err
		}
		// The same bytes under another name: rare enough to keep a copy.
		return bs.adoptedAs(newBody(typeURL, e.Name, s.body.value(), e.Ttl)), nil
	}
	s.refs++
	return s.body, nil
}

// release takes back a use.
func (bs *Bodies) release(b *Body) {
	if b == nil || !b.Exists() {
		return
	}
	if s := bs.refs[b]; s != nil {
		if s.refs--; s.refs == 0 {
			bs.freed = append(bs.freed, s)
		}
	}
}

// Freed returns bodies that no part and no view names, which the plugin is to be told of. They are
// kept until Collect, for the plugin may be naming them at this moment.
func (bs *Bodies) Freed() []uint64 {
	var ids []uint64
	for bs.untold() {
		s := bs.freed[0]
		s.told = true
		ids = append(ids, s.id)
	}
	bs.freed = nil
	return ids
}

// untold reports whether Freed has a body to return: the first of freed, then.
func (bs *Bodies) untold() bool {
	for len(bs.freed) > 0 && (bs.freed[0].refs > 0 || bs.freed[0].told) {
		bs.freed[0], bs.freed = nil, bs.freed[1:]
	}
	return len(bs.freed) > 0
}

// Collect lets go of the bodies in ids: the plugin has read that they are free, and what it named
// before has come.
func (bs *Bodies) Collect(ids []uint64) {
	for _, id := range ids {
		s := bs.sent[id]
		if s == nil {
			continue
		}
		if s.refs > 0 {
			s.told = false
			continue
		}
		bs.hold(s, nil)
		delete(bs.sent, id)
		delete(bs.refs, s.body)
	}
}
