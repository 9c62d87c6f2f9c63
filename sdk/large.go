package sdk

import (
	"context"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// large is what a plugin has said that is too large for a message: it fails alone, is logged, and
// is a fault of the plugin until it is said as it can be sent.
type large struct {
	// feeds: the plugin is a source, which says no Done of a revision.
	feeds bool

	mu   sync.Mutex
	rows []largeRow
	// revision and work are what the last Done said, but for rows.
	revision *pb.Revision
	work     []*pb.Fault
}

// largeRow is a row and what is told of it.
type largeRow struct {
	key   string
	fault *pb.Fault
}

// mostLarge is how many rows that are too large are told and remembered.
const mostLarge = 64

// mostRow is the size of the largest row that the core takes of this plugin, in bytes
// (limits.rowBytes).
func (ps *pluginSession) mostRow() int {
	if l := ps.hello.Limits; l != nil && l.RowBytes > 0 && l.RowBytes < session.MaxRow {
		return int(l.RowBytes)
	}
	return session.MaxRow
}

// refuseRows notes which rows of an update are too large, and which are no longer. The core keeps
// what it has of those that are, and shows them.
func (ps *pluginSession) refuseRows(ctx context.Context, table string, upserts []*Row, deletes []string, tooLarge []*Row) {
	l := &ps.told.large
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rows)+len(tooLarge) == 0 {
		return
	}
	changed := len(tooLarge) > 0
	for _, r := range upserts {
		changed = l.forget(table, r.Key) || changed
	}
	for _, key := range deletes {
		changed = l.forget(table, key) || changed
	}
	for _, r := range tooLarge {
		reason := text.Of("it has ", r.Size(), " bytes, and a row may have ", ps.mostRow(),
			" (limits.rowBytes): it is not published, and what was published of it before stays")
		key := cutText(r.Key, maxReason)
		ps.log(ctx, Error, "a row is too large", "table", table, "row", key, "reason", reason)
		if len(l.rows) < mostLarge {
			l.rows = append(l.rows, largeRow{r.Key, &pb.Fault{
				What: text.Of("row ", key, " of table ", table), Reason: reason, Rows: []*pb.RowName{{Table: table, Key: key}},
			}})
		}
	}
	if changed {
		ps.tell(ctx, nil)
	}
}

// forget forgets a row, and reports whether it was known; mu is held.
func (l *large) forget(table, key string) bool {
	for i, r := range l.rows {
		if r.key == key && r.fault.Rows[0].Table == table {
			l.rows = append(l.rows[:i], l.rows[i+1:]...)
			return true
		}
	}
	return false
}

// tell says what fails now, where the core can be told before the next Done: as of the revision of
// the last one, or of none by a source, which has none. large.mu is held.
func (ps *pluginSession) tell(ctx context.Context, spans []*pb.Span) {
	l := &ps.told.large
	revision := l.revision
	if revision == nil {
		if !l.feeds {
			return
		}
		revision = &pb.Revision{Epoch: ps.hello.Epoch}
	}
	ps.say(ctx, &pb.FromPlugin{Done: &pb.Done{Revision: revision, Faults: bounded(l.all(l.work)), Spans: spans}})
}

// done says that a revision is done, with what failed, and when it was worked at.
func (ps *pluginSession) done(ctx context.Context, revision *pb.Revision, work []*pb.Fault, spans ...*pb.Span) {
	l := &ps.told.large
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revision, l.work = revision, work
	ps.tell(ctx, spans)
}

// since is a piece of work that ends now.
func since(name string, began time.Time) *pb.Span {
	return &pb.Span{Name: name, Began: uint64(began.UnixNano()), Ended: uint64(time.Now().UnixNano())}
}

// with returns faults of work with those of rows.
func (l *large) with(work []*pb.Fault) []*pb.Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all(work)
}

// all is with; mu is held.
func (l *large) all(work []*pb.Fault) []*pb.Fault {
	if len(l.rows) == 0 {
		return work
	}
	all := make([]*pb.Fault, 0, len(l.rows)+len(work))
	for _, r := range l.rows {
		all = append(all, r.fault)
	}
	return append(all, work...)
}
