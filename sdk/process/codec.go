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

// received are places for frames that arrive. They belong to whoever receives, until it receives again.
var received sync.Pool

// codec carries frames as they are and everything else, such as go-plugin's own services, as protobuf does.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal hands over the frame's bytes without a copy: the carrier owns them.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*frame); ok {
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
