package xds

import (
	"encoding/binary"
	"time"

	"golang.org/x/net/http2"
)

// ahead is what has come of a stream that its window was not opened for again, which happens as it
// is read, and in how many frames.
type ahead struct{ bytes, frames int }

// slack is how much may have been read of a stream before its window is opened again: a quarter.
const slack = streamWindow / 4

// waits returns how many bytes of memory what waits to be read takes.
func (a ahead) waits() int {
	if a.bytes <= slack {
		return 0
	}
	return a.bytes - slack + a.frames*frameCost
}

// backlog is how much waits to be read on a connection.
type backlog struct{ sum, counted int }

// queue notes what is ahead of a stream now.
func (u *unfinished) queue(m *message, now ahead) {
	if !u.closed {
		u.unread.sum += now.waits() - m.ahead.waits()
		m.ahead = now
	}
}

// opens follows the content of a frame of the server's: by how much it opens a window.
func (u *unfinished) opens(f frame, b []byte) {
	if f.kind != http2.FrameWindowUpdate {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.widened = append(u.widened, b...); len(u.widened) < 4 {
		return
	}
	by := int(binary.BigEndian.Uint32(u.widened) &^ (1 << 31))
	u.widened = u.widened[:0]
	if m := u.streams[f.stream]; m != nil {
		next := ahead{bytes: m.ahead.bytes - by}
		if next.bytes > 0 {
			next.frames = m.ahead.frames * next.bytes / m.ahead.bytes
		}
		u.queue(m, next)
	}
}

// waiting returns how many bytes wait to be read, and how many more that are than when it was
// called last.
func (u *unfinished) waiting() (bytes, grown int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	grown = u.unread.sum - u.unread.counted
	u.unread.counted = u.unread.sum
	return u.unread.sum, grown
}

// A connection is not read while more than backlogMost waits to be read of its streams, nor one
// with more than backlogLeast while its peer, or all, have too much of it: what is sent on stays
// with the client. That ends as streams are read, and for a while after some time in any case.
const (
	backlogLeast, backlogMost = slack, 1 << 20
	backlogLook, backlogRest  = 10 * time.Millisecond, time.Second
)

// catchUp waits until less waits to be read. It reports false if the client is gone meanwhile.
func (m *meter) catchUp() bool {
	for began := time.Now(); ; {
		waits := m.countUnread()
		if waits <= backlogLeast {
			return true
		}
		_, err := m.server.unread.Check(m.peer)
		if waits <= backlogMost && err == nil || time.Since(began) > backlogRest {
			return true
		}
		if gone(m.socket) {
			return false
		}
		m.server.metrics.limits.WithLabelValues("maxRequestsPerStream").Inc()
		select {
		case <-time.After(backlogLook):
		case <-m.closed:
			return true
		}
	}
}

// countUnread brings the server's account of what waits to be read up to date.
func (m *meter) countUnread() int {
	waits, grown := m.unfinished.waiting()
	if grown != 0 {
		m.server.unread.Add(m.peer, grown)
	}
	return waits
}
