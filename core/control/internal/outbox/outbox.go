// Package outbox is what waits to be sent to a plugin.
package outbox

import (
	"context"
	"errors"
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
)

// MaxState is how many bytes of a State message are left to what is not rows.
const MaxState = carrier.MaxMessage - 8<<10

// MaxRow is the largest row that is taken: it must fit into a message again with the shard's name.
const MaxRow = carrier.MaxRow

// Box is what waits to be sent to one plugin. Calls overtake states; neither blocks the one who
// puts them in.
type Box struct {
	mu     sync.Mutex
	calls  []*pb.FromCore
	states []*Job
	signal chan struct{}
	// sent is called when a state has been handed to the carrier; failed when a call is too large
	// for it. What fails is that call alone.
	sent   func(number uint64)
	failed func(call *pb.FromCore, why error)
	// Answered is called when the answer to a Store has been handed to the carrier.
	Answered func(*pb.Stored)
}

// Job is a State that is not encoded yet: the rows are shared pointers. Or, with Call, a message
// that must come after the states before it.
type Job struct {
	Call      *pb.FromCore
	Revision  pb.Revision
	Whole     bool
	Overtakes bool
	Tables    []*pb.TableRows
}

// New returns an empty one. sent is told the number of a state's revision once it was handed to the
// carrier, failed of a call that is too large for a message; both may be nil if nobody runs it.
func New(sent func(uint64), failed func(*pb.FromCore, error)) *Box {
	return &Box{signal: make(chan struct{}, 1), sent: sent, failed: failed}
}

// Call adds a message.
func (o *Box) Call(m *pb.FromCore) {
	o.mu.Lock()
	o.calls = append(o.calls, m)
	o.mu.Unlock()
	o.ring()
}

// far is how many messages wait for a plugin that is far behind.
const far = 10_000

// Tell is Call for what a plugin can do without: it is left out where the plugin is far behind.
func (o *Box) Tell(m *pb.FromCore) {
	if !o.Behind() {
		o.Call(m)
	}
}

// Behind reports whether the plugin is far behind.
func (o *Box) Behind() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.calls) >= far
}

// State adds a state, or a message that comes after the states before it.
func (o *Box) State(j *Job) {
	o.mu.Lock()
	o.states = append(o.states, j)
	o.mu.Unlock()
	o.ring()
}

func (o *Box) ring() {
	select {
	case o.signal <- struct{}{}:
	default:
	}
}

func (o *Box) nextCall() *pb.FromCore {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.popCall()
}

func (o *Box) popCall() *pb.FromCore {
	if len(o.calls) == 0 {
		return nil
	}
	m := o.calls[0]
	o.calls[0] = nil
	o.calls = o.calls[1:]
	return m
}

// next takes what is to be sent: a call, or a state that no call waits before. So what was put in
// before a state is never sent after it: the core counts on a plugin that is done with a state to
// know of it.
func (o *Box) next() (*pb.FromCore, *Job) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m := o.popCall(); m != nil {
		return m, nil
	}
	if len(o.states) == 0 {
		return nil, nil
	}
	j := o.states[0]
	o.states[0] = nil
	o.states = o.states[1:]
	return nil, j
}

// Drain takes out all that waits, states as the messages that they make, in the order in which they
// would be sent.
func (o *Box) Drain() (all []*pb.FromCore) {
	for {
		call, job := o.next()
		switch {
		case call != nil:
			all = append(all, call)
		case job == nil:
			return all
		case job.Call != nil:
			all = append(all, job.Call)
		default:
			split := newSplit(job)
			for m := split.next(); m != nil; m = split.next() {
				all = append(all, &pb.FromCore{State: m})
			}
			if !job.Overtakes && o.sent != nil {
				o.sent(job.Revision.Number)
			}
		}
	}
}

// Run sends until ctx ends or the link breaks.
func (o *Box) Run(ctx context.Context, link *carrier.Core) error {
	for {
		call, job := o.next()
		var err error
		switch {
		case call != nil:
			err = o.sendCall(ctx, link, call)
		case job != nil:
			err = o.sendState(ctx, link, job)
		}
		if err != nil {
			return err
		}
		if call != nil || job != nil {
			continue
		}
		select {
		case <-o.signal:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (o *Box) flushCalls(ctx context.Context, link *carrier.Core) error {
	for m := o.nextCall(); m != nil; m = o.nextCall() {
		if err := o.sendCall(ctx, link, m); err != nil {
			return err
		}
	}
	return nil
}

// sendCall sends a call. One that is too large for a message fails, and not the session: what makes
// it large may come from outside.
func (o *Box) sendCall(ctx context.Context, link *carrier.Core, m *pb.FromCore) error {
	err := link.Send(ctx, m)
	if errors.Is(err, carrier.ErrTooLarge) {
		o.failed(m, err)
		return nil
	}
	if err == nil && m.Stored != nil && o.Answered != nil {
		o.Answered(m.Stored)
	}
	return err
}

func (o *Box) sendState(ctx context.Context, link *carrier.Core, j *Job) error {
	if j.Call != nil {
		return o.sendCall(ctx, link, j.Call)
	}
	split := newSplit(j)
	for m := split.next(); m != nil; m = split.next() {
		if err := link.Send(ctx, &pb.FromCore{State: m}); err != nil {
			return err
		}
		if err := o.flushCalls(ctx, link); err != nil {
			return err
		}
	}
	if !j.Overtakes && o.sent != nil {
		o.sent(j.Revision.Number)
	}
	return nil
}

// split cuts a state into messages.
type split struct {
	job          *Job
	table        int
	upsert, gone int
	begun, ended bool
}

func newSplit(j *Job) *split { return &split{job: j} }

// next returns the next message; nil after the last one.
func (s *split) next() *pb.State {
	if s.ended {
		return nil
	}
	m := &pb.State{Revision: &s.job.Revision, Whole: s.job.Whole && !s.begun, Overtakes: s.job.Overtakes}
	s.begun = true
	room := MaxState
	for ; s.table < len(s.job.Tables); s.table, s.upsert, s.gone = s.table+1, 0, 0 {
		from := s.job.Tables[s.table]
		t := &pb.TableRows{Table: from.Table}
		for ; s.upsert < len(from.Upserts) && room > 0; s.upsert++ {
			size := from.Upserts[s.upsert].Size() + 8
			if size > room && room < MaxState {
				room = 0
				break
			}
			t.Upserts = append(t.Upserts, from.Upserts[s.upsert])
			room -= size
		}
		for ; s.gone < len(from.Deletes) && room > 0; s.gone++ {
			size := len(from.Deletes[s.gone]) + 8
			if size > room && room < MaxState {
				room = 0
				break
			}
			t.Deletes = append(t.Deletes, from.Deletes[s.gone])
			room -= size
		}
		if len(t.Upserts)+len(t.Deletes) > 0 {
			m.Tables = append(m.Tables, t)
			room -= len(t.Table) + 16
		}
		if s.upsert < len(from.Upserts) || s.gone < len(from.Deletes) {
			m.More = true
			return m
		}
	}
	s.ended = true
	return m
}
