package mux

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"

	"golang.org/x/net/http2"
)

// again returns the connection as if nothing had been read of it; without acknowledgement of the
// settings that were sent, if the server mustn't hear it.
func (o *opening) again(quietly bool) net.Conn {
	r := &again{Conn: o.conn, in: io.MultiReader(bytes.NewReader(o.begun.Bytes()), o.conn)}
	if quietly {
		r.in = &quiet{in: bufio.NewReader(r.in), left: len(http2.ClientPreface)}
	}
	return r
}

// again is a connection that is read from its beginning.
type again struct {
	net.Conn
	in io.Reader
}

// Read implements net.Conn.
func (a *again) Read(b []byte) (int, error) { return a.in.Read(b) }

// SyscallConn implements syscall.Conn: the server may want to know more of the socket.
func (a *again) SyscallConn() (syscall.RawConn, error) {
	if s, ok := a.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// SetLinger does as that of net.TCPConn.
func (a *again) SetLinger(seconds int) error {
	if s, ok := a.Conn.(interface{ SetLinger(seconds int) error }); ok {
		return s.SetLinger(seconds)
	}
	return errors.ErrUnsupported
}

// quiet leaves out the first acknowledgement of settings. net/http takes no more of them than it
// has sent settings, and it has not sent those that the connection began with.
type quiet struct {
	in   *bufio.Reader
	left int // bytes of the preface, or of a frame, that are still to come
	done bool
}

const frameHeader = 9 // bytes; RFC 9113, section 4.1

// acknowledgement is how a frame begins that acknowledges settings: its length, type and flags.
var acknowledgement = []byte{0, 0, 0, byte(http2.FrameSettings), byte(http2.FlagSettingsAck)}

// Read implements io.Reader.
func (q *quiet) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for q.left == 0 && !q.done {
		h, err := q.in.Peek(frameHeader)
		switch {
		case err != nil && len(h) == 0:
			return 0, err
		case err != nil:
			q.left = len(h) // the last that comes
		case bytes.HasPrefix(h, acknowledgement):
			_, _ = q.in.Discard(frameHeader)
			q.done = true
		default:
			q.left = frameHeader + int(binary.BigEndian.Uint32(h)>>8)
		}
	}
	if q.done {
		return q.in.Read(b)
	}
	n, err := q.in.Read(b[:min(len(b), q.left)])
	q.left -= n
	return n, err
}
