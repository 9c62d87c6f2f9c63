//go:build !wasip1

package process

import (
	"slices"
	"sync"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // The codec that is fallen back to.
	"google.golang.org/grpc/mem"
)

// frame is an encoded message of the contract; it goes over the wire as it is.
type frame struct{ bytes []byte }

// received are places for frames that arrive. They belong to whoever receives, until it receives
// again.
var received sync.Pool

// sent has the places of large frames that were sent.
var sent places

// places are a mem.BufferPool of large frames. What is sent again is mostly as large as it was:
// sizes have no tiers, which would take up to twice the room.
type places struct{ pool sync.Pool }

// large is from where on a frame's place is used again.
const large = 64 << 10

func (p *places) room(size int) []byte {
	if size < large {
		return make([]byte, 0, size)
	}
	if place, ok := p.pool.Get().(*[]byte); ok && cap(*place) >= size {
		return (*place)[:0]
	}
	return make([]byte, 0, size+size/16)
}

// Get implements mem.BufferPool.
func (p *places) Get(size int) *[]byte {
	b := p.room(size)[:size]
	return &b
}

// Put implements mem.BufferPool.
func (p *places) Put(place *[]byte) { p.pool.Put(place) }

// codec carries frames as they are and everything else, such as go-plugin's own services, as
// protobuf does.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal hands over the frame's bytes without a copy: the carrier owns them.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*frame); ok {
		if len(f.bytes) >= large {
			return mem.BufferSlice{mem.NewBuffer(&f.bytes, &sent)}, nil
		}
		return mem.BufferSlice{mem.SliceBuffer(f.bytes)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal copies the bytes: gRPC frees the buffers after it.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if f, ok := v.(*frame); ok {
		if place, ok := received.Get().(*[]byte); ok {
			f.bytes = *place
		}
		f.bytes = slices.Grow(f.bytes[:0], data.Len())[:data.Len()]
		data.CopyTo(f.bytes)
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}
