// Package incr computes results from rows, and when rows change computes again what depends on them
// and nothing else.
//
// A Graph has Inputs, which are tables of rows. Functions (NewFunc) compute a value for a key from
// what they read: rows, other functions, collections. They are written as if they ran once:
//
//	ports := incr.NewFunc(g, "ports", slices.Equal, func(c *incr.Ctx, service string) ([]int, error) {
//		s, ok := services.Get(c, service)
//		if !ok {
//			return nil, incr.Absent
//		}
//		return s.Ports, nil
//	})
//
// What a function reads is recorded, what it looked for in vain too. It runs again when one of its
// reads changed; if its result is equal to the one before, that's the end of it. So a function
// should read little (a projection of a row, such as ports, not the row) and its key should be the
// least that it depends on.
//
// Collections are sets of elements by key: an Input is one, and Map, Filter, FlatMap, Each, Join,
// Group and NewIndex make more. They pass on what changed element by element, where a function that
// reads a whole range (All) runs whole again. To find elements by something else than their key,
// make an Index: a function that reads an index key runs again when the members of that key change,
// not when anything else in the table does.
//
// Roots (Observe, ObserveAll) say what is wanted. Wave applies the rows that were Set and Deleted
// since the last one, brings what roots need up to date and says which roots changed. What no root
// has needed for two waves is forgotten.
//
// A collection as a whole is one thing: an index, a join or a function that reads All stands on all
// elements of the collection below it. So an element must not need what stands on its own
// collection, even if it looks at other keys there: that is a cycle (see CycleError). Keys need an
// order, so that results don't depend on history: strings, numbers, structs of them, or types with
// a method Compare.
//
// Waves run functions in parallel. Functions need no locks: they must not change what they are
// given or have returned, and must depend on nothing but their key and what they read through their
// Ctx.
//
// A function that fails keeps its last good value; see Failures. What a result was made from is
// told by Explain.
package incr
