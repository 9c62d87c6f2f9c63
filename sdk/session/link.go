package session

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
)

// Link is one side of a session. Its methods may be called by several goroutines.
type Link[Out, In Message] struct {
	carrier Carrier
	side    side[Out, In]
	done    chan struct{} // closed when the session is over
	write   chan struct{} // something for the writer
	read    chan struct{} // something for Recv
	tasks   sync.WaitGroup

	mu       sync.Mutex
	out      outbox
	in       inbox[In]
	replies  [][]byte
	writing  bool
	err      error
	seen     time.Time
	progress time.Time
	skipped  uint64
}

// Stats are numbers of a link, for tests and metrics.
type Stats struct {
	// Bytes that wait for the carrier, and the most there ever were; cost of what has arrived and
	// was not taken yet, likewise.
	OutBytes, MostOut, InBytes, MostIn int
	// Credit left for sending.
	Credit uint64
	// Skipped messages: those that this version does not know.
	Skipped uint64
}

func newLink[Out, In Message](c Carrier, s side[Out, In]) *Link[Out, In] {
	now := time.Now()
	l := &Link[Out, In]{
		carrier: c, side: s,
		done: make(chan struct{}), write: make(chan struct{}, 1), read: make(chan struct{}, 1),
		seen: now, progress: now,
	}
	l.out.credit, l.in.left = InitialCredit, InitialCredit
	l.tasks.Add(2)
	go l.writer()
	go l.reader()
	return l
}

// Send queues a message for the carrier. It blocks until there is credit for it, in the order of
// callers, or ctx ends; messages that cost no credit pass those that wait. The message is encoded
// before Send returns. ErrTooLarge is returned for messages over MaxMessage; any other error is
// ctx's or the session's end.
func (l *Link[Out, In]) Send(ctx context.Context, m Out) error {
	size := m.Size()
	if size > MaxMessage {
		return text.Error(ErrTooLarge, " (", size, " bytes)")
	}
	frame := m.AppendTo(l.room(size))
	l.mu.Lock()
	if l.err != nil {
		defer l.mu.Unlock()
		return l.err
	}
	if l.side.sent != nil {
		l.side.sent(m, size)
	}
	w := l.out.push(frame, l.side.free(m))
	l.mu.Unlock()
	if w == nil {
		wake(l.write)
		return nil
	}
	return l.wait(ctx, w)
}

