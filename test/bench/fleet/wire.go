package fleet

import (
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// rawCodec hands over messages as they are: a []byte to send, a *frame to receive into.
type rawCodec struct{}

type frame struct{ mem.Buffer }

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("fleet: can't send %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("fleet: can't receive into %T", v)
	}
	f.Buffer = data.MaterializeToBuffer(mem.DefaultBufferPool())
	return nil
}

// dig calls fn with each field that a path of field numbers leads to, in a message; all but the
// last are messages.
func dig(b []byte, fn func([]byte), path ...protowire.Number) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			return
		}
		if num == path[0] && typ == protowire.BytesType {
			if v, _ := protowire.ConsumeBytes(b); len(path) == 1 {
				fn(v)
			} else {
				dig(v, fn, path[1:]...)
			}
		}
		b = b[n:]
	}
}

// text returns the first field that a path leads to.
func text(b []byte, path ...protowire.Number) (s string) {
	found := false
	dig(b, func(v []byte) {
		if !found {
			s, found = string(v), true
		}
	}, path...)
	return s
}

func appendText(b []byte, num protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), v)
}

// Field numbers of envoy.service.discovery.v3.DiscoveryResponse and of google.protobuf.Any.
const (
	responseVersion   = 1
	responseResources = 2
	responseType      = 4
	responseNonce     = 5
	anyValue          = 2
)

// named returns the names that the resources of a response lead to: load assignments of clusters,
// routes of listeners.
func named(child string, response []byte) map[string]bool {
	names := map[string]bool{}
	add := func(v []byte) { names[string(v)] = true }
	switch child {
	case endpoints:
		dig(response, func(cluster []byte) {
			const name, edsConfig, serviceName = 1, 3, 2
			eds := false
			dig(cluster, func([]byte) { eds = true }, edsConfig)
			if !eds {
				return
			}
			if s := text(cluster, edsConfig, serviceName); s != "" {
				names[s] = true
			} else {
				names[text(cluster, name)] = true
			}
		}, responseResources, anyValue)
	case routes:
		// Of listeners: filter chains (or the default one), filters, typed_config, its value; of a
		// connection manager: rds, its name.
		for _, chain := range []protowire.Number{3, 25} {
			dig(response, add, responseResources, anyValue, chain, 3, 4, anyValue, 3, 2)
		}
	}
	return names
}
