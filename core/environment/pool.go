package environment

import (
	"hash/maphash"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// pool is the room of a namespace's policies, or of its other rows, and who is in it.
type pool struct {
	namespace string
	policies  bool
	// used is what the rows cost that are let in, most what they may; waits is what those take that
	// are refused, room what they may.
	used, most, waits, room int64
	// members are all rows, once they have cost too much; nil: they cost less, and nobody waits.
	members map[seat]*member
	queues  [queues]queue
	// forgotten are, by shard, hashes of the names of rows that were refused and that there was no
	// room to remember. They come again when their shard says all it has.
	forgotten map[*Shard]map[uint64]struct{}
	// newest is the newest creation that was seen, came counts rows of unknown age.
	newest int64
	came   uint64
	// changes counts what was refused, let in and forgotten, told is how much of it was said.
	changes, told uint64
}

var names = maphash.MakeSeed()

// seat is where a row stands.
type seat struct {
	shard *Shard
	Name
}

// crowded reports whether anything is refused.
func (p *pool) crowded() bool { return p.queues[oldestWaits].Len() > 0 || len(p.forgotten) > 0 }

// enlist makes a member of a row; early: it was there at the start, or before the namespace was
// full.
func (p *pool) enlist(s *Shard, n Name, created int64, early bool) *member {
	m := &member{shard: s, age: age{created: created, Name: n, order: s.Order}}
	for i := range m.at {
		m.at[i] = -1
	}
	p.newest = max(p.newest, created)
	if created == 0 && !early {
		p.came++
		m.created, m.came = p.newest, p.came
	}
	p.members[seat{s, n}] = m
	return m
}

// begin begins to keep members.
func (p *pool) begin() {
	p.members, p.forgotten = map[seat]*member{}, map[*Shard]map[uint64]struct{}{}
	for i := range p.queues {
		p.queues[i] = queue{which: i}
	}
}

// rest lets go of what is only needed while the namespace is full.
func (p *pool) rest() {
	if p.members != nil && !p.crowded() && p.used < p.most/2 {
		p.members, p.forgotten, p.queues = nil, nil, [queues]queue{}
	}
}

// let notes that a row is let in.
func (p *pool) let(m *member, r *pb.Row) {
	cost := Cost(m.Table, r)
	p.used += cost - m.cost
	if m.cost = cost; cost > 0 {
		p.queues[youngestIn].add(m)
	} else {
		p.queues[youngestIn].remove(m)
	}
}

// refuse has a row wait.
func (p *pool) refuse(m *member, r *pb.Row) {
	p.serve(m)
	p.changes++
	m.waits = r
	p.waits += waiting(r)
	p.queues[oldestWaits].add(m)
	p.queues[youngestWaits].add(m)
}

// trim forgets the youngest rows that wait where all take too much.
func (p *pool) trim() {
	for p.waits > p.room {
		m := p.queues[youngestWaits].first()
		p.serve(m)
		if p.forgotten[m.shard] == nil {
			p.forgotten[m.shard] = map[uint64]struct{}{}
		}
		p.forgotten[m.shard][maphash.Comparable(names, m.Name)] = struct{}{}
		p.leave(m)
	}
}

// recall notes that a shard says something of a row again that was forgotten.
func (p *pool) recall(s *Shard, n Name) {
	rows, hash := p.forgotten[s], maphash.Comparable(names, n)
	if _, is := rows[hash]; !is {
		return
	}
	p.changes++
	if delete(rows, hash); len(rows) == 0 {
		delete(p.forgotten, s)
	}
}

// date gives a member the age of a row that takes the place of another one, if it was made anew.
func (p *pool) date(m *member, created int64) {
	if created == 0 || created == m.created {
		return
	}
	p.serve(m)
	p.queues[youngestIn].remove(m)
	m.created, m.came, p.newest = created, 0, max(p.newest, created)
	if m.cost > 0 {
		p.queues[youngestIn].add(m)
	}
}

// serve notes that nothing of a member waits any more, and returns what did.
func (p *pool) serve(m *member) *pb.Row {
	r := m.waits
	if r != nil {
		p.changes++
		p.waits -= waiting(r)
		m.waits = nil
		p.queues[oldestWaits].remove(m)
		p.queues[youngestWaits].remove(m)
	}
	return r
}

// leave forgets a member of which there is nothing.
func (p *pool) leave(m *member) {
	if m.cost == 0 && m.waits == nil {
		delete(p.members, seat{m.shard, m.Name})
	}
}

// next returns who is to be let in, or who has to make room for that; nil, nil: nobody is.
func (p *pool) next() (in, out *member) {
	m := p.queues[oldestWaits].first()
	if m == nil {
		return nil, nil
	}
	if p.used+Cost(m.Table, m.waits)-m.cost <= p.most {
		return m, nil
	}
	if y := p.queues[youngestIn].first(); m.cost == 0 && y != nil && m.compare(y.age) < 0 {
		return nil, y
	}
	return nil, nil
}
