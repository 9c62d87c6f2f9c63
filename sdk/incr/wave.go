package incr

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Wave is what a wave did.
type Wave struct {
	// Number grows by one with each wave.
	Number uint32
	// Changed are the roots whose results differ from those before the wave, in no order.
	Changed []Observed
	// Runs is the number of authors' functions that ran.
	Runs int
}

// Wave applies the rows set and deleted since the last one, brings everything that roots need up to
// date, lets go what none has needed for two waves, and returns which roots changed.
func (g *Graph) Wave() Wave {
	g.turn.Lock()
	defer g.turn.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.runs
	g.wave++
	g.forget()
	g.retryCycles()
	g.apply()
	g.climb()
	g.updateRoots()
	g.release()
	return Wave{Number: g.wave, Changed: g.observed(), Runs: g.runs - before}
}

func (g *Graph) apply() {
	staged := g.staged
	g.staged = nil
	for _, edit := range staged {
		edit()
	}
}

// climb runs what is in the queue, lowest first, each height in parallel.
func (g *Graph) climb() {
	for {
		batch, height := g.queue.pop()
		if len(batch) == 0 {
			break
		}
		g.front = height
		g.inParallel(g.atHeight(batch, height))
	}
	g.front = doneFront
}

// atHeight returns those nodes of a batch that are still to run at this height, and puts back those
// that were lifted.
func (g *Graph) atHeight(batch []id, height int32) []id {
	due := batch[:0]
	for _, n := range batch {
		nd := g.nodes.at(n)
		switch {
		case !nd.is(dirty) && nd.is(computed):
			nd.flags &^= queued
		case nd.height > height:
			g.queue.add(n, nd.height)
		default:
			nd.flags &^= queued
			due = append(due, n)
		}
	}
	return due
}

func (g *Graph) updateRoots() {
	due := slices.DeleteFunc(g.fresh, func(n id) bool { return g.roots[n] == nil })
	g.fresh = nil
	g.inParallel(due)
}

// inParallel updates nodes with as many tasks as there are workers. The lock is held before and
// after, not meanwhile.
func (g *Graph) inParallel(due []id) {
	if workers := min(g.workers, len(due)); workers > 1 {
		g.mu.Unlock()
		g.share(due, workers)
		g.mu.Lock()
		return
	}
	t := &task{}
	for _, n := range due {
		g.update(t, n)
	}
}

func (g *Graph) share(due []id, workers int) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			t := &task{}
			for i := next.Add(1); int(i) <= len(due); i = next.Add(1) {
				g.mu.Lock()
				g.update(t, due[i-1])
				g.mu.Unlock()
			}
		})
	}
	all.Wait()
}

// forget drops what the wave before had changed.
func (g *Graph) forget() {
	for _, r := range g.touched {
		r.forget()
	}
	g.touched = nil
}

// observed returns the roots that changed and are still wanted.
func (g *Graph) observed() []Observed {
	var out []Observed
	for _, r := range g.touched {
		if r.wanted() {
			out = append(out, r.observed())
		}
	}
	return out
}
