package environment

import (
	"cmp"
	"container/heap"
	"strings"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// age orders the rows of a namespace: the oldest are kept.
type age struct {
	// created is the row's or, where that is unknown, that of the newest row that was known when it
	// came; 0: it was there at the start.
	created int64
	// came counts rows of unknown age that came later.
	came uint64
	Name
	order int
}

func (a age) compare(b age) int {
	return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.came, b.came), strings.Compare(a.Table, b.Table),
		strings.Compare(a.Key, b.Key), cmp.Compare(a.order, b.order))
}

// member is a row of a namespace that is full.
type member struct {
	shard *Shard
	age
	// cost is that of what is let in; 0: nothing is.
	cost int64
	// waits is what is refused: the row, or a later version of what is let in; nil: nothing is.
	waits *pb.Row
	// at are its places in the queues of its pool; -1: it is in none.
	at [queues]int
}

// The queues of a pool: the youngest of what is let in, and the oldest and the youngest of what
// waits.
const (
	youngestIn = iota
	oldestWaits
	youngestWaits
	queues
)

// queue has the oldest or the youngest of members first.
type queue struct {
	members []*member
	which   int
}

var _ heap.Interface = (*queue)(nil)

// Len implements heap.Interface.
func (q *queue) Len() int { return len(q.members) }

// Less implements heap.Interface.
func (q *queue) Less(i, j int) bool {
	order := q.members[i].compare(q.members[j].age)
	if q.which == oldestWaits {
		return order < 0
	}
	return order > 0
}

// Swap implements heap.Interface.
func (q *queue) Swap(i, j int) {
	q.members[i], q.members[j] = q.members[j], q.members[i]
	q.members[i].at[q.which], q.members[j].at[q.which] = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	m := x.(*member)
	m.at[q.which] = len(q.members)
	q.members = append(q.members, m)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(q.members) - 1
	m := q.members[last]
	q.members[last], q.members = nil, q.members[:last]
	m.at[q.which] = -1
	return m
}

func (q *queue) first() *member {
	if len(q.members) == 0 {
		return nil
	}
	return q.members[0]
}

// add puts a member in, if it is not.
func (q *queue) add(m *member) {
	if m.at[q.which] < 0 {
		heap.Push(q, m)
	}
}

// remove takes a member out, if it is in.
func (q *queue) remove(m *member) {
	if i := m.at[q.which]; i >= 0 {
		heap.Remove(q, i)
	}
}
