package sdk

import (
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// commits keeps the order of states that an engine is taken to, and of endpoints that overtake them.
//
// Rows that overtake are told to the engine twice: by Overtake, at once, on top of the last finished Commit, and as part of a
// Commit, so that its later results include them. What was received before them never hides them.
type commits struct {
	builder state.Builder // of the serial lane alone
	missed  *state.Change // likewise: a Commit that failed

	mu sync.Mutex
	// received counts revisions that came in, finished those that are done.
	received, finished uint64
	committed, over    *state.State
	overlay            []overlay
}

// overlay is rows that overtook, while revisions received before them are not finished.
type overlay struct {
	after  uint64
	tables []*pb.TableRows
}

// receive counts a revision; true if it overtakes, which makes its rows an overlay.
func (c *commits) receive(m *pb.State) (overtakes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Overtakes && c.received > c.finished && c.committed != nil {
		c.overlay = append(c.overlay, overlay{after: c.received, tables: m.Tables})
		return true
	}
	c.received++
	return false
}

// next applies a revision's messages, and what overtook it already.
func (c *commits) next(messages []*pb.State) (*state.Change, int, error) {
	var change *state.Change
	var err error
	for _, m := range messages {
		if change, err = c.builder.Apply(m); err != nil {
			return nil, 0, err
		}
	}
	onTop, n, err := c.onTop(0, change.State.Revision())
	if err != nil {
		return nil, 0, err
	}
	if onTop != nil {
		change = merge(change, onTop)
	}
	return change, n, nil
}

// onTop applies the overlays after the first n; nil if there are none. It returns how many there are.
func (c *commits) onTop(n int, revision state.Revision) (*state.Change, int, error) {
	c.mu.Lock()
	var tables []*pb.TableRows
	for _, o := range c.overlay[n:] {
		tables = append(tables, o.tables...)
	}
	all := len(c.overlay)
	c.mu.Unlock()
	if all == n {
		return nil, n, nil
	}
	change, err := c.builder.Apply(&pb.State{Revision: revision.Proto(), Tables: tables})
	return change, all, err
}

// finish notes that a revision is done with the first n overlays. It is false if there are more by now.
func (c *commits) finish(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.overlay) > n {
		return false
	}
	c.finished++
	c.committed, c.over = c.builder.State(), nil
	kept := c.overlay[:0]
	for _, o := range c.overlay {
		if o.after > c.finished {
			kept = append(kept, o)
		}
	}
	c.overlay = kept
	return true
}

// overtake returns the change that rows make on top of the last finished Commit and what overtook it before.
func (c *commits) overtake(m *pb.State) *state.Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	base := c.committed
	if c.over != nil {
		base = c.over
	}
	change := state.With(base, state.RevisionOf(m.Revision), m.Tables)
	c.over = change.State
	return change
}
