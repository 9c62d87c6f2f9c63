package xds

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that everything else uses
	"google.golang.org/grpc/mem"
)

// codec is the whole server's: a response goes out as the fragments that it is made of, everything else as protobuf.
type codec struct {
	encoding.CodecV2
}

// newCodec returns the codec. Requests, health and reflection fall back to proto.
func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal implements encoding.CodecV2. The buffers are plain slices: they belong to no pool, so many sends may share them.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if r, ok := v.(*response); ok {
		return r.buffers(), nil
	}
	return c.CodecV2.Marshal(v)
}
