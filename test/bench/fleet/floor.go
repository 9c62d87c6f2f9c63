package fleet

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protowire"
)

// Floor is the least that a server over TLS can do: it writes responses that were encoded before,
// and reads requests to drop them.
type Floor struct {
	// resources by type, each as the field of a response.
	resources map[string][][]byte
	// whole responses by type.
	whole   map[string][]byte
	mu      sync.Mutex
	streams map[chan []byte]bool
}

// NewFloor reads what it serves: a directory with a response in each of cds.pb, eds.pb, lds.pb and
// rds.pb.
func NewFloor(dir string) (*Floor, error) {
	f := &Floor{resources: map[string][][]byte{}, whole: map[string][]byte{}, streams: map[chan []byte]bool{}}
	for i, short := range shortNames() {
		b, err := os.ReadFile(filepath.Join(dir, short+".pb"))
		if err != nil {
			return nil, err
		}
		typ := types()[i]
		dig(b, func(r []byte) { f.resources[typ] = append(f.resources[typ], r) }, responseResources)
		f.whole[typ] = f.response(typ, "first", 0)
	}
	return f, nil
}

// shortNames of the types, in their order.
func shortNames() []string { return []string{"cds", "eds", "lds", "rds"} }

// Serve serves xDS on a listener until that is closed.
func (f *Floor) Serve(l net.Listener, creds credentials.TransportCredentials) error {
	g := grpc.NewServer(grpc.Creds(creds), grpc.ForceServerCodecV2(rawCodec{}))
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: "envoy.service.discovery.v3.AggregatedDiscoveryService",
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: "StreamAggregatedResources", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, s grpc.ServerStream) error { return f.stream(s) }}},
	}, f)
	return g.Serve(l)
}

func (f *Floor) stream(s grpc.ServerStream) error {
	out := make(chan []byte, 16)
	f.mu.Lock()
	f.streams[out] = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.streams, out)
		f.mu.Unlock()
	}()
	go f.first(s, out)
	for {
		select {
		case b := <-out:
			if err := s.SendMsg(b); err != nil {
				return err
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

// first answers the first request of each type.
func (f *Floor) first(s grpc.ServerStream, out chan<- []byte) {
	for seen := map[string]bool{}; ; {
		var r frame
		if s.RecvMsg(&r) != nil {
			return
		}
		typ := text(r.ReadOnlyData(), 4)
		r.Free()
		if seen[typ] {
			continue
		}
		seen[typ] = true
		select {
		case out <- f.whole[typ]:
		case <-s.Context().Done():
			return
		}
	}
}

// response encodes a type's first n resources; 0: all.
func (f *Floor) response(typ, version string, n int) []byte {
	all := f.resources[typ]
	if n > 0 && n < len(all) {
		all = all[:n]
	}
	b := appendText(nil, responseVersion, version)
	for _, r := range all {
		b = protowire.AppendBytes(protowire.AppendTag(b, responseResources, protowire.BytesType), r)
	}
	b = appendText(b, responseType, typ)
	return appendText(b, responseNonce, version)
}

// ServeHTTP writes to all streams what POST /touch?type=cds&resources=N&marker=TEXT names.
func (f *Floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.FormValue("resources"))
	if err != nil {
		http.Error(w, fmt.Sprintf("resources: %v", err), http.StatusBadRequest)
		return
	}
	for i, short := range shortNames() {
		if short != r.FormValue("type") {
			continue
		}
		b := f.response(types()[i], r.FormValue("marker"), n)
		f.mu.Lock()
		defer f.mu.Unlock()
		for out := range f.streams {
			out <- b
		}
	}
}
