package wasm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// queued is how many frames of a module wait for the reader before the module does.
const queued = 16

// errStopped unwinds a module that the runner has given up.
var errStopped = errors.New("stopped by its runner")

// stdio is an instance's standard input and output, and the session.Carrier that ends there.
type stdio struct {
	out     chan []byte   // frames that were written
	arrived chan struct{} // input, or the end of it
	taken   chan struct{} // the input was read
	hungUp  chan struct{} // Close was called
	ended   chan struct{} // the module has ended
	halted  chan struct{} // stop was called
	close   sync.Once
	halt    sync.Once
	// read is told the last frame that the module has read whole, on the module's goroutine.
	read func(frame []byte)

	// Of the module's goroutine alone.
	head [4]byte
	have int
	body []byte

	mu       sync.Mutex
	in       []byte // what is left of the frame that is being read
	frame    []byte // that frame
	nonblock bool
	stopped  bool
	waiting  bool
	active   time.Time // when it last waited, read or wrote
	err      error     // why it ended
}

func newStdio(read func([]byte)) *stdio {
	return &stdio{
		out: make(chan []byte, queued), arrived: make(chan struct{}, 1), taken: make(chan struct{}, 1),
		hungUp: make(chan struct{}), halted: make(chan struct{}), ended: make(chan struct{}), read: read, active: time.Now(),
	}
}

// The runner's side.

var _ session.Carrier = (*stdio)(nil)

// Send gives the module a frame; it waits until the one before was read.
func (s *stdio) Send(frame []byte) error {
	for {
		s.mu.Lock()
		if len(s.in) == 0 {
			s.in = append(binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(frame)), uint32(len(frame))), frame...)
			s.frame = frame
			s.mu.Unlock()
			notify(s.arrived)
			return nil
		}
		s.mu.Unlock()
		select {
		case <-s.taken:
		case <-s.hungUp:
			return io.ErrClosedPipe
		case <-s.ended:
			return s.cause()
		}
	}
}

// Recv returns the next frame that the module wrote. What it wrote before its end comes before the
// reason of the end.
func (s *stdio) Recv() ([]byte, error) {
	select {
	case frame := <-s.out:
		return frame, nil
	case <-s.hungUp:
		return nil, io.EOF
	case <-s.ended:
	}
	select {
	case frame := <-s.out:
		return frame, nil
	default:
		return nil, s.cause()
	}
}

// Close ends the module's input.
func (s *stdio) Close() error {
	s.close.Do(func() { close(s.hungUp) })
	notify(s.arrived)
	return nil
}

// stop makes the module end as soon as it calls its host.
func (s *stdio) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.halt.Do(func() { close(s.halted) })
	_ = s.Close()
}

// end says why the module has ended.
func (s *stdio) end(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	if cut := s.half(); s.err == nil && cut != nil {
		s.err = cut
	}
	s.mu.Unlock()
	close(s.ended)
}

func (s *stdio) half() error {
	switch {
	case s.have == 4:
		return fmt.Errorf("it ended in the middle of a frame, with %d of %d bytes written", len(s.body), cap(s.body))
	case s.have > 0:
		return fmt.Errorf("it ended in the middle of a frame's length")
	}
	return nil
}

// cause returns why the module ended; io.EOF if it did so in good order.
func (s *stdio) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return io.EOF
	}
	return s.err
}

// busy returns how long the module has neither waited nor read nor written.
func (s *stdio) busy(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting {
		return 0
	}
	return now.Sub(s.active)
}

// The module's side.

// Read is the module's standard input.
func (s *stdio) Read(p []byte) (int, error) {
	for {
		n, err := s.consume(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		if s.over() {
			return 0, io.EOF
		}
		s.wait(true, nil)
	}
}

func (s *stdio) consume(p []byte) (int, error) {
	s.mu.Lock()
	n := copy(p, s.in)
	whole := n > 0 && n == len(s.in)
	frame, nonblock, stopped := s.frame, s.nonblock, s.stopped
	s.in = s.in[n:]
	if whole {
		s.in, s.frame = nil, nil
	}
	s.active = time.Now()
	s.mu.Unlock()
	switch {
	case stopped:
		panic(errStopped)
	case whole:
		s.read(frame)
		notify(s.taken)
	case n == 0 && nonblock && !s.over():
		return 0, syscall.EAGAIN
	}
	return n, nil
}

// over reports whether there will be no more input.
func (s *stdio) over() bool {
	select {
	case <-s.hungUp:
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.in) == 0
	default:
		return false
	}
}

// ready reports whether reading would not wait.
func (s *stdio) ready() bool {
	s.mu.Lock()
	some := len(s.in) > 0
	s.mu.Unlock()
	return some || s.over()
}

// wait waits for input, if that is asked for, or the alarm.
func (s *stdio) wait(input bool, alarm <-chan time.Time) {
	arrived, hungUp := s.arrived, s.hungUp
	if !input {
		arrived, hungUp = nil, nil
	}
	s.rest(true)
	select {
	case <-arrived:
	case <-hungUp:
	case <-alarm:
	case <-s.halted:
	}
	s.rest(false)
}

// rest notes that the module begins or ends to wait. One that was stopped ends here.
func (s *stdio) rest(waiting bool) {
	s.mu.Lock()
	s.waiting, s.active = waiting, time.Now()
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		panic(errStopped)
	}
}

// Write is the module's standard output.
func (s *stdio) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if s.have < 4 {
			k := copy(s.head[s.have:], p)
			s.have, p = s.have+k, p[k:]
			if s.have == 4 {
				s.begin(p)
			}
			continue
		}
		k := min(len(p), cap(s.body)-len(s.body))
		s.body, p = append(s.body, p[:k]...), p[k:]
		s.flush()
	}
	return n, nil
}

// begin begins a frame; more is what follows its length.
func (s *stdio) begin(more []byte) {
	size := binary.LittleEndian.Uint32(s.head[:])
	if size > session.MaxMessage {
		s.breach(unframed(size, append(s.head[:], more[:min(len(more), 60)]...)))
	}
	s.body = make([]byte, 0, size)
	s.flush()
}

// flush hands over a frame that is complete.
func (s *stdio) flush() {
	if len(s.body) < cap(s.body) {
		return
	}
	frame := s.body
	s.have, s.body = 0, nil
	s.rest(true)
	select {
	case s.out <- frame:
	case <-s.hungUp:
	}
	s.rest(false)
}

// breach ends a module that does not keep to frames.
func (s *stdio) breach(err error) {
	s.have = 0
	s.mu.Lock()
	s.err, s.stopped = err, true
	s.mu.Unlock()
	panic(errStopped)
}

// unframed says what is wrong with a length.
func unframed(size uint32, start []byte) error {
	for _, b := range start {
		if (b < ' ' || b > '~') && b != '\n' && b != '\t' && b != '\r' {
			return fmt.Errorf("it wrote a frame of %d bytes to standard output; a frame has at most %d", size, session.MaxMessage)
		}
	}
	return fmt.Errorf("it wrote text to standard output (%q), where only messages go, each after its length in 4 bytes; text goes to standard error", start)
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
