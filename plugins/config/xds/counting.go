package xds

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// counting reads messages of the server, but for those that have so many resources that reading
// them would take far more memory than they have bytes.
type counting struct {
	encoding.CodecV2
	// most is how many resources count; spare times as many are read, to be told of.
	most int
}

const (
	// spare is how many times as many resources as count may be in an answer.
	spare = 10
	// resourcesField is DiscoveryResponse's. Source: Envoy, service/discovery/v3/discovery.proto.
	resourcesField = 2
)

// Unmarshal refuses a message with too many resources.
func (c counting) Unmarshal(data mem.BufferSlice, v any) error {
	if most := spare * c.most; data.Len() > 2*most { // each has two bytes at least
		if n := count(data.Materialize()); n > most {
			return fmt.Errorf("the answer has %d resources, which is more than %d times limits.resources, %d", n, spare, c.most)
		}
	}
	return c.CodecV2.Unmarshal(data, v)
}

// count counts resources.
func count(b []byte) (n int) {
	for len(b) > 0 {
		field, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return n
		}
		b = b[size:]
		if size = protowire.ConsumeFieldValue(field, kind, b); size < 0 {
			return n
		}
		b = b[size:]
		if field == resourcesField {
			n++
		}
	}
	return n
}
