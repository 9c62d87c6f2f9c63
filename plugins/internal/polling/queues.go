package polling

import (
	"maps"
	"slices"
)

// queues are what is due at a time, by owners, and who may have the places that are free.
type queues struct {
	pace Pace
	// free is how many places are, held how many an owner has.
	free int
	held map[string]int
	// waiting are keys by who wants them.
	waiting map[string][]string
}

// admits reports whether an owner may have a place: the first one while there is any, others up to
// its share while more than half of all are free. So an owner whose fetches all hang holds its
// share, and places are left for those who have none.
func (q *queues) admits(owner string) bool {
	held := q.held[owner]
	switch {
	case q.free <= 0:
		return false
	case held == 0 || q.pace.PerOwner <= 0:
		return true
	}
	return held < q.pace.PerOwner && q.free > q.pace.Concurrent/2
}

// turn is whose turn it is: those who have no place go first, and after last by name, round and
// round. ok: somebody waits who may have a place.
func (q *queues) turn(last string) (owner string, ok bool) {
	best := [2]int{}
	for _, name := range slices.Sorted(maps.Keys(q.waiting)) {
		if len(q.waiting[name]) == 0 || !q.admits(name) {
			continue
		}
		rank := [2]int{q.held[name], 0}
		if name <= last {
			rank[1] = 1
		}
		if !ok || rank[0] < best[0] || rank[0] == best[0] && rank[1] < best[1] {
			owner, ok, best = name, true, rank
		}
	}
	return owner, ok
}

// give gives a place to an owner for a key: nobody waits for it any more.
func (q *queues) give(owner, key string) {
	q.free--
	q.held[owner]++
	for name, keys := range q.waiting {
		q.waiting[name] = slices.DeleteFunc(keys, func(k string) bool { return k == key })
	}
}
