package incr

import (
	"runtime/debug"
	"unsafe"
)

// fn is a Func whatever its types: the family of its nodes.
type fn struct {
	store
	// call runs the author's function and writes its result to the node's value, unless it is the
	// same or the node is poisoned. The lock is not held when it is called, and held when it
	// returns.
	call func(c *Ctx, key, value unsafe.Pointer, had bool) (same bool, err error)
	// each are the collections made from this function.
	each []*members
	// top is the greatest height that a node of it ever had.
	top int32
}

func (f *fn) compute(c *Ctx, n id) (bool, error) {
	f.g.runs++
	same, err := f.try(c, f.at(n), f.valueOf(n), f.has(n))
	switch {
	case c.task.poison() != nil:
		return false, c.task.poison()
	case err == Absent:
		return f.clear(n), nil
	case err != nil || same:
		return false, err
	}
	f.g.nodes.at(n).flags |= present
	return true, nil
}

// try lets go of the lock and takes it again.
func (f *fn) try(c *Ctx, key, value unsafe.Pointer, had bool) (same bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = asError(p)
			f.g.mu.Lock()
		}
	}()
	f.g.mu.Unlock()
	return f.call(c, key, value, had)
}

func asError(p any) error {
	if cycle, ok := p.(*CycleError); ok {
		return cycle
	}
	return &PanicError{Value: p, Stack: debug.Stack()}
}

func (f *fn) changed(n id) {
	for _, m := range f.each {
		m.changed(n)
	}
}

func (f *fn) lifted(n id, from, to int32) {
	f.top = max(f.top, to)
	for _, m := range f.each {
		m.lifted(n, from, to)
	}
}