func (l *Link[Out, In]) wait(ctx context.Context, w *waiter) error {
	select {
	case <-w.ready:
		return nil
	case <-l.done:
		return l.Err()
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer wake(l.write)
	if !l.out.leave(w) {
		return nil
	}
	return context.Cause(ctx)
}

// Recv returns the next message and its cost, which the receiver gives back with Release when it
// has dealt with it. Credit, Ping, Pong and Progress are dealt with by the link itself. What
// arrived before the session's end is returned first; then io.EOF if the other side ended it, or
// what went wrong.
func (l *Link[Out, In]) Recv(ctx context.Context) (m In, cost int, err error) {
	for {
		l.mu.Lock()
		next, ok := l.in.pop()
		more, err := len(l.in.queue) > 0, l.err
		l.mu.Unlock()
		switch {
		case ok && !errors.Is(err, ErrClosed):
			if more {
				wake(l.read)
			}
			return next.m, next.cost, nil
		case err != nil:
			return m, 0, err
		}
		select {
		case <-l.read:
		case <-l.done:
		case <-ctx.Done():
			return m, 0, context.Cause(ctx)
		}
	}
}

// Release gives credit back to the other side. It never blocks; small amounts are gathered.
func (l *Link[Out, In]) Release(cost int) {
	if cost <= 0 {
		return
	}
	l.mu.Lock()
	l.in.owed += uint64(cost)
	if n := l.in.grant(); n > 0 {
		l.reply(l.side.credit(n))
	}
	l.mu.Unlock()
}

// Flush waits until everything that was sent is with the carrier.
func (l *Link[Out, In]) Flush(ctx context.Context) error {
	const pause = time.Millisecond
	for {
		l.mu.Lock()
		idle, err := len(l.out.queue)+len(l.replies) == 0 && !l.writing, l.err
		l.mu.Unlock()
		if idle || err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-l.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close ends the session. What was not with the carrier yet is lost; see Flush. It does not wait
// for the link's goroutines, which end when the carrier's methods return: a carrier may need its
// caller to return before they do.
func (l *Link[Out, In]) Close() error {
	l.fail(ErrClosed)
	return nil
}

// Wait waits for the link's goroutines; they end after the session.
func (l *Link[Out, In]) Wait() { l.tasks.Wait() }

// Done is closed when the session is over; Err then says why.
func (l *Link[Out, In]) Done() <-chan struct{} { return l.done }

// Err returns why the session is over: io.EOF if the other side ended it, ErrClosed if this side
// did; nil while it lives.
func (l *Link[Out, In]) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// LastSeen returns when anything was last received; Pong counts.
func (l *Link[Out, In]) LastSeen() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// LastProgress returns when Done, Bodies, Rows or Progress was last received, or when the session
// began.
func (l *Link[Out, In]) LastProgress() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.progress
}

// Stats returns the link's numbers.
func (l *Link[Out, In]) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{
		OutBytes: l.out.queued, MostOut: l.out.most, InBytes: l.in.queued, MostIn: l.in.most,
		Credit: l.out.credit, Skipped: l.skipped,
	}
}

// reply queues a message that goes out before all others; l.mu is held.
func (l *Link[Out, In]) reply(m Out) {
	l.replies = append(l.replies, m.AppendTo(nil))
	wake(l.write)
}

// fail ends the session; the first reason counts.
func (l *Link[Out, In]) fail(err error) {
	l.mu.Lock()
	first := l.err == nil
	if first {
		l.err = err
		close(l.done)
	}
	l.mu.Unlock()
	if first {
		_ = l.carrier.Close()
	}
}

// room returns where a frame goes.
func (l *Link[Out, In]) room(size int) []byte {
	if f, ok := l.carrier.(Framer); ok {
		return f.Frame(size)
	}
	return make([]byte, 0, size)
}

func (l *Link[Out, In]) writer() {
	defer l.tasks.Done()
	for {
		frame := l.next()
		if frame == nil {
			select {
			case <-l.write:
				continue
			case <-l.done:
				return
			}
		}
		if err := l.carrier.Send(frame); err != nil {
			l.sendFailed(err)
			return
		}
	}
}

// sendFailed ends the session. A carrier on which sending fails has ended, and the reader knows
// why, if it is given the time to read what came before.
func (l *Link[Out, In]) sendFailed(err error) {
	const patience = time.Second
	select {
	case <-l.done:
	case <-time.After(patience):
		l.fail(text.Error("sending: ", err))
	}
}

// next takes the next frame to be written.
func (l *Link[Out, In]) next() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writing = false
	if l.err != nil {
		return nil
	}
	var frame []byte
	if len(l.replies) > 0 {
		frame, l.replies = l.replies[0], l.replies[1:]
	} else {
		frame = l.out.pop()
	}
	l.writing = frame != nil
	return frame
}

func (l *Link[Out, In]) reader() {
	defer l.tasks.Done()
	for {
		frame, err := l.carrier.Recv()
		if err == nil {
			err = l.accept(frame)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				err = text.Error("receiving: ", err)
			}
			l.fail(err)
			return
		}
	}
}

// accept deals with a frame that has arrived.
func (l *Link[Out, In]) accept(frame []byte) error {
	if len(frame) > MaxMessage {
		return text.Error("the other side's ", ErrTooLarge, " (", len(frame), " bytes)")
	}
	m := l.side.fresh()
	if err := m.Unmarshal(frame); err != nil {
		return text.Error("a message of ", len(frame), " bytes can't be decoded: ", err)
	}
	if l.side.received != nil {
		l.side.received(m, len(frame))
	}
	s, cost := l.side.look(m), Cost(len(frame))
	if s.free {
		cost = 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(s)
	if err := l.in.charge(cost); err != nil {
		return err
	}
	switch {
	case s.unknown:
		l.skip(cost)
		return nil
	case s.mine:
		return l.out.give(s.credit)
	}
	defer wake(l.read)
	return l.in.push(received[In]{m: m, cost: cost, free: s.free})
}

func (l *Link[Out, In]) note(s sort[Out]) {
	l.seen = time.Now()
	if s.progress {
		l.progress = l.seen
	}
	if s.hasReply && len(l.replies) < maxFree {
		l.reply(s.reply)
	}
	if s.credit > 0 {
		wake(l.write)
	}
}

// skip counts a message of an unknown kind and gives its credit back.
func (l *Link[Out, In]) skip(cost int) {
	l.skipped++
	l.in.owed += uint64(cost)
	if n := l.in.grant(); n > 0 {
		l.reply(l.side.credit(n))
	}
}

// wake marks that there is something to do; one mark is enough.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
