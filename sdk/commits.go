package sdk

import (
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// commits keeps the order of states that an engine is taken to, and of endpoints that overtake
// them.
//
// Rows that overtake are told to the engine twice: by Overtake, at once, on top of the last
// finished Commit; and as part of a Commit, so that its later results include them. They are above
// every state that was received before them and below every one that was received after them.
type commits struct {
	builder state.Builder // of the serial queue alone
	missed  *state.Change // likewise: a Commit that failed

	mu sync.Mutex
	// received counts states that came in, finished those that are done.
	received, finished uint64
	// committed is what the last finished Commit had, over is it and all that overtook since.
	committed, over *state.State
	overlay         []overlay
}

// overlay is rows that overtook and are not part of a finished Commit.
type overlay struct {
	after  uint64
	tables []*pb.TableRows
}

// receive counts a state.
func (c *commits) receive() {
	c.mu.Lock()
	c.received++
	c.mu.Unlock()
}

// overtake notes rows that overtake. It returns what they change for Overtake, nil if there is
// nothing to overtake yet; busy says that a Commit runs or waits.
func (c *commits) overtake(m *pb.State) (change *state.Change, busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.committed == nil {
		return nil, false
	}
	base := c.committed
	if c.over != nil {
		base = c.over
	}
	change = state.With(base, state.RevisionOf(m.Revision), m.Tables)
	c.over = change.State
	c.overlay = append(c.overlay, overlay{after: c.received, tables: m.Tables})
	return change, c.received > c.finished
}

// next applies a state's messages between what overtook before and after it. It returns the change
// and how many overlays it has.
func (c *commits) next(messages []*pb.State) (*state.Change, int, error) {
	c.mu.Lock()
	current := c.finished + 1
	below := c.rows(0, func(o overlay) bool { return o.after < current })
	above := c.rows(0, func(o overlay) bool { return o.after >= current })
	n := len(c.overlay)
	c.mu.Unlock()
	change, err := c.apply(nil, below)
	for _, m := range messages {
		if err != nil {
			return nil, 0, err
		}
		var made *state.Change
		if made, err = c.builder.Apply(m); made != nil {
			change = merge(change, made)
		}
	}
	if err == nil {
		change, err = c.apply(change, above)
	}
	return change, n, err
}

// more applies the overlays that came after the first n; nil if there are none.
func (c *commits) more(n int) (*state.Change, int, error) {
	c.mu.Lock()
	rows := c.rows(n, func(overlay) bool { return true })
	n = len(c.overlay)
	c.mu.Unlock()
	change, err := c.apply(nil, rows)
	return change, n, err
}

// fold applies what overtook after the last state was finished; nil if that is done. It returns how
// many overlays it saw.
func (c *commits) fold() (*state.Change, int, error) {
	c.mu.Lock()
	rows := c.rows(0, func(o overlay) bool { return o.after <= c.finished })
	n := len(c.overlay)
	c.mu.Unlock()
	change, err := c.apply(nil, rows)
	return change, n, err
}

// rows returns the rows of overlays from the nth on; c.mu is held.
func (c *commits) rows(n int, which func(overlay) bool) []*pb.TableRows {
	var tables []*pb.TableRows
	for _, o := range c.overlay[n:] {
		if which(o) {
			tables = append(tables, o.tables...)
		}
	}
	return tables
}

// apply applies rows on top of the newest state, as part of a change.
func (c *commits) apply(change *state.Change, rows []*pb.TableRows) (*state.Change, error) {
	if rows == nil {
		return change, nil
	}
	made, err := c.builder.Apply(&pb.State{Revision: c.builder.State().Revision().Proto(), Tables: rows})
	if err != nil {
		return nil, err
	}
	return merge(change, made), nil
}

// finish notes that a state is done with the first n overlays. It is false if there are more by
// now.
func (c *commits) finish(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.overlay) > n {
		return false
	}
	c.finished++
	c.absorb(n)
	return true
}

// folded notes that what fold returned is committed.
func (c *commits) folded(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.absorb(n)
}

// absorb takes the builder's state as committed and drops those of the first n overlays that no
// state that waits could hide.
func (c *commits) absorb(n int) {
	c.committed, c.over = c.builder.State(), nil
	later := c.rows(n, func(overlay) bool { return true })
	var kept []overlay
	for i, o := range c.overlay {
		if i >= n || o.after > c.finished {
			kept = append(kept, o)
		}
	}
	c.overlay = kept
	if later != nil {
		c.over = state.With(c.committed, c.committed.Revision(), later).State
	}
}
