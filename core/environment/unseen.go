package environment

import (
	"iter"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Unsettled is a row of a shard that was committed and that proxies don't see yet.
type Unsettled struct {
	Name
	Shard *Shard
	// Before is what the shard had when all was settled last, Now what it has.
	Before, Now *pb.Row
}

// Settling is what was committed and is not what proxies see yet.
type Settling struct {
	tables     tables
	precedence *Precedence
	// before is what shards had of rows that proxies don't see as they are now; nil: nobody asks.
	before map[Name]map[*Shard]*pb.Row
	// ranks are those that services had when all was settled last, of those that have another
	// since.
	ranks map[string]int
}

func newSettling(rows tables, precedence *Precedence) *Settling {
	return &Settling{tables: rows, precedence: precedence, ranks: map[string]int{}}
}

// Settle says that proxies see what is committed. From the first call on it is kept what shards had
// before.
func (st *Settling) Settle() {
	if st.before == nil || len(st.before) > 0 {
		st.before = map[Name]map[*Shard]*pb.Row{}
	}
	clear(st.ranks)
}

// remember keeps what shards have of a key, before they are given other rows.
func (st *Settling) remember(n Name, next map[*Shard]*pb.Row) {
	if st.before == nil {
		return
	}
	for s, r := range next {
		shards := st.before[n]
		first, known := shards[s]
		switch {
		case !known && shards == nil:
			st.before[n] = map[*Shard]*pb.Row{s: st.tables.own(s, n)}
		case !known:
			shards[s] = st.tables.own(s, n)
		case Equal(first, r): // it is as it was
			if delete(shards, s); len(shards) == 0 {
				delete(st.before, n)
			}
		}
	}
}

// rememberRank keeps which rank a service had, when it has been given another.
func (st *Settling) rememberRank(service string, was int) {
	if _, noted := st.ranks[service]; !noted && st.before != nil {
		st.ranks[service] = was
	}
}

// HasUnsettled reports whether anything was committed since all was settled last.
func (st *Settling) HasUnsettled() bool { return len(st.before) > 0 }

// Unsettled yields what was committed since all was settled last.
func (st *Settling) Unsettled() iter.Seq[Unsettled] {
	return func(yield func(Unsettled) bool) {
		for n, shards := range st.before {
			for s, r := range shards {
				if !yield(Unsettled{n, s, r, st.tables.own(s, n)}) {
					return
				}
			}
		}
	}
}

// Had reports whether a row of this name was served when all was settled last.
func (st *Settling) Had(n Name) bool {
	rank := noRank
	if ofService(n.Table) {
		rank = st.rankHad(ServiceOf(n.Key))
	}
	shards := st.before[n]
	for s, r := range shards {
		if r != nil && !s.aside && s.Priority >= rank {
			return true
		}
	}
	if t := st.tables[n.Table]; t != nil {
		for _, o := range t.rows[n.Key] {
			if _, changed := shards[o.shard]; !changed && !o.shard.aside && o.shard.Priority >= rank {
				return true
			}
		}
	}
	return false
}

// rankHad is the rank of a service when all was settled last.
func (st *Settling) rankHad(service string) int {
	if rank, is := st.ranks[service]; is {
		return rank
	}
	return st.precedence.rank(service, false)
}

// Revealed is how many endpoints more are served than when all was settled last, that did not
// change themselves: other shards' went or came.
func (st *Settling) Revealed() (n int) {
	for service, from := range st.ranks {
		to := st.precedence.rank(service, false)
		for key := range st.precedence.members[Name{Endpoints, service}] {
			if st.before[Name{Endpoints, key}] == nil {
				rows := st.tables[Endpoints].rows[key]
				n += byBool(pick(rows, to, false) >= 0) - byBool(pick(rows, from, false) >= 0)
			}
		}
	}
	return n
}
