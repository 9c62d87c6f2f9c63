package environment

import (
	"iter"
	"maps"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Committed is all tables at the newest commit.
type Committed struct {
	number     uint64
	tables     tables
	precedence *Precedence
	tally      *Tally
}

func newCommitted(number uint64, rows tables, precedence *Precedence, tally *Tally) *Committed {
	return &Committed{number: number, tables: rows, precedence: precedence, tally: tally}
}

// Number is the number of the newest commit.
func (c *Committed) Number() uint64 { return c.number }

// Holds reports whether any shard has a row of that name, served or not.
func (c *Committed) Holds(n Name) bool {
	t := c.tables[n.Table]
	return t != nil && len(t.rows[n.Key]) > 0
}

// advance makes what was written part of the next number.
func (c *Committed) advance() { c.number++ }

// write writes the shards' rows of a key with a commit's number, and notes which served rows
// changed by that: the key's, and others of its service, if it is served by other shards now. That
// is the service that is returned, with the rank that it had; "": none is.
func (c *Committed) write(n Name, rows map[*Shard]*pb.Row, number uint64, changes Changes) (moved string, from int) {
	source := false
	for s := range rows {
		source = source || !s.Derived
		c.precedence.heed(s)
	}
	before, service, rank := c.Row(n, false), "", noRank
	if c.precedence.ranked && (n.Table == Services || ofService(n.Table)) {
		service = ServiceOf(n.Key)
		rank = c.precedence.rank(service, false)
	}
	for s, r := range rows {
		c.put(owned{s, r, number}, n, rank)
	}
	if !Equal(before, c.Row(n, false)) {
		changes.add(n, Change{Source: source, Before: before})
	}
	if service != "" && c.precedence.shift(service, n, rank, source, changes) {
		return service, rank
	}
	return "", noRank
}

// put writes what a shard has of a key; no row: nothing. rank is that of the key's service before.
func (c *Committed) put(has owned, n Name, rank int) {
	s, r := has.shard, has.row
	t := c.tables[n.Table]
	if t == nil {
		t = &table{rows: map[string][]owned{}}
		c.tables[n.Table] = t
	}
	if !ofService(n.Table) {
		rank = noRank
	}
	rows := t.rows[n.Key]
	out := make([]owned, 0, len(rows)+1)
	for _, o := range rows {
		if o.shard != s {
			out = append(out, o)
		}
	}
	c.tally.count(s, n, len(out) < len(rows), r != nil)
	had := pick(rows, rank, false)
	if r != nil {
		i, _ := slices.BinarySearchFunc(out, s, func(o owned, s *Shard) int { return o.shard.compare(s) })
		out = slices.Insert(out, i, has)
	} else {
		c.precedence.show(s, n)
	}
	c.precedence.account(n, out, had >= 0, pick(out, rank, false))
	if len(out) == 0 {
		delete(t.rows, n.Key)
		c.precedence.leave(n)
	} else {
		t.rows[n.Key] = out
		c.precedence.join(n)
	}
}

// Row returns the served row of a key, nil where there is none. sources leaves derived rows out.
func (c *Committed) Row(n Name, sources bool) *pb.Row {
	t := c.tables[n.Table]
	if t == nil {
		return nil
	}
	rows := t.rows[n.Key]
	if i := pick(rows, c.precedence.rankOf(n, sources), sources); i >= 0 {
		return rows[i].row
	}
	return nil
}

// Has reports whether a table has served rows. sources leaves derived rows out.
func (c *Committed) Has(tableName string, sources bool) bool {
	for range c.Rows(tableName, sources) {
		return true
	}
	return false
}

// Rows yields the served rows of a table in no order.
func (c *Committed) Rows(tableName string, sources bool) iter.Seq2[string, *pb.Row] {
	return func(yield func(string, *pb.Row) bool) {
		t := c.tables[tableName]
		if t == nil {
			return
		}
		for key, rows := range t.rows {
			i := pick(rows, c.precedence.rankOf(Name{tableName, key}, sources), sources)
			if i >= 0 && !yield(key, rows[i].row) {
				return
			}
		}
	}
}

// Tables returns the names of all tables that have had rows, sorted.
func (c *Committed) Tables() []string { return slices.Sorted(maps.Keys(c.tables)) }

// Len is how many rows of a table are served.
func (c *Committed) Len(tableName string) int {
	if tableName == Endpoints {
		return c.tally.served
	}
	if t := c.tables[tableName]; t != nil {
		return len(t.rows)
	}
	return 0
}

// Sizes returns how many rows each table has (Len).
func (c *Committed) Sizes() map[string]int {
	out := make(map[string]int, len(c.tables))
	for name := range c.tables {
		out[name] = c.Len(name)
	}
	return out
}

// Counts returns how many rows each shard has in each table, hidden ones too.
func (c *Committed) Counts() map[string]map[string]int {
	out := make(map[string]map[string]int, len(c.tables))
	for name, t := range c.tables {
		out[name] = map[string]int{}
		for _, rows := range t.rows {
			for _, o := range rows {
				out[name][o.shard.Name]++
			}
		}
	}
	return out
}

// Beside yields the keys of a table of which another shard has a row.
func (c *Committed) Beside(s *Shard, table string) iter.Seq[string] {
	return func(yield func(string) bool) {
		t := c.tables[table]
		if t == nil {
			return
		}
		for key, rows := range t.rows {
			if slices.ContainsFunc(rows, func(o owned) bool { return o.shard != s }) && !yield(key) {
				return
			}
		}
	}
}
