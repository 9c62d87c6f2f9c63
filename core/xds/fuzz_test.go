package xds

import (
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// FuzzRequests plays whatever a client may send in either protocol: requests, each behind its length. Both readers of them must agree, and the
// machine must take what they read.
func FuzzRequests(f *testing.F) {
	first, _ := proto.Marshal(&discovery.DiscoveryRequest{TypeUrl: "cds", ResourceNames: []string{"a", "b"}, ResponseNonce: "n1", VersionInfo: "1"})
	delta, _ := proto.Marshal(&discovery.DeltaDiscoveryRequest{TypeUrl: "eds", ResourceNamesSubscribe: []string{"*", "a"}, ResourceNamesUnsubscribe: []string{"a"}})
	f.Add(false, protowire.AppendBytes(protowire.AppendBytes(nil, first), first))
	f.Add(true, protowire.AppendBytes(protowire.AppendBytes(nil, delta), delta))
	f.Fuzz(func(t *testing.T, isDelta bool, stream []byte) {
		c := newConversation(t, time.Second)
		c.machine.delta = isDelta
		reader := newCodec()
		for requests := 0; len(stream) > 0 && requests < 20; requests++ {
			b, n := protowire.ConsumeBytes(stream)
			if n < 0 {
				b, n = stream, len(stream)
			}
			stream = stream[n:]
			if isDelta {
				if r, ok := readBoth(t, reader, b, &discovery.DeltaDiscoveryRequest{}, &discovery.DeltaDiscoveryRequest{}); ok {
					c.machine.deltaRequest(r)
				}
			} else if r, ok := readBoth(t, reader, b, &discovery.DiscoveryRequest{}, &discovery.DiscoveryRequest{}); ok {
				c.machine.sotw(r)
			}
		}
	})
}

// readBoth reads a request with our codec and with protobuf; false for what is no message.
func readBoth[M proto.Message](t *testing.T, c codec, b []byte, ours, theirs M) (M, bool) {
	t.Helper()
	err, want := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, ours), proto.Unmarshal(b, theirs)
	if (err == nil) != (want == nil) || err == nil && !proto.Equal(ours, theirs) {
		t.Fatalf("%v (%v), protobuf reads %v (%v)", ours, err, theirs, want)
	}
	return ours, err == nil
}
