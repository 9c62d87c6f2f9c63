package incr

// input is an Input whatever its types: the family of its nodes and a collection.
type input struct {
	store
	out outlet
}

func (in *input) input() bool  { return true }
func (in *input) values() bool { return true }

func (in *input) compute(*Ctx, id) (bool, error) { return false, nil }

func (in *input) changed(n id) { in.out.emit(in.g, n) }

func (in *input) outlet() *outlet     { return &in.out }
func (in *input) anchor() id          { return in.out.anchor(in.g, (*inputOp)(in)) }
func (in *input) updateMembers(*task) {}
func (in *input) membersFloor() int32 { return 0 }

func (in *input) len() int {
	in.g.mu.Lock()
	defer in.g.mu.Unlock()
	n := 0
	in.members(func(id) bool { n++; return true })
	return n
}

// inputOp is the operator of an input: it stands on nothing and is always up to date.
type inputOp input

func (o *inputOp) name() string               { return o.label }
func (o *inputOp) run(*Ctx, id) (bool, error) { return false, nil }
func (o *inputOp) holds(func(id))             {}
func (o *inputOp) update(*task)               {}
func (o *inputOp) floor() int32               { return 0 }
func (o *inputOp) stop()                      { o.out.node = 0 }
func (o *inputOp) sources(yield func(id)) {
	(*input)(o).members(func(n id) bool { yield(n); return true })
}
