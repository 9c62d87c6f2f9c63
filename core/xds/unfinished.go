package xds

import (
	"encoding/binary"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// unfinished counts what has come of a connection's messages that aren't complete. A message's
// window is opened as soon as its length is known: without a bound, those of a connection could
// take its streams times the size of the largest message, and nobody would have heard of them.
type unfinished struct {
	most int // bytes that a message may have: one that is longer is refused

	mu      sync.Mutex
	streams map[uint32]*message
	last    uint32 // stream that began
	widened []byte // by how much a window is opened, as far as that has come
	unread  backlog
	held    int
	counted int // of those held
	closed  bool
}

// message is what has come of a stream's message.
type message struct {
	prefix  []byte // its flag and its length, as far as they have come
	missing int    // bytes, when its length is known
	held    int
	ahead   ahead
}

// Each message begins with a flag and its length; what each frame of it costs besides its bytes, in
// a buffer and a queue.
const messagePrefix, frameCost = 5, 128

func newUnfinished(most int) *unfinished {
	return &unfinished{most: most, streams: map[uint32]*message{}}
}

// begins follows a frame of the client's.
func (u *unfinished) begins(f frame) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch m := u.streams[f.stream]; {
	case f.kind == http2.FrameHeaders && f.stream > u.last:
		u.last = f.stream
		u.streams[f.stream] = &message{prefix: make([]byte, 0, messagePrefix)}
	case f.kind == http2.FrameData && m != nil:
		if m.held > 0 {
			u.add(m, frameCost)
		}
		u.queue(m, ahead{m.ahead.bytes + f.length, m.ahead.frames + 1})
	}
}

// brings follows the content of a frame of the client's.
func (u *unfinished) brings(f frame, b []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	m := u.streams[f.stream]
	if m == nil || f.kind != http2.FrameData {
		return // the stream has ended
	}
	for len(b) > 0 {
		before := len(m.prefix)
		n := m.consume(b)
		u.add(m, n)
		b = b[n:]
		if before < messagePrefix && len(m.prefix) == messagePrefix {
			m.missing = int(binary.BigEndian.Uint32(m.prefix[1:]))
			if m.missing > u.most {
				u.drop(f.stream)
				return
			}
		}
		if len(m.prefix) == messagePrefix && m.missing == 0 {
			u.add(m, -m.held)
			m.prefix = m.prefix[:0]
		}
	}
}

// consume returns how many of these bytes are of what is coming: the message's prefix or the rest.
func (m *message) consume(b []byte) int {
	if part := messagePrefix - len(m.prefix); part > 0 {
		n := min(part, len(b))
		m.prefix = append(m.prefix, b[:n]...)
		return n
	}
	n := min(m.missing, len(b))
	m.missing -= n
	return n
}

// ends follows the end of a frame of either side.
func (u *unfinished) ends(f frame) {
	if f.ended() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.drop(f.stream)
	}
}

func (u *unfinished) add(m *message, bytes int) {
	if !u.closed {
		m.held += bytes
		u.held += bytes
	}
}

func (u *unfinished) drop(stream uint32) {
	if m := u.streams[stream]; m != nil {
		u.add(m, -m.held)
		u.queue(m, ahead{})
		delete(u.streams, stream)
	}
}

// holds returns how many bytes there are.
func (u *unfinished) holds() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.held
}

// growth returns by how many bytes there are more, or fewer, than when it was called last.
func (u *unfinished) growth() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	grown := u.held - u.counted
	u.counted = u.held
	return grown
}

// close lets go of everything.
func (u *unfinished) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed, u.held, u.unread.sum = true, 0, 0
	clear(u.streams)
}

// Where peers have too much, connections that have more than modest go at once, others after a
// while: many that come at once may be through by then.
const (
	modest  = 1 << 20
	respite = time.Second
)

// room returns when there is room for what the connection's messages have grown by. Of the
// connections that there are, those that have most are closed for it.
func (m *meter) room() {
	for until := time.Now().Add(respite); ; {
		all, err := m.server.unfinished.Check(m.peer)
		if err == nil {
			return
		}
		heaviest := m.server.conns.heaviest(m.peer, all)
		switch {
		case heaviest == nil:
			return
		case heaviest.unfinished.holds() <= modest && time.Now().Before(until):
			select {
			case <-time.After(respite / 50):
			case <-m.closed:
				return
			}
		default:
			m.server.metrics.limited(err)
			m.server.lines.log(m.server.config.Log, slog.LevelWarn, "connection closed", "remote", heaviest.RemoteAddr().String(), "reason", err)
			_ = heaviest.Close()
		}
	}
}

// heaviest returns the connection that has most of messages that aren't complete, of a peer or of
// all; nil if none has any.
func (c *conns) heaviest(peer string, all bool) (heaviest *meter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := 0
	for _, n := range c.all {
		if n.meter == nil || !all && n.peer != peer {
			continue
		}
		if held := n.meter.unfinished.holds(); held > most {
			heaviest, most = n.meter, held
		}
	}
	return heaviest
}
