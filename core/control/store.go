package control

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
)

// A plugin may ask for objects of a config table, or change them, where they are kept: the core sends what it asks on to the one plugin that writes the table,
// and the answer back. It looks into neither.

// stores are the requests that their writers have not answered. Its zero value is ready.
type stores struct {
	last uint64
	open map[uint64]*storing
}

// storing is one request that was sent on.
type storing struct {
	// id is the writer's number of it, asked the asker's.
	id, asked uint64
	// asker is nil once its session has ended.
	asker, writer *session
	size          int
	until         time.Time
	// overdue: the asker was told that there was no answer in time.
	overdue bool
}

// stored is what a session has to do with stores.
type stored struct {
	// open are its requests whose answers it was not sent yet.
	open int
	// unsent are answers that wait to be sent to it, true for those to requests that were sent on.
	unsent map[*pb.Stored]bool
	// owed are requests that it has not answered, of so many bytes, and overdue those of them for which nobody waits any more.
	owed, bytes, overdue int
}

const (
	// maxUnsent is how many answers a plugin may leave unread.
	maxUnsent = 1000
	// maxStores and maxStoreBytes are how many requests, and bytes of them, a writer may have in hand; maxLateStores is how many it may leave without an answer.
	maxStores, maxStoreBytes = 256, 8 << 20
	maxLateStores            = 100
	// maxStoreError is how much of an error's text is passed on.
	maxStoreError = 4 << 10
)

// takeStore sends a request on, or answers it if that can't be. Only one that leaves answers unread is blamed.
func (c *Control) takeStore(s *session, m *pb.Store, now time.Time) error {
	if len(s.stored.unsent) >= maxUnsent {
		return fmt.Errorf("it leaves %d answers to its Stores unread", maxUnsent)
	}
	w, code, why := c.writer(s, m)
	if w == nil {
		c.tellStored(s, &pb.Stored{Id: m.Id, Code: code, Error: why}, false)
		return nil
	}
	a := &c.stores
	if a.open == nil {
		a.open = map[uint64]*storing{}
	}
	a.last++
	q := &storing{id: a.last, asked: m.Id, asker: s, writer: w, size: m.Size(), until: now.Add(cmp.Or(max(w.Limits.Call, 0), c.cfg.HoldMax))}
	a.open[q.id] = q
	s.stored.open++
	w.stored.owed++
	w.stored.bytes += q.size
	on := *m
	on.Id = q.id
	w.out.call(&pb.FromCore{Store: &on})
	return nil
}

// writer returns the session that a request goes to; nil, and why, if there is none.
func (c *Control) writer(s *session, m *pb.Store) (w *session, code pb.Code, why string) {
	table := clipped(m.Table, 300)
	switch {
	case s.shadow != nil:
		return nil, pb.CodeUnavailable, fmt.Sprintf("plugin %s is not served (yet), and changes nothing meanwhile", s.Name)
	case !s.inst.Entry.MayStore(m.Table):
		return nil, pb.CodeForbidden, fmt.Sprintf("plugins.yaml does not let plugin %s use objects of %s where they are kept: add `allow: {store: [%s]}` to its entry", s.Name, table, table)
	case len(m.Object) > maxRow:
		return nil, pb.CodeInvalid, fmt.Sprintf("has %d bytes, which is more than the %d that an object may have", len(m.Object), maxRow)
	case s.stored.open >= carrier.MaxStores:
		return nil, pb.CodeUnavailable, fmt.Sprintf("plugin %s has %d requests on their way already: wait for an answer", s.Name, carrier.MaxStores)
	}
	names := c.writers(m.Table)
	switch len(names) {
	case 0:
		return nil, pb.CodeUnsupported, c.readOnly(m.Table, table)
	case 1:
	default:
		return nil, pb.CodeUnsupported, manyWriters(table, names)
	}
	switch w = c.sessions[names[0]]; {
	case w == nil && c.known[names[0]].asleep:
		c.rouse(names[0])
		return nil, pb.CodeUnavailable, fmt.Sprintf("plugin %s, which takes writes of %s, sleeps, and is being started", names[0], table)
	case w == nil:
		return nil, pb.CodeUnavailable, fmt.Sprintf("plugin %s, which takes writes of %s, is away", names[0], table)
	case w.stored.owed >= maxStores, w.stored.bytes+len(m.Object) > maxStoreBytes:
		return nil, pb.CodeUnavailable, fmt.Sprintf("plugin %s, which takes writes of %s, has too many requests to answer", names[0], table)
	}
	return w, pb.CodeOk, ""
}

// writers returns the plugins that said last that they take writes of a table, in declared order.
func (c *Control) writers(table string) (names []string) {
	for _, k := range c.sortedKnown() {
		if k.ready != nil && slices.Contains(k.ready.Writes, table) {
			names = append(names, k.Name)
		}
	}
	return names
}

