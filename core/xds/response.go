package xds

import (
	"slices"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/view"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of envoy.service.discovery.v3.DiscoveryResponse and DeltaDiscoveryResponse; those
// not listed apart are the same.
const (
	fieldVersion          protowire.Number = 1 // version_info, system_version_info
	fieldTypeURL          protowire.Number = 4
	fieldNonce            protowire.Number = 5
	fieldControlPlane     protowire.Number = 6 // DiscoveryResponse
	fieldRemoved          protowire.Number = 6 // DeltaDiscoveryResponse
	fieldDeltaControl     protowire.Number = 7 // DeltaDiscoveryResponse
	fieldControlPlaneName protowire.Number = 1 // envoy.config.core.v3.ControlPlane.identifier
)

// response is a discovery response before it is bytes.
type response struct {
	delta     bool
	typeURL   string
	version   string
	nonce     string
	resources []*view.Body
	removed   []string // delta only
	// fragments are the resources' encoded forms, where a list of them exists already and may be
	// shared.
	fragments  mem.BufferSlice
	identifier string
	number     uint64 // of the revision
	bytes      int    // of the resources, once it is to be sent
	// written is called, by any goroutine and without blocking, when gRPC has written all of it or
	// dropped it; optional.
	written departure
}

// departure is called when the last buffer of a response is given back. gRPC does that when it is
// written: SendMsg returns when it is queued.
type departure func()

// departing is the pool of a response's last buffer: who gives it back has given back all others.
type departing struct {
	departure
	list *mem.BufferSlice
}

// Get implements mem.BufferPool.
func (departing) Get(length int) *[]byte {
	b := make([]byte, length)
	return &b
}

// Put implements mem.BufferPool.
func (d departing) Put(*[]byte) {
	clear(*d.list)
	bufferLists.Put(d.list)
	d.departure()
}

// bufferLists are lists of buffers that were written: each response needs one of its own, as long
// as the resources are many.
var bufferLists = sync.Pool{New: func() any { return new(mem.BufferSlice) }}

// buffers returns the message: the resources' fragments, as they are, and the tail.
func (r *response) buffers() mem.BufferSlice {
	f := r.fragments
	if f == nil {
		f = fragments(r.resources, r.delta)
	}
	if r.written == nil {
		return append(slices.Clip(f), mem.SliceBuffer(r.tail(nil)))
	}
	const pooled = 1<<10 + 1 // gRPC gives no smaller ones back
	tail := r.tail(make([]byte, 0, pooled))
	list := bufferLists.Get().(*mem.BufferSlice)
	*list = append(append((*list)[:0], f...), mem.NewBuffer(&tail, departing{r.written, list}))
	return *list
}

// fragments returns the encoded forms of bodies as buffers.
func fragments(bodies []*view.Body, delta bool) mem.BufferSlice {
	out := make(mem.BufferSlice, 0, len(bodies))
	for _, b := range bodies {
		first, rest := b.Encoded(delta)
		out = append(out, mem.SliceBuffer(first))
		for _, run := range rest {
			out = append(out, mem.SliceBuffer(run))
		}
	}
	return out
}

// block is how large joined fragments get. What is larger stays alone.
const block = 64 << 10

// joined returns the same bytes in fewer buffers: what many streams are sent is copied once, for
// each of them pays for each buffer.
func joined(f mem.BufferSlice) mem.BufferSlice {
	var out mem.BufferSlice
	for first := 0; first < len(f); {
		end, size := first+1, f[first].Len()
		for end < len(f) && size+f[end].Len() <= block {
			size += f[end].Len()
			end++
		}
		if end == first+1 {
			out = append(out, f[first])
		} else {
			out = append(out, mem.SliceBuffer(f[first:end].Materialize()))
		}
		first = end
	}
	return out
}

// size returns the number of bytes of the resources.
func (r *response) size() int {
	if r.fragments != nil {
		return r.fragments.Len()
	}
	n := 0
	for _, b := range r.resources {
		n += b.Size(r.delta)
	}
	return n
}

// tail appends what is this stream's own.
func (r *response) tail(b []byte) []byte {
	b = appendText(b, fieldVersion, r.version)
	b = appendText(b, fieldTypeURL, r.typeURL)
	b = appendText(b, fieldNonce, r.nonce)
	control := fieldControlPlane
	if r.delta {
		control = fieldDeltaControl
		for _, name := range r.removed {
			b = protowire.AppendTag(b, fieldRemoved, protowire.BytesType)
			b = protowire.AppendString(b, name)
		}
	}
	if r.identifier != "" {
		b = protowire.AppendTag(b, control, protowire.BytesType)
		b = protowire.AppendBytes(b, appendText(nil, fieldControlPlaneName, r.identifier))
	}
	return b
}

func appendText(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}
