package state

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// What is kept of pushes.
const (
	mostPushes     = 500
	mostPushedRows = 20
	mostRefusals   = 5
	mostAnswers    = 50
	mostWords      = 300
	// mostChanges is how many rows of a push may be others for their names to be kept.
	mostChanges = 2000
)

// ErrNoPushes says that pushes are not followed.
var ErrNoPushes = errors.New("pushes are not followed (followPushes is false), so that nobody knows whom they reached; start coxswain without that setting")

// Journal keeps what the last revisions were for, and whom they reached.
type Journal struct {
	// Off: nothing is kept.
	Off    bool
	pushes []*push // oldest first
	now    *push   // the one that is being shown; nil: none
	// Traced: it is kept which connections answered last.
	Traced bool
	// Finished is called when all connections that a push concerned have answered it; optional.
	Finished func(report.Push)
	// Reached is called when a connection has all of a push, so long after its first change came;
	// optional.
	Reached func(took time.Duration)
	// Shown is called when connections were shown a revision, or it is held; optional.
	Shown func(report.Push)
}

// push is a revision that is followed.
type push struct {
	report.Push
	// at is the revision that connections were served when it was shown.
	at uint64
	// changed are the rows of it, by table and key; nil: too many.
	changed map[environment.Name]bool
}

// Begin notes that a revision is being shown.
func (j *Journal) Begin(p report.Push, at uint64, changes environment.Changes, committed *environment.Committed) {
	if j.Off {
		return
	}
	if !j.Traced {
		p.Work = nil
	}
	next := &push{Push: p, at: at}
	next.note(changes, committed)
	j.now = next
	if j.pushes = append(j.pushes, next); len(j.pushes) > mostPushes {
		j.pushes = slices.Delete(j.pushes, 0, len(j.pushes)-mostPushes)
	}
}

// note notes which rows changed, of those of sources some by name.
func (p *push) note(changes environment.Changes, committed *environment.Committed) {
	total := 0
	p.Changed = map[string]int{}
	for table, keys := range changes {
		if len(keys) > 0 {
			p.Changed[table] = len(keys)
			total += len(keys)
		}
	}
	if total > mostChanges {
		return
	}
	p.changed = make(map[environment.Name]bool, total)
	var names []environment.Name
	for table, keys := range changes {
		for key, c := range keys {
			n := environment.Name{Table: table, Key: key}
			p.changed[n] = true
			if c.Source {
				names = append(names, n)
			}
		}
	}
	slices.SortFunc(names, func(a, b environment.Name) int {
		return CompareRows(report.RowName(a), report.RowName(b))
	})
	for _, n := range names[:min(len(names), mostPushedRows)] {
		row, before := committed.Row(n, false), changes[n.Table][n.Key].Before
		r := report.PushedRow{RowName: report.RowName(n), What: "changed"}
		switch {
		case row == nil:
			r.What, row = "removed", before
		case before == nil:
			r.What = "added"
		}
		if row != nil {
			r.Plugin, r.Source = row.Shard, row.Source
		}
		p.Rows = append(p.Rows, r)
	}
}

// CompareRows puts rows of config kinds, which people write, before others.
func CompareRows(a, b report.RowName) int {
	rank := func(table string) int {
		if strings.Contains(table, "/") {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a.Table), rank(b.Table)), cmp.Compare(a.Table, b.Table), cmp.Compare(a.Key, b.Key))
}

// Changed notes that views changed.
func (j *Journal) Changed(views []*view.View) {
	if j.now == nil {
		return
	}
	if j.now.Views == nil {
		j.now.Views = map[string]int{}
	}
	for _, v := range views {
		j.now.Views[v.Type]++
	}
}

// Woke notes that a connection is about to be shown something new.
func (j *Journal) Woke(conn *Connection) {
	p := j.now
	if p == nil || slices.Contains(conn.Owes, p) {
		return // it is of a plugin that was late, or of endpoints that overtake
	}
	p.Proxies++
	p.Waiting++
	conn.Owes = append(conn.Owes, p)
}

// End notes that the revision is shown, or held, and how long it was made. One of nothing, which
// has plugins tidy up, is forgotten.
func (j *Journal) End(took time.Duration, held bool, now time.Time) {
	if p := j.now; p != nil {
		j.now = nil
		p.Took, p.Held = took, held
		if j.Shown != nil {
			j.Shown(p.copy())
		}
		if p.Empty() {
			j.pushes = j.pushes[:len(j.pushes)-1]
			return
		}
		p.finish(j, now)
	}
}

// Showing is the number of the revision that is being shown; 0: none is, or one of endpoints alone.
func (j *Journal) Showing() uint64 {
	if j.now == nil || j.now.Kind == revision.Endpoints {
		return 0
	}
	return j.now.Revision
}

