package incr

import "slices"

// Ctx records what a function reads. It is valid while the function runs, and in its goroutine
// only.
type Ctx struct {
	g     *Graph
	task  *task
	reads []id
	// seen finds repeated reads where there are many.
	seen map[id]struct{}
}

const manyReads = 16

// read records a read of n and brings n up to date. The lock is held; it panics with a *CycleError
// if n needs who reads it.
func (c *Ctx) read(n id) {
	c.record(n)
	c.g.update(c.task, n)
	if err := c.task.poison(); err != nil {
		panic(err)
	}
}

func (c *Ctx) record(n id) {
	if len(c.reads) < manyReads {
		if !slices.Contains(c.reads, n) {
			c.reads = append(c.reads, n)
		}
		return
	}
	if c.seen == nil {
		c.seen = make(map[id]struct{}, 2*manyReads)
		for _, r := range c.reads {
			c.seen[r] = struct{}{}
		}
	}
	if _, ok := c.seen[n]; !ok {
		c.seen[n] = struct{}{}
		c.reads = append(c.reads, n)
	}
}
