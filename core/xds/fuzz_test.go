package xds

import (
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// FuzzRequests plays whatever a client may send in either protocol: requests, each behind its
// length. Both readers of them must agree, the machine must take what they read, and whatever that
// was, a client that takes what comes has what it asked for at last (see listener).
func FuzzRequests(f *testing.F) {
	sotw := func(rs ...*discovery.DiscoveryRequest) (stream []byte) {
		for _, r := range rs {
			b, _ := proto.Marshal(r)
			stream = protowire.AppendBytes(stream, b)
		}
		return stream
	}
	delta := func(rs ...*discovery.DeltaDiscoveryRequest) (stream []byte) {
		for _, r := range rs {
			b, _ := proto.Marshal(r)
			stream = protowire.AppendBytes(stream, b)
		}
		return stream
	}
	no := &rpc.Status{Message: "no"}
	f.Add(false,
		sotw(&discovery.DiscoveryRequest{TypeUrl: "cds"}, &discovery.DiscoveryRequest{TypeUrl: "cds", ResponseNonce: "n1", VersionInfo: "1", ErrorDetail: no}))
	f.Add(false, sotw(
		&discovery.DiscoveryRequest{TypeUrl: "eds", ResourceNames: []string{"a", "b"}},
		&discovery.DiscoveryRequest{TypeUrl: "eds", ResourceNames: []string{"b"}, ResponseNonce: "n1"},
		&discovery.DiscoveryRequest{TypeUrl: "eds", ResourceNames: []string{"b", "a"}, ResponseNonce: "stale"},
		&discovery.DiscoveryRequest{TypeUrl: "eds", ResourceNames: []string{"a"}}))
	f.Add(false, sotw(&discovery.DiscoveryRequest{TypeUrl: "sds", ResourceNames: []string{"a"}},
		&discovery.DiscoveryRequest{TypeUrl: "nds", ResourceNames: []string{"*"}}))
	f.Add(true, delta(&discovery.DeltaDiscoveryRequest{TypeUrl: "eds", ResourceNamesSubscribe: []string{"*", "a"}, ResourceNamesUnsubscribe: []string{"a"}}))
	f.Add(true, delta(
		&discovery.DeltaDiscoveryRequest{
			TypeUrl: "rds", ResourceNamesSubscribe: []string{"a", "nobody"},
			InitialResourceVersions: map[string]string{"a": "old", "gone": "1"},
		},
		&discovery.DeltaDiscoveryRequest{TypeUrl: "rds", ResponseNonce: "n1", ErrorDetail: no},
		&discovery.DeltaDiscoveryRequest{TypeUrl: "rds", ResourceNamesUnsubscribe: []string{"a"}},
		&discovery.DeltaDiscoveryRequest{TypeUrl: "rds", ResourceNamesSubscribe: []string{"a"}}))
	f.Add(true,
		delta(&discovery.DeltaDiscoveryRequest{TypeUrl: "lds"}, &discovery.DeltaDiscoveryRequest{TypeUrl: "lds", ResourceNamesUnsubscribe: []string{"*"}}))
	f.Fuzz(func(t *testing.T, isDelta bool, stream []byte) {
		l := newListener(t, isDelta)
		reader := newCodec()
		for requests := 0; len(stream) > 0 && requests < 20; requests++ {
			b, n := protowire.ConsumeBytes(stream)
			if n < 0 {
				b, n = stream, len(stream)
			}
			stream = stream[n:]
			if isDelta {
				if r, ok := readBoth(t, reader, b, &discovery.DeltaDiscoveryRequest{}, &discovery.DeltaDiscoveryRequest{}); ok {
					l.delta(r)
				}
			} else if r, ok := readBoth(t, reader, b, &discovery.DiscoveryRequest{}, &discovery.DiscoveryRequest{}); ok {
				l.sotw(r)
			}
		}
		l.settle()
		l.source.change(func(resources map[string]map[string]string) {
			for typeURL, all := range resources {
				for n := range all {
					all[n] += "'"
				}
				resources[typeURL]["new"] = "1"
			}
		})
		l.serve()
		l.settle()
		l.check()
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
