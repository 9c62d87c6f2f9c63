package environment

import (
	"iter"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// kept is what shards said that is kept aside.
type kept map[*Shard]map[Name]*pb.Row

// said reports whether a shard says again what is kept aside. If it says something else that
// counts, and nothing is kept aside any more.
func (k kept) said(s *Shard, n Name, r *pb.Row) bool {
	rows := k[s]
	was, held := rows[n]
	if held && !Equal(was, r) {
		if delete(rows, n); len(rows) == 0 {
			delete(k, s)
		}
		return false
	}
	return held
}

// Held takes back what was committed and proxies are not to see, and keeps aside what shards said
// instead, until somebody decides.
type Held struct {
	tables  tables
	unseen  *Unseen
	pending *Pending
	kept    kept
}

func newHeld(rows tables, unseen *Unseen, pending *Pending, k kept) *Held {
	return &Held{tables: rows, unseen: unseen, pending: pending, kept: k}
}

// Hold takes back those of the unseen rows that accept names, with the next commit, and keeps
// aside what their shards said instead. Rows of which a shard has said more meanwhile are left
// alone, and derived ones: they follow from others. It returns how many rows it took back.
func (h *Held) Hold(accept func(UnseenRow) bool) (rows int) {
	for u := range h.unseen.Rows() {
		if _, more := h.pending.of(u.Shard, u.Name); more || u.Shard.Derived || !accept(u) {
			continue
		}
		if h.kept[u.Shard] == nil {
			h.kept[u.Shard] = map[Name]*pb.Row{}
		}
		h.kept[u.Shard][u.Name] = u.Now
		h.pending.force(u.Shard, u.Name, u.Before)
		rows++
	}
	return rows
}

// Of yields what is kept aside of a shard, and what it has instead.
func (h *Held) Of(s *Shard) iter.Seq[UnseenRow] {
	return func(yield func(UnseenRow) bool) {
		for n, r := range h.kept[s] {
			before := h.tables.own(s, n)
			if p, waits := h.pending.of(s, n); waits {
				before = p
			}
			if !yield(UnseenRow{n, s, before, r}) {
				return
			}
		}
	}
}

// Rows is how many rows of a shard are kept aside.
func (h *Held) Rows(s *Shard) int { return len(h.kept[s]) }

// Release notes what was kept aside of a shard, for a later commit.
func (h *Held) Release(s *Shard) {
	rows := h.kept[s]
	delete(h.kept, s)
	for n, r := range rows {
		h.pending.note(s, n, r)
	}
}

// Drop forgets what was kept aside of a shard.
func (h *Held) Drop(s *Shard) { delete(h.kept, s) }
