package load

import (
	"sync"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// mostOpen is how many questions of a session are remembered; those beyond are not timed.
const mostOpen = 10_000

// Session watches the messages of one session.
type Session struct {
	meter *Meter

	mu    sync.Mutex
	asked map[question]time.Time
	// source: it publishes by itself; reader: it answers states.
	source, reader bool
}

// question is one that was asked, by its kind and number.
type question struct {
	kind   byte
	number uint64
}

// The kinds of questions.
const (
	aState byte = iota
	anAttach
	aWant
	aPatch
	anAuthenticate
)

// Session begins to watch a session.
func (m *Meter) Session() *Session { return &Session{meter: m, asked: map[question]time.Time{}} }

// Lag is for how long the oldest question waits; 0: there is none, or no session.
func (s *Session) Lag() time.Duration {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest time.Time
	for _, at := range s.asked {
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	if oldest.IsZero() {
		return 0
	}
	return time.Since(oldest)
}

// Sent implements session.Observer.
func (s *Session) Sent(m *pb.FromCore, size int) {
	s.meter.out.Add(uint64(size))
	switch {
	case m.State != nil && m.State.Revision != nil && !m.State.More && s.reads():
		s.ask(question{aState, m.State.Revision.Number})
	case m.Attach != nil:
		s.ask(question{anAttach, m.Attach.Connection})
	case m.Detach != nil:
		s.forget(question{anAttach, m.Detach.Connection})
	case m.Want != nil && m.Want.Id != 0:
		s.ask(question{aWant, m.Want.Id})
	case m.Patch != nil:
		s.ask(question{aPatch, m.Patch.Id})
	case m.Authenticate != nil:
		s.ask(question{anAuthenticate, m.Authenticate.Id})
	}
}

// Received implements session.Observer.
func (s *Session) Received(m *pb.FromPlugin, size int) {
	s.meter.in.Add(uint64(size))
	switch {
	case m.Ready != nil:
		s.ready(m.Ready)
	case m.Rows != nil && s.publishes():
		s.meter.calls.Add(1)
	case m.Done != nil && m.Done.Revision != nil:
		s.done(m.Done)
	case m.Place != nil:
		s.answer(question{anAttach, m.Place.Connection}, false)
	case m.Wanted != nil:
		s.answer(question{aWant, m.Wanted.Id}, false)
	case m.Patched != nil:
		s.answer(question{aPatch, m.Patched.Id}, m.Patched.Error != "")
	case m.Caller != nil:
		s.answer(question{anAuthenticate, m.Caller.Id}, m.Caller.Failure != "")
	}
}

// ready notes what the plugin is.
func (s *Session) ready(r *pb.Ready) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reader = r.Derives || r.Kind.Generates()
	s.source = !r.Derives && r.Kind.Source()
}

func (s *Session) publishes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source
}

func (s *Session) reads() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reader
}

func (s *Session) ask(q question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) < mostOpen {
		s.asked[q] = time.Now()
	}
}

func (s *Session) forget(q question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, q)
}

// done answers a revision. Those before it, of which the plugin may have skipped some, are owed no
// more.
func (s *Session) done(m *pb.Done) {
	s.answer(question{aState, m.Revision.Number}, len(m.Faults) > 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	for q := range s.asked {
		if q.kind == aState && q.number < m.Revision.Number {
			delete(s.asked, q)
		}
	}
}

// answer counts and times an answer; one that nobody waits for is not counted.
func (s *Session) answer(q question, failed bool) {
	s.mu.Lock()
	at, ok := s.asked[q]
	delete(s.asked, q)
	s.mu.Unlock()
	if !ok {
		return
	}
	s.meter.calls.Add(1)
	s.meter.took(time.Since(at))
	if failed {
		s.meter.errors.Add(1)
	}
}
