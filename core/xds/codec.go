package xds

import (
	"slices"
	"sync"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that everything else uses
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// codec is the whole server's: a response goes out as the fragments that it is made of, everything
// else as protobuf.
type codec struct {
	encoding.CodecV2
	lists   *lists
	scratch *sync.Pool // of *[]byte: where long requests are put together
}

// newCodec returns the codec. Requests, health and reflection fall back to proto.
func newCodec() codec {
	return codec{encoding.GetCodecV2("proto"), newLists(), &sync.Pool{New: func() any { return new([]byte) }}}
}

// Marshal implements encoding.CodecV2. The buffers are plain slices: they belong to no pool, so
// many sends may share them.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	switch r := v.(type) {
	case *response:
		return r.buffers(), nil
	case *payload:
		return mem.BufferSlice{mem.SliceBuffer(r.bytes)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2. The names of a request may be shared with other requests:
// read only.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	var names *[]string
	switch r := v.(type) {
	case *payload:
		r.bytes = data.Materialize()
		return nil
	case *discovery.DiscoveryRequest:
		names = &r.ResourceNames
	case *discovery.DeltaDiscoveryRequest:
		names = &r.ResourceNamesSubscribe
	}
	size := data.Len()
	if names == nil || size < longList {
		return c.CodecV2.Unmarshal(data, v)
	}
	buffer := c.scratch.Get().(*[]byte)
	defer c.scratch.Put(buffer)
	*buffer = slices.Grow((*buffer)[:0], size)[:size]
	data.CopyTo(*buffer)
	rest, list, ok := c.lists.cut(*buffer)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if err := proto.Unmarshal(rest, v.(proto.Message)); err != nil {
		return err
	}
	*names = list
	return nil
}
