package plugintest

import (
	"maps"
	"slices"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// moves is how long a connection that moved to another view then may take to move now. One that
// does not is compared as it is.
const moves = 2 * time.Second

// view is what a recorded view is called now: where a connection that was in it is, or was.
func (r *replay) view(typeURL string, number uint64) uint64 {
	for _, connection := range slices.Sorted(maps.Keys(r.then.placed)) {
		if r.then.placed[connection][typeURL] == number {
			if now := r.now.Placement(connection)[typeURL]; now != 0 {
				return now
			}
		}
	}
	if now := r.views[number]; now != 0 {
		return now
	}
	return number
}

// placed waits until a connection that changed its view then has done so now, and notes which is
// which.
func (r *replay) placed(p *pb.Place) {
	at := func(typeURL string) uint64 { return r.now.placed[p.Connection][typeURL] }
	r.now.waitSoftly(moves, func() bool {
		for _, to := range p.Placements {
			if r.views[to.View] == 0 && to.View != 0 && r.taken(at(to.Type)) {
				return false
			}
		}
		return true
	})
	now := r.now.Placement(p.Connection)
	for _, to := range p.Placements {
		if to.View != 0 && r.views[to.View] == 0 {
			r.views[to.View] = now[to.Type]
		}
	}
}

// taken reports whether a view of now stands for one of then already.
func (r *replay) taken(now uint64) bool {
	return slices.Contains(slices.Collect(maps.Values(r.views)), now)
}

// waitSoftly is wait that fails nothing; it reports whether it holds.
func (h *Harness) waitSoftly(patience time.Duration, holds func() bool) bool {
	deadline := time.After(patience)
	for {
		h.mu.Lock()
		ok, err, change := holds(), h.err, h.change
		h.mu.Unlock()
		if ok || err != nil {
			return ok
		}
		select {
		case <-change:
		case <-deadline:
			return false
		}
	}
}
