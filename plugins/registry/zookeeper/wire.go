package zookeeper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
)

// wire is a connection to ZooKeeper that hands on answers alone which are whole and of the form
// that their request asks for: the client library takes lengths and counts in them at their word.
// It hands on no transactions' numbers, and no request to set watches again: the library reads the
// last number for that request while it writes it, in two goroutines without a lock, and a session
// has one connection, to which its watches belong.
type wire struct {
	net.Conn
	most int
	// large waits until there is room for a large list.
	large func() error
	// frame is what is left to be handed on of the last answer, with its length.
	frame []byte
	begun bool // reading, after the answer to the first request

	mu      sync.Mutex
	greeted bool            // the first request was written
	asked   map[int32]int32 // what was asked, by the request's number
}

func newWire(c net.Conn, most int) *wire {
	return &wire{Conn: c, most: most, large: func() error { return nil }, asked: map[int32]int32{}}
}

// What is asked for.
// Source: ZooKeeper, ZooDefs.OpCode.
const (
	opExists     = 3
	opGetData    = 4
	opChildren2  = 12
	opSetWatches = 101
)

// errAnswer is of answers that are none.
var errAnswer = errors.New("an answer has not the form that it must have: is it ZooKeeper that answers?")

// Write notes what is asked; the library writes a request at once.
func (w *wire) Write(p []byte) (int, error) {
	if w.asks(p) == opSetWatches {
		return len(p), nil
	}
	return w.Conn.Write(p)
}

// asks notes what a request asks for, and returns it; 0: it is the first.
func (w *wire) asks(p []byte) (op int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.greeted && len(p) >= 12 {
		if op = int32(binary.BigEndian.Uint32(p[8:])); op != opSetWatches {
			w.asked[int32(binary.BigEndian.Uint32(p[4:]))] = op
		}
	}
	w.greeted = true
	return op
}

func (w *wire) Read(p []byte) (int, error) {
	if len(w.frame) == 0 {
		if err := w.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, w.frame)
	w.frame = w.frame[n:]
	return n, nil
}

// next reads an answer.
func (w *wire) next() error {
	var head [4]byte
	if _, err := io.ReadFull(w.Conn, head[:]); err != nil {
		return err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if !w.begun {
		return w.greeting(head[:], n)
	}
	if n < headBytes || n >= 1<<30 {
		return errAnswer
	}
	frame := make([]byte, 4+headBytes, 4+min(n, headBytes+mostValue))
	copy(frame, head[:])
	if err := w.full(frame[4:]); err != nil {
		return err
	}
	number := int32(binary.BigEndian.Uint32(frame[4:]))
	clear(frame[8:16]) // the transaction's number
	if op, asked := w.answered(number); n > w.bound(number, op) {
		if !asked {
			return fmt.Errorf("an answer to nothing has %d bytes, which is more than limits.answerBytes, %d", n, w.most)
		}
		return w.passOver(frame, n)
	} else if !asked && number >= 0 {
		return errAnswer // before it was asked: nobody knows which form it must have
	} else if frame, err := w.rest(frame, n); err != nil {
		return err
	} else if !fits(frame[4:], op) {
		return errAnswer
	} else {
		w.frame = frame
	}
	if len(w.frame) > 4+mostValue {
		return w.large()
	}
	return nil
}

// greeting reads the answer to the first request, of n bytes.
func (w *wire) greeting(head []byte, n int64) error {
	const least, most = 36, 1024
	if n < least || n > most {
		return errAnswer
	}
	frame, err := w.rest(slices.Clone(head), n)
	if err == nil && !greets(frame[4:]) {
		err = errAnswer
	}
	if err == nil {
		w.frame, w.begun = frame, true
	}
	return err
}

// rest reads what is lacking of an answer of n bytes.
func (w *wire) rest(frame []byte, n int64) ([]byte, error) {
	had := len(frame)
	frame = append(frame, make([]byte, 4+int(n)-had)...)
	return frame, w.full(frame[had:])
}

// full reads as much as there is room for.
func (w *wire) full(p []byte) error {
	if _, err := io.ReadFull(w.Conn, p); err == io.EOF {
		return io.ErrUnexpectedEOF // after the length
	} else if err != nil {
		return err
	}
	return nil
}

// headBytes has each answer: its request's number, a transaction, a code. mostValue are the most
// that a node's value may have, with what is around it: four times ZooKeeper's own limit. mostEvent
// is the same of an event.
const headBytes, mostValue, mostEvent = 16, 4 << 20, 64 << 10

// bound is how many bytes an answer may have.
func (w *wire) bound(number, op int32) int64 {
	switch {
	case number == -1:
		return int64(min(w.most, mostEvent))
	case op == opChildren2:
		return int64(w.most)
	}
	return int64(min(w.most, mostValue))
}

// answered returns what was asked by a request's number, which is asked no more.
func (w *wire) answered(number int32) (op int32, asked bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	op, asked = w.asked[number]
	delete(w.asked, number)
	return op, asked
}

// passOver puts an error of its request in the place of an answer that is too large: it fails
// alone.
func (w *wire) passOver(frame []byte, n int64) error {
	if _, err := io.CopyN(io.Discard, w.Conn, n-headBytes); err == io.EOF {
		return io.ErrUnexpectedEOF // within the answer
	} else if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(frame, headBytes)
	binary.BigEndian.PutUint32(frame[4+12:], uint32(0xffffffff+1-tooLarge))
	w.frame = frame
	return nil
}

// tooLarge is the code, but for its sign, of an answer that is too large. ZooKeeper has none like
// it.
const tooLarge = 9001

// greets reports whether the first answer is a session that can be lived in: the library divides by
// its timeout. Source: ZooKeeper, ConnectResponse: protocol version, timeout in milliseconds,
// session, password.
func greets(b []byte) bool {
	const least, most = 500, 3600_000
	r := rest(b)[4:]
	timeout, _ := r.number()
	session := binary.BigEndian.Uint64(r)
	return r.skip(8) && r.text() && (session == 0 || timeout >= least && timeout <= most)
}

// fits reports whether an answer has the form that its request asks for.
func fits(b []byte, op int32) bool {
	r := rest(b)
	number, _ := r.number()
	r = r[8:] // the transaction
	code, _ := r.number()
	switch {
	case number == -1: // an event
		return r.skip(8) && r.text()
	case number < 0 || code != 0:
		return len(b) <= mostValue
	}
	return r.answers(op)
}

// rest is what is left of an answer.
type rest []byte

func (r *rest) number() (int32, bool) {
	if len(*r) < 4 {
		return 0, false
	}
	n := int32(binary.BigEndian.Uint32(*r))
	*r = (*r)[4:]
	return n, true
}

func (r *rest) skip(n int) bool {
	if n > len(*r) {
		return false
	}
	*r = (*r)[n:]
	return true
}

// text skips what has its length before it; -1: it is absent.
func (r *rest) text() bool {
	n, ok := r.number()
	return ok && n >= -1 && r.skip(int(max(n, 0)))
}

const statBytes = 68

func (r *rest) answers(op int32) bool {
	switch op {
	case opExists:
		return r.skip(statBytes)
	case opGetData:
		return r.text() && r.skip(statBytes)
	case opChildren2:
		count, ok := r.number()
		if !ok || count < -1 || int(count) > len(*r)/4 {
			return false
		}
		for range count {
			if !r.text() {
				return false
			}
		}
		return r.skip(statBytes) && len(*r) == 0
	}
	return true
}
