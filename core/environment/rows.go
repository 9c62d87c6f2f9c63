package environment

import (
	"math"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// tables are the committed rows of all shards.
type tables map[string]*table

// table holds, for each key, the rows of all shards in order; the first one is served.
type table struct {
	rows map[string][]owned
}

type owned struct {
	shard *Shard
	row   *pb.Row
	// number is that of the commit since which it is as it is.
	number uint64
}

// own returns the row that one shard has of a key.
func (ts tables) own(s *Shard, n Name) *pb.Row {
	if t := ts[n.Table]; t != nil {
		for _, o := range t.rows[n.Key] {
			if o.shard == s {
				return o.row
			}
		}
	}
	return nil
}

// noRank is that of a service of which the rows of all shards are served.
const noRank = math.MinInt

// pick returns the place of the row that is served among all of a key; -1: none is.
func pick(rows []owned, rank int, sources bool) int {
	for i, o := range rows {
		switch {
		case o.shard.aside || sources && o.shard.Derived:
		case o.shard.Priority < rank:
			return -1
		default:
			return i
		}
	}
	return -1
}

func at(rows []owned, i int) *pb.Row {
	if i < 0 {
		return nil
	}
	return rows[i].row
}
