package xds

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

// frame is the header of a frame of HTTP/2.
type frame struct {
	kind   http2.FrameType
	flags  http2.Flags
	stream uint32
	length int
}

// frames follows the frames of HTTP/2 of one direction of a connection, whatever pieces they come
// in.
type frames struct {
	skip    int // bytes of the preface or of a payload that are still to come
	header  []byte
	now     frame
	content int  // of the payload of a frame whose content matters, those that aren't padding
	padded  bool // it begins with the size of the padding, which has not come
	// begins is called with each frame, brings with the content of DATA and WINDOW_UPDATE frames as
	// it comes, ends after a frame has come whole; brings and ends may be nil.
	begins func(frame)
	brings func(frame, []byte)
	ends   func(frame)
}

const frameHeader = 9

// newFrames returns what follows a direction whose first bytes are no frames.
func newFrames(preface int) *frames {
	return &frames{skip: preface, header: make([]byte, 0, frameHeader)}
}

// follow follows what has come.
func (f *frames) follow(b []byte) {
	for len(b) > 0 {
		if n := min(f.skip, len(b)); n > 0 {
			f.payload(b[:n])
			f.skip, b = f.skip-n, b[n:]
			if f.skip == 0 {
				f.over()
			}
			continue
		}
		n := min(frameHeader-len(f.header), len(b))
		f.header, b = append(f.header, b[:n]...), b[n:]
		if len(f.header) < frameHeader {
			break
		}
		f.begin()
	}
}

// begin follows a frame's header.
func (f *frames) begin() {
	h := f.header
	f.now = frame{http2.FrameType(h[3]), http2.Flags(h[4]), binary.BigEndian.Uint32(h[5:]) &^ (1 << 31), int(binary.BigEndian.Uint32(h) >> 8)}
	f.skip, f.header = f.now.length, f.header[:0]
	f.content, f.padded = 0, false
	switch f.now.kind {
	case http2.FrameData:
		f.content, f.padded = f.now.length, f.now.flags.Has(http2.FlagDataPadded) && f.now.length > 0
	case http2.FrameWindowUpdate:
		f.content = f.now.length
	}
	f.begins(f.now)
	if f.skip == 0 {
		f.over()
	}
}

// payload follows some of a frame's payload.
func (f *frames) payload(b []byte) {
	if f.padded {
		f.padded, f.content = false, max(0, f.content-1-int(b[0]))
		b = b[1:]
	}
	if n := min(f.content, len(b)); n > 0 && f.brings != nil {
		f.content -= n
		f.brings(f.now, b[:n])
	}
}

func (f *frames) over() {
	if f.ends != nil {
		f.ends(f.now)
	}
	f.now = frame{}
}

// ended reports whether the frame ends its sender's part of a stream.
func (f frame) ended() bool {
	return f.kind == http2.FrameRSTStream || (f.kind == http2.FrameData || f.kind == http2.FrameHeaders) && f.flags.Has(http2.FlagDataEndStream)
}

// costs are what frames cost that a client sends. Messages cost nothing here: windows bound them,
// and requests are counted as such.
type costs struct {
	cost   int
	opened int // frames that open the window for more
}

const (
	// tiny is what a DATA frame has at least that carries a request or a part of one.
	tiny = 16
	// costly is how many bytes of headers cost as much as a frame.
	costly = 1 << 10
)

func (c *costs) add(f frame) {
	switch {
	case f.kind == http2.FrameWindowUpdate:
		c.opened++
	case f.kind == http2.FrameHeaders || f.kind == http2.FrameContinuation:
		c.cost += 1 + f.length/costly
	case f.kind != http2.FrameData || f.length < tiny:
		c.cost++
	}
}

// drain returns what frames cost since it was called last.
func (c *costs) drain() (cost, opened int) {
	cost, opened = c.cost, c.opened
	*c = costs{}
	return cost, opened
}