// Answered notes what a connection said to a response.
func (j *Journal) Answered(conn *Connection, o xds.Outcome) {
	p := j.of(o.Number)
	switch {
	case p == nil:
	case o.Refused == "":
		if p.Sent == nil {
			p.Sent = map[string]report.Sent{}
		}
		s := p.Sent[o.Type]
		p.Sent[o.Type] = report.Sent{Responses: s.Responses + 1, Resources: s.Resources + o.Resources, Bytes: s.Bytes + int64(o.Bytes)}
	default:
		if p.Refusals++; len(p.Refused) < mostRefusals {
			p.Refused = append(p.Refused, report.PushRefusal{Node: conn.Peer.Node.GetId(), Type: o.Type, Reason: budget.Line(o.Refused, mostWords)})
		}
	}
}

// HasAll notes that a connection has all of a revision, and has answered it.
func (j *Journal) HasAll(conn *Connection, number uint64, now time.Time) {
	conn.Owes = slices.DeleteFunc(conn.Owes, func(p *push) bool {
		if p.at > number {
			return false
		}
		p.Waiting--
		if j.Reached != nil {
			j.Reached(now.Sub(p.Committed) + p.Waited)
		}
		if j.Traced {
			if len(p.Answers) == mostAnswers {
				p.Answers = slices.Delete(p.Answers, 0, 1)
			}
			p.Answers = append(p.Answers, report.Answer{Node: conn.Peer.Node.GetId(), At: now})
		}
		p.finish(j, now)
		return true
	})
}

// Left notes that a connection is gone.
func (j *Journal) Left(conn *Connection, now time.Time) {
	for _, p := range conn.Owes {
		p.Waiting--
		p.Push.Left++
		p.finish(j, now)
	}
	conn.Owes = nil
}

// finish notes that all have answered, if they have.
func (p *push) finish(j *Journal, now time.Time) {
	if p == j.now || p.Waiting > 0 || !p.Done.IsZero() {
		return
	}
	if p.Done = now; j.Finished != nil {
		j.Finished(p.copy())
	}
}

// of is the push with a number; nil: it is not remembered.
func (j *Journal) of(number uint64) *push {
	for _, p := range slices.Backward(j.pushes) {
		switch {
		case p.Revision == number:
			return p
		case p.Revision < number:
			return nil
		}
	}
	return nil
}

// Served says when a revision began to be served, or the one that it is part of; the zero time: it
// is not remembered.
func (j *Journal) Served(number uint64) time.Time {
	i, _ := slices.BinarySearchFunc(j.pushes, number, func(p *push, n uint64) int { return cmp.Compare(p.Revision, n) })
	if i == len(j.pushes) || i == 0 && j.pushes[0].Revision != number {
		return time.Time{}
	}
	return j.pushes[i].Committed.Add(j.pushes[i].Took)
}

// ChangedSince reports whether a row changed in a revision after one, and not after another; ok is
// false where that is not remembered.
func (j *Journal) ChangedSince(n environment.Name, after, until uint64) (changed, ok bool) {
	if len(j.pushes) == 0 || j.pushes[0].Revision > after+1 {
		return false, false
	}
	for _, p := range j.pushes {
		if p.Revision <= after || p.Revision > until {
			continue
		}
		if p.changed == nil {
			return false, false
		}
		changed = changed || p.changed[n]
	}
	return changed, true
}

// After returns the pushes with numbers above one, oldest first.
func (j *Journal) After(number uint64) []report.Push {
	out := []report.Push{}
	for _, p := range j.pushes {
		if p.Revision > number {
			out = append(out, p.copy())
		}
	}
	return out
}

func (p *push) copy() report.Push {
	c := p.Push
	c.Changed, c.Plugins, c.Views, c.Sent = maps.Clone(c.Changed), maps.Clone(c.Plugins), maps.Clone(c.Views), maps.Clone(c.Sent)
	c.Rows, c.Refused, c.Answers = slices.Clone(c.Rows), slices.Clone(c.Refused), slices.Clone(c.Answers)
	return c
}

// Carried is the push that a row of a revision went out with; the revision itself where that is not
// remembered.
func (j *Journal) Carried(number uint64) uint64 {
	for _, p := range j.pushes {
		if p.Revision >= number {
			return p.Revision
		}
	}
	return number
}

// OwesUntil reports whether the connection has not answered all pushes up to one.
func (conn *Connection) OwesUntil(number uint64) bool {
	return slices.ContainsFunc(conn.Owes, func(p *push) bool { return p.Revision <= number })
}
