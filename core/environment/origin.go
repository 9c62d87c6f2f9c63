package environment

import "iter"

// Since is the number of the commit since which the served row of a key is as it is; 0 where there
// is none.
func (c *Committed) Since(n Name) uint64 {
	t := c.tables[n.Table]
	if t == nil {
		return 0
	}
	rows := t.rows[n.Key]
	if i := pick(rows, c.precedence.rankOf(n, false), false); i >= 0 {
		return rows[i].number
	}
	return 0
}

// Derived yields the served rows that plugins derived from others, each with its source: those of
// the tables that are wanted.
func (c *Committed) Derived(wanted func(table string) bool) iter.Seq2[Name, string] {
	return func(yield func(Name, string) bool) {
		for name, t := range c.tables {
			if !wanted(name) {
				continue
			}
			for key, rows := range t.rows {
				i := pick(rows, c.precedence.rankOf(Name{name, key}, false), false)
				if i >= 0 && rows[i].shard.Derived && !yield(Name{name, key}, rows[i].row.Source) {
					return
				}
			}
		}
	}
}
