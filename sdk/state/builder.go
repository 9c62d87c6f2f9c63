package state

import (
	"errors"
	"maps"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Builder makes States of the core's State messages. It is used by one goroutine at a time; the
// States that it returns may be read by any number of them.
type Builder struct {
	current *State
	draft   *draft
}

// ErrOrder is returned for a State message that can't come where it came.
var ErrOrder = errors.New("the core began with a difference; the first state must be whole")

// draft is a state in the making.
type draft struct {
	before *State
	whole  bool
	edits  map[string]*edit
	// keys that were named, by table.
	keys map[string]map[string]bool
}

// State returns the newest complete state, nil before the first.
func (b *Builder) State() *State { return b.current }

// Apply applies a message. It returns the change when the message completes a revision, and nil
// while more follows. The rows of the message belong to the builder afterwards.
func (b *Builder) Apply(m *pb.State) (*Change, error) {
	switch {
	case m.Whole:
		b.draft = newDraft(b.current, true)
	case b.draft == nil && b.current == nil:
		return nil, ErrOrder
	case b.draft == nil:
		b.draft = newDraft(b.current, false)
	}
	b.draft.apply(m.Tables)
	if m.More {
		return nil, nil
	}
	change := b.draft.finish(RevisionOf(m.Revision))
	b.draft, b.current = nil, change.State
	return change, nil
}

// With returns what rows on top of a state make, without changing the builder: for endpoints that
// overtake.
func With(base *State, revision Revision, tables []*pb.TableRows) *Change {
	d := newDraft(base, false)
	d.apply(tables)
	return d.finish(revision)
}

// RevisionOf converts the contract's revision; nil is the zero revision.
func RevisionOf(r *pb.Revision) Revision {
	if r == nil {
		return Revision{}
	}
	return Revision{Epoch: r.Epoch, Number: r.Number}
}

// Proto converts to the contract's revision.
func (r Revision) Proto() *pb.Revision { return &pb.Revision{Epoch: r.Epoch, Number: r.Number} }

func newDraft(before *State, whole bool) *draft {
	return &draft{before: before, whole: whole, edits: map[string]*edit{}, keys: map[string]map[string]bool{}}
}

func (d *draft) apply(tables []*pb.TableRows) {
	for _, t := range tables {
		e, keys := d.edit(t.Table)
		for _, r := range t.Upserts {
			e.put(r.Key, r)
			keys[r.Key] = true
		}
		for _, k := range t.Deletes {
			e.remove(k)
			keys[k] = true
		}
	}
}

func (d *draft) edit(name string) (*edit, map[string]bool) {
	e := d.edits[name]
	if e == nil {
		base := &Table{}
		if d.before != nil && !d.whole {
			base = d.before.Table(name)
		}
		e = newEdit(base)
		d.edits[name], d.keys[name] = e, map[string]bool{}
	}
	return e, d.keys[name]
}

func (d *draft) finish(revision Revision) *Change {
	s := &State{revision: revision, tables: map[string]*Table{}}
	change := &Change{State: s, Keys: map[string][]string{}}
	if d.before != nil && !d.whole {
		change.Before = d.before
		maps.Copy(s.tables, d.before.tables)
	}
	for name, e := range d.edits {
		s.tables[name] = e.table
		if len(d.keys[name]) > 0 {
			change.Keys[name] = slices.Sorted(maps.Keys(d.keys[name]))
		}
	}
	return change
}
