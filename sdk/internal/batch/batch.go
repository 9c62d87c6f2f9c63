// Package batch packs changes of rows into messages.
package batch

import (
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Batch gathers rows into messages.
type Batch struct {
	// Most is how large they may grow, in bytes, MostRow how large a row may be.
	Most, MostRow int
	// Revision is that of the rows, nil where they have none.
	Revision *pb.Revision

	full []*pb.Rows
	open *pb.Rows
	size int
}

// Add adds changes of one table, and returns the rows that are too large, which it leaves out. It
// copies nothing.
func (b *Batch) Add(table string, upserts []*pb.Row, deletes []string) (tooLarge []*pb.Row) {
	most := min(b.MostRow, b.Most-len(table)-24)
	for _, r := range upserts {
		n := r.Size()
		if n > most {
			tooLarge = append(tooLarge, r)
			continue
		}
		t := b.room(table, n+8)
		t.Upserts = append(t.Upserts, r)
	}
	for _, key := range deletes {
		if len(key) > most {
			continue // there is no such row
		}
		t := b.room(table, len(key)+8)
		t.Deletes = append(t.Deletes, key)
	}
	return tooLarge
}

// room returns where n bytes of a table go.
func (b *Batch) room(table string, n int) *pb.TableRows {
	if b.open == nil || b.size+n+len(table)+16 > b.Most {
		b.turn()
	}
	b.size += n
	i := slices.IndexFunc(b.open.Tables, func(t *pb.TableRows) bool { return t.Table == table })
	if i < 0 {
		b.size += len(table) + 16
		b.open.Tables = append(b.open.Tables, &pb.TableRows{Table: table})
		i = len(b.open.Tables) - 1
	}
	return b.open.Tables[i]
}

func (b *Batch) turn() {
	if b.open != nil {
		b.full = append(b.full, b.open)
	}
	b.open, b.size = &pb.Rows{Revision: b.Revision}, 0
}

// Messages returns what was gathered.
func (b *Batch) Messages() []*pb.Rows {
	if b.open == nil {
		return b.full
	}
	return append(b.full, b.open)
}
