package xds

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

// frames counts what the frames of HTTP/2 cost that come on a connection, whatever pieces they are read in. Messages cost nothing here: windows bound
// them, and requests are counted as such.
type frames struct {
	skip   int // bytes of the preface or of a payload that are still to come
	header []byte
}

const (
	frameHeader = 9
	// tiny is what a DATA frame has at least that carries a request or a part of one.
	tiny = 16
	// costly is how many bytes of headers cost as much as a frame.
	costly = 1 << 10
)

func newFrames() *frames {
	return &frames{skip: len(http2.ClientPreface), header: make([]byte, 0, frameHeader)}
}

// take follows what was read. It returns the cost, and how many frames there are that open the window for more.
func (f *frames) take(b []byte) (cost, opened int) {
	for len(b) > 0 {
		if n := min(f.skip, len(b)); n > 0 {
			f.skip, b = f.skip-n, b[n:]
			continue
		}
		n := min(frameHeader-len(f.header), len(b))
		f.header, b = append(f.header, b[:n]...), b[n:]
		if len(f.header) < frameHeader {
			break
		}
		length := int(binary.BigEndian.Uint32(f.header) >> 8)
		switch kind := http2.FrameType(f.header[3]); {
		case kind == http2.FrameWindowUpdate:
			opened++
		case kind == http2.FrameHeaders || kind == http2.FrameContinuation:
			cost += 1 + length/costly
		case kind != http2.FrameData || length < tiny:
			cost++
		}
		f.skip, f.header = length, f.header[:0]
	}
	return cost, opened
}
