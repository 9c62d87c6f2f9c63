package sdk

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// messageRoom is how large the contents of a message may grow; the rest is for what surrounds them.
const messageRoom = session.MaxMessage - 4096

// batch gathers rows into messages.
type batch struct {
	// most is how large they may grow.
	most     int
	revision *pb.Revision
	full     []*pb.Rows
	open     *pb.Rows
	size     int
}

// add adds changes of one table. It copies nothing.
func (b *batch) add(table string, upserts []*Row, deletes []string) error {
	for _, r := range upserts {
		n := r.Size() + 8
		if n > b.most {
			return text.Error("row ", r.Key, " of table ", table, " has ", n, " bytes: a row must fit into a message, which has ", b.most, " at most")
		}
		t := b.room(table, n)
		t.Upserts = append(t.Upserts, r)
	}
	for _, key := range deletes {
		t := b.room(table, len(key)+8)
		t.Deletes = append(t.Deletes, key)
	}
	return nil
}

// room returns where n bytes of a table go.
func (b *batch) room(table string, n int) *pb.TableRows {
	if b.open == nil || b.size+n+len(table)+16 > b.most {
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

func (b *batch) turn() {
	if b.open != nil {
		b.full = append(b.full, b.open)
	}
	b.open, b.size = &pb.Rows{Revision: b.revision}, 0
}

// messages returns what was gathered.
func (b *batch) messages() []*pb.Rows {
	if b.open == nil {
		return b.full
	}
	return append(b.full, b.open)
}