// readOnly says that nobody takes writes of a table, and who has its objects; shown is the table's name, clipped.
func (c *Control) readOnly(table, shown string) string {
	why := fmt.Sprintf("no plugin of plugins.yaml takes writes of %s", shown)
	for _, k := range c.sortedKnown() {
		if k.ready != nil && slices.Contains(k.ready.Publishes, table) {
			return fmt.Sprintf("%s: what plugin %s (%s) publishes of it is changed at its source", why, k.Name, k.ready.Plugin)
		}
	}
	return why
}

func manyWriters(table string, names []string) string {
	return fmt.Sprintf("plugins %s all take writes of %s: at most one may", strings.Join(names, " and "), table)
}

// warnOfWriters says that a plugin takes writes of what another one writes.
func (c *Control) warnOfWriters(k *known) {
	for _, table := range k.ready.Writes {
		if names := c.writers(table); len(names) > 1 {
			c.cfg.Log.Warn("nothing is written: "+manyWriters(table, names), "plugin", k.Name)
			return
		}
	}
}

// takeStored sends an answer on. One that comes late, twice or unasked harms nobody.
func (c *Control) takeStored(s *session, m *pb.Stored) {
	q := c.stores.open[m.Id]
	if q == nil || q.writer != s {
		c.cfg.Metrics.Unknown(s.Name, "answer", 1)
		return
	}
	if q.overdue {
		c.cfg.Metrics.Unknown(s.Name, "late answer", 1)
	}
	c.closeStore(q)
	if m.Code < pb.CodeOk || m.Code > pb.CodeDeadline {
		m = &pb.Stored{Code: pb.CodeUnavailable, Error: fmt.Sprintf("plugin %s answered with a code that this core does not know, %d", s.Name, m.Code)}
	}
	if m.Code != pb.CodeOk {
		m = &pb.Stored{Code: m.Code, Field: clipped(m.Field, maxStoreError), Error: clipped(m.Error, maxStoreError)}
	}
	c.answerStore(q, m)
}

// answerStore answers the asker, if it waits.
func (c *Control) answerStore(q *storing, m *pb.Stored) {
	if q.asker != nil && !q.overdue {
		m.Id = q.asked
		c.tellStored(q.asker, m, true)
	}
}

// closeStore forgets a request that its writer does not owe any more.
func (c *Control) closeStore(q *storing) {
	delete(c.stores.open, q.id)
	w := &q.writer.stored
	w.owed--
	w.bytes -= q.size
	if q.overdue {
		w.overdue--
	}
}

// tellStored sends an answer; counted: to a request that was sent on.
func (c *Control) tellStored(s *session, m *pb.Stored, counted bool) {
	if s.stored.unsent == nil {
		s.stored.unsent = map[*pb.Stored]bool{}
	}
	s.stored.unsent[m] = counted
	s.out.call(&pb.FromCore{Stored: m})
}

// storedSent notes that an answer was handed to the carrier.
func (c *Control) storedSent(s *session, m *pb.Stored) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.stored.unsent[m] {
		s.stored.open--
	}
	delete(s.stored.unsent, m)
}

// lateStores answers requests that were not answered in time. A writer that leaves too many is started again.
func (c *Control) lateStores(now time.Time, at func(time.Time)) {
	for _, q := range c.stores.open {
		switch {
		case q.overdue:
			continue
		case q.until.After(now):
			at(q.until)
			continue
		}
		w := q.writer
		c.answerStore(q, &pb.Stored{Code: pb.CodeDeadline, Error: fmt.Sprintf("plugin %s did not answer within limits.call, %s; it may have made the change", w.Name, w.Limits.Call)})
		q.overdue = true
		c.cfg.Metrics.Crossed(w.Name, "call")
		w.slow.Do(func() { c.cfg.Log.Warn("a store did not answer in time", "plugin", w.Name, "limit", w.Limits.Call) })
		if w.stored.overdue++; w.stored.overdue == maxLateStores {
			w.cancel(fmt.Errorf("plugin %s left %d requests to its store without an answer", w.Name, maxLateStores))
		}
	}
}

// abandonStores ends what a session that ended was asked, and forgets that it asked.
func (c *Control) abandonStores(s *session) {
	for _, q := range c.stores.open {
		if q.asker == s {
			q.asker = nil
		}
		if q.writer == s {
			c.closeStore(q)
			c.answerStore(q, &pb.Stored{Code: pb.CodeUnavailable, Error: fmt.Sprintf("plugin %s ended while it was asked; it may have made the change", s.Name)})
		}
	}
}

// undeliveredStore answers a request that was too large to be sent on, and undeliveredStored one whose answer was.
func (c *Control) undeliveredStore(m *pb.Store, why error) {
	if q := c.stores.open[m.Id]; q != nil {
		c.closeStore(q)
		c.answerStore(q, &pb.Stored{Code: pb.CodeInvalid, Error: fmt.Sprintf("the request's %v", why)})
	}
}

func (c *Control) undeliveredStored(s *session, m *pb.Stored, why error) {
	counted := s.stored.unsent[m]
	delete(s.stored.unsent, m)
	c.tellStored(s, &pb.Stored{Id: m.Id, Code: pb.CodeUnsupported, Error: fmt.Sprintf("the answer's %v", why)}, counted)
}
