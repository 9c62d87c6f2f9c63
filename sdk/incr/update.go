package incr

import "slices"

// upToDate reports whether n is up to date and stays so for the rest of the wave: it has nothing to
// do, and neither has anything below it, because the wave has passed its height or because that was
// looked into already.
func (g *Graph) upToDate(n id) bool {
	nd := g.nodes.at(n)
	if nd.is(dirty|flying) || !nd.is(computed) {
		return false
	}
	return g.front == doneFront || nd.checked == g.wave || nd.height < g.front && !nd.is(inCycle)
}

// update brings n up to date, or waits for the task that is doing so. If that task waits for this
// one, all nodes of the cycle are poisoned, the top of t's stack among them.
func (g *Graph) update(t *task, n id) {
	for !g.upToDate(n) {
		owner := g.flights[n]
		if owner == nil {
			g.fly(t, n)
			return
		}
		if g.poisonCycle(t, n) {
			return
		}
		g.await(t, n)
		if t.poison() != nil {
			return
		}
	}
	if g.nodes.at(n).is(inCycle) {
		g.poisonKnownCycle(t, n)
	}
}

func (g *Graph) await(t *task, n id) {
	t.waiting = n
	g.waiters++
	g.done.Wait()
	g.waiters--
	t.waiting = 0
}

// fly brings n up to date in this task.
func (g *Graph) fly(t *task, n id) {
	nd := g.nodes.at(n)
	nd.flags |= flying
	g.flights[n] = t
	t.stack = append(t.stack, frame{node: n})
	g.refresh(t, n)
	t.stack = t.stack[:len(t.stack)-1]
	delete(g.flights, n)
	nd.flags &^= flying
	nd.checked = g.wave
	if g.waiters > 0 {
		g.done.Broadcast()
	}
}

// refresh runs n if it has to, which shows when what it read before is up to date, in the order in
// which it was read: what follows a changed read may not be wanted any more.
func (g *Graph) refresh(t *task, n id) {
	nd := g.nodes.at(n)
	for i := 0; nd.is(computed) && !nd.is(dirty) && i < len(nd.reads); i++ {
		g.update(t, nd.reads[i])
		if err := t.poison(); err != nil {
			g.link(n, slices.Clone(nd.reads[:i+1])) // it would get no further if it ran
			g.fail(n, err)
			return
		}
	}
	if nd.is(computed) && !nd.is(dirty) {
		g.families[nd.family].verify(t, n)
		if err := t.poison(); err != nil {
			g.fail(n, err)
			return
		}
	}
	if !nd.is(computed) || nd.is(dirty) {
		g.run(t, n)
	}
}

// run computes n, replaces its reads and passes on what changed.
func (g *Graph) run(t *task, n id) {
	nd := g.nodes.at(n)
	nd.flags = nd.flags&^dirty | executing
	c := &Ctx{g: g, task: t}
	changed, err := g.families[nd.family].compute(c, n)
	if poison := t.poison(); poison != nil {
		err = poison
	}
	nd.flags = nd.flags&^executing | computed
	g.link(n, c.reads)
	if err != nil {
		g.fail(n, err)
	} else {
		g.recover(n)
	}
	g.raise(n)
	if changed {
		g.changed(n)
	}
}

// changed tells all who depend on n.
func (g *Graph) changed(n id) {
	for _, r := range g.nodes.at(n).readers {
		if g.reads(r, n) {
			g.mark(r)
		}
	}
	g.familyOf(n).changed(n)
}

// reads reports whether r still reads n: one that was checked in this wave may have run, and left n
// alone.
func (g *Graph) reads(r, n id) bool {
	nd := g.nodes.at(r)
	return nd.checked != g.wave || slices.Contains(nd.reads, n)
}

// mark says that n must run again. A node that is running reads nodes that are up to date only, so
// that it has seen, or will see, the change.
func (g *Graph) mark(n id) {
	nd := g.nodes.at(n)
	if nd.is(executing) || nd.is(inCycle) {
		return // a node in a cycle is tried again in the next wave
	}
	nd.flags |= dirty
	if !nd.is(queued) {
		nd.flags |= queued
		g.queue.add(n, nd.height)
	}
}
