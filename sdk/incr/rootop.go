package incr

// root is the operator's side of an Observed.
type root interface {
	op
	Observed
	// observed returns the Observed itself.
	observed() Observed
	wanted() bool
	// forget drops what changed in the wave before.
	forget()
}

// rooted is what the operators of roots have in common.
type rooted struct {
	Observed
	g    *Graph
	node id
}

func (r *rooted) name() string       { return r.Name() }
func (r *rooted) observed() Observed { return r.Observed }
func (r *rooted) wanted() bool       { return r.node != 0 }

// rootOp is the operator of a Root.
type rootOp struct {
	rooted
	// look reports whether what is wanted changed.
	look func(c *Ctx) bool
}

func (r *rootOp) run(c *Ctx, self id) (bool, error) {
	changed := r.look(c)
	if changed {
		r.g.touch(r)
	}
	return changed, nil
}

func (r *rootOp) update(*task)     {}
func (r *rootOp) floor() int32     { return 0 }
func (r *rootOp) sources(func(id)) {}
func (r *rootOp) holds(func(id))   {}
func (r *rootOp) stop()            {}
func (r *rootOp) forget()          {}

func (g *Graph) plant(r root) id {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.ops.add(r)
	g.pin(n)
	g.roots[n] = r
	g.fresh = append(g.fresh, n)
	return n
}

func (g *Graph) uproot(n *id) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if *n != 0 {
		delete(g.roots, *n)
		g.unpin(*n)
		*n = 0
	}
}

// inspect brings a root up to date between waves.
func (g *Graph) inspect(n id) {
	g.turn.RLock()
	defer g.turn.RUnlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if n != 0 {
		g.update(&task{}, n)
	}
}

// touch notes that a root's result changed.
func (g *Graph) touch(r root) { g.touched = append(g.touched, r) }
