package environment

import (
	"iter"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// UnseenRow is a row of a shard that was committed and that proxies don't see yet.
type UnseenRow struct {
	Name
	Shard *Shard
	// Before is what the shard had when proxies last saw all, Now what it has.
	Before, Now *pb.Row
}

// Unseen is what was committed and is not what proxies see yet.
type Unseen struct {
	tables     tables
	precedence *Precedence
	// before is what shards had of rows that proxies don't see as they are now; nil: nobody asks.
	before map[Name]map[*Shard]*pb.Row
	// ranks are those that services had when proxies last saw all, of those that have another
	// since.
	ranks map[string]int
}

func newUnseen(rows tables, precedence *Precedence) *Unseen {
	return &Unseen{tables: rows, precedence: precedence, ranks: map[string]int{}}
}

// Seen says that proxies see what is committed. From the first call on it is kept what shards had
// before.
func (us *Unseen) Seen() {
	if us.before == nil || len(us.before) > 0 {
		us.before = map[Name]map[*Shard]*pb.Row{}
	}
	clear(us.ranks)
}

// remember keeps what shards have of a key, before they are given other rows.
func (us *Unseen) remember(n Name, next map[*Shard]*pb.Row) {
	if us.before == nil {
		return
	}
	for s, r := range next {
		shards := us.before[n]
		first, known := shards[s]
		switch {
		case !known && shards == nil:
			us.before[n] = map[*Shard]*pb.Row{s: us.tables.own(s, n)}
		case !known:
			shards[s] = us.tables.own(s, n)
		case Equal(first, r): // it is as it was
			if delete(shards, s); len(shards) == 0 {
				delete(us.before, n)
			}
		}
	}
}

// rememberRank keeps which rank a service had, when it has been given another.
func (us *Unseen) rememberRank(service string, was int) {
	if _, noted := us.ranks[service]; !noted && us.before != nil {
		us.ranks[service] = was
	}
}

// Any reports whether anything was committed since then.
func (us *Unseen) Any() bool { return len(us.before) > 0 }

// Rows yields what was committed since proxies saw all.
func (us *Unseen) Rows() iter.Seq[UnseenRow] {
	return func(yield func(UnseenRow) bool) {
		for n, shards := range us.before {
			for s, r := range shards {
				if !yield(UnseenRow{n, s, r, us.tables.own(s, n)}) {
					return
				}
			}
		}
	}
}

// Had reports whether a row of this name was served when proxies last saw all.
func (us *Unseen) Had(n Name) bool {
	rank := noRank
	if ofService(n.Table) {
		rank = us.rankHad(ServiceOf(n.Key))
	}
	shards := us.before[n]
	for s, r := range shards {
		if r != nil && !s.aside && s.Priority >= rank {
			return true
		}
	}
	if t := us.tables[n.Table]; t != nil {
		for _, o := range t.rows[n.Key] {
			if _, changed := shards[o.shard]; !changed && !o.shard.aside && o.shard.Priority >= rank {
				return true
			}
		}
	}
	return false
}

// rankHad is the rank of a service when proxies last saw all.
func (us *Unseen) rankHad(service string) int {
	if rank, is := us.ranks[service]; is {
		return rank
	}
	return us.precedence.rank(service, false)
}

// Revealed is how many endpoints more are served than when proxies last saw all, that did not
// change themselves: other shards' went or came.
func (us *Unseen) Revealed() (n int) {
	for service, from := range us.ranks {
		to := us.precedence.rank(service, false)
		for key := range us.precedence.members[Name{Endpoints, service}] {
			if us.before[Name{Endpoints, key}] == nil {
				rows := us.tables[Endpoints].rows[key]
				n += byBool(pick(rows, to, false) >= 0) - byBool(pick(rows, from, false) >= 0)
			}
		}
	}
	return n
}
