package zookeeper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// wire is a connection to ZooKeeper that hands on answers alone which are whole and of the form
// that their request asks for: the client library takes lengths and counts in them at their word.
type wire struct {
	net.Conn
	most int
	// frame is what is left to be handed on of the last answer, with its length.
	frame []byte
	begun bool // reading, after the answer to the first request

	mu      sync.Mutex
	greeted bool            // the first request was written
	asked   map[int32]int32 // what was asked, by the request's number
}

func newWire(c net.Conn, most int) *wire { return &wire{Conn: c, most: most, asked: map[int32]int32{}} }

// What is asked for.
// Source: ZooKeeper, ZooDefs.OpCode.
const (
	opExists    = 3
	opGetData   = 4
	opChildren2 = 12
)

// errAnswer is of answers that are none.
var errAnswer = errors.New("an answer has not the form that it must have: is it ZooKeeper that answers?")

// Write notes what is asked; the library writes a request at once.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	if w.greeted && len(p) >= 12 {
		w.asked[int32(binary.BigEndian.Uint32(p[4:]))] = int32(binary.BigEndian.Uint32(p[8:]))
	}
	w.greeted = true
	w.mu.Unlock()
	return w.Conn.Write(p)
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
	least, most := int64(16), int64(w.most)
	if !w.begun {
		least, most = 36, 1024
	}
	if n > most && n < 1<<30 && w.begun {
		return fmt.Errorf("an answer has %d bytes, which is more than limits.answerBytes, %d", n, w.most)
	}
	if n < least || n > most {
		return errAnswer
	}
	frame := make([]byte, 4+n)
	copy(frame, head[:])
	if _, err := io.ReadFull(w.Conn, frame[4:]); err == io.EOF {
		return io.ErrUnexpectedEOF // after the length
	} else if err != nil {
		return err
	}
	if w.begun && !w.fits(frame[4:]) || !w.begun && !greets(frame[4:]) {
		return errAnswer
	}
	w.frame, w.begun = frame, true
	return nil
}

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
func (w *wire) fits(b []byte) bool {
	r := rest(b)
	number, _ := r.number()
	r = r[8:] // the transaction
	code, _ := r.number()
	w.mu.Lock()
	op := w.asked[number]
	delete(w.asked, number)
	w.mu.Unlock()
	switch {
	case number == -1: // an event
		return r.skip(8) && r.text()
	case number < 0 || code != 0:
		return true
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
		return r.skip(statBytes)
	}
	return true
}
