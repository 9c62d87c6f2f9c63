package fleet

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
)

const prefix = "type.googleapis.com/envoy.config."

// The types, in the order in which an Envoy asks for them.
const (
	clusters  = prefix + "cluster.v3.Cluster"
	endpoints = prefix + "endpoint.v3.ClusterLoadAssignment"
	listeners = prefix + "listener.v3.Listener"
	routes    = prefix + "route.v3.RouteConfiguration"
)

func types() []string { return []string{clusters, endpoints, listeners, routes} }

// children says which type is asked for by names that another one's resources have.
func children() map[string]string {
	return map[string]string{clusters: endpoints, listeners: routes}
}

// sidecar is one stream.
type sidecar struct {
	fleet  *fleet
	id     int
	node   []byte
	slow   bool
	stream grpc.ClientStream
	asked  map[string]*asked
	// messages that it got.
	messages atomic.Int64
	ready    atomic.Int64 // when everything was there the first time, in Unix nanoseconds
}

// asked is what one type was asked for, and what came.
type asked struct {
	sent           bool
	names          map[string]bool // nil: all
	encoded        []byte
	version, nonce string
	missing        map[string]bool
	answered       bool
}

// run keeps the sidecar connected until ctx ends.
func (s *sidecar) run(ctx context.Context, conn grpc.ClientConnInterface) {
	for ctx.Err() == nil {
		s.once(ctx, conn)
		if ctx.Err() == nil {
			s.fleet.broken.Add(1)
			select {
			case <-time.After(500 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// once lives as long as one stream.
func (s *sidecar) once(ctx context.Context, conn grpc.ClientConnInterface) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const method = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
	var err error
	if s.stream, err = conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodecV2(rawCodec{})); err != nil {
		return
	}
	s.asked = map[string]*asked{}
	for _, t := range types() {
		s.asked[t] = &asked{}
	}
	for err = s.next(); err == nil; {
		if s.slow {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
		}
		var f frame
		if err = s.stream.RecvMsg(&f); err != nil {
			return
		}
		err = s.take(f.ReadOnlyData())
		f.Free()
	}
}

// pause of a slow sidecar before it reads.
const pause = time.Second

// take takes a response: it is counted, acknowledged, and leads to more.
func (s *sidecar) take(response []byte) error {
	typ := text(response, responseType)
	a := s.asked[typ]
	if a == nil {
		return nil
	}
	s.fleet.arrived(s, typ, response)
	a.version, a.nonce = text(response, responseVersion), text(response, responseNonce)
	dig(response, func(r []byte) { delete(a.missing, text(r, 1)) }, responseResources, anyValue)
	a.answered = a.answered || len(a.missing) == 0
	if err := s.ask(typ); err != nil {
		return err
	}
	if child := children()[typ]; child != "" {
		if err := s.learn(child, response); err != nil {
			return err
		}
	}
	return s.next()
}

// learn takes the names of a type from the resources that lead to it, and asks again if they are
// others.
func (s *sidecar) learn(child string, response []byte) error {
	a, names := s.asked[child], named(child, response)
	if a.names != nil && maps.Equal(names, a.names) {
		return nil
	}
	a.names, a.encoded = names, s.fleet.encode(names)
	if !a.sent {
		a.missing = maps.Clone(names)
		return nil
	}
	return s.ask(child)
}

// next asks for the next type when the one before it is there.
func (s *sidecar) next() error {
	for _, t := range types() {
		a := s.asked[t]
		if !a.sent {
			a.sent = true
			if a.names == nil || len(a.names) > 0 {
				return s.ask(t)
			}
			a.answered = true
		}
		if !a.answered {
			return nil
		}
	}
	s.ready.CompareAndSwap(0, time.Now().UnixNano())
	return nil
}

// ask sends a request: the first of a type, an acknowledgement, or other names.
func (s *sidecar) ask(typ string) error {
	a := s.asked[typ]
	b := appendText(nil, 1, a.version)
	if typ == clusters && a.nonce == "" {
		b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), s.node)
	}
	b = append(b, a.encoded...)
	b = appendText(b, 4, typ)
	return s.stream.SendMsg(appendText(b, 5, a.nonce))
}

// encode writes names as a request has them, once for all sidecars that have the same ones.
func (f *fleet) encode(names map[string]bool) []byte {
	var b []byte
	for _, n := range slices.Sorted(maps.Keys(names)) {
		b = appendText(b, 3, n)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if have, ok := f.encoded[string(b)]; ok {
		return have
	}
	f.encoded[string(b)] = b
	return b
}

// arrived counts a response, and notes if it is the one that is waited for.
func (f *fleet) arrived(s *sidecar, typ string, response []byte) {
	f.last.Store(time.Now().UnixNano())
	f.bytes.Add(int64(len(response)))
	f.messages.Add(1)
	s.messages.Add(1)
	if w := f.wanted.Load(); w != nil && w.typ == typ && !s.slow && bytes.Contains(response, w.text) {
		w.at[s.id].CompareAndSwap(0, time.Now().UnixNano())
	}
	if w := f.followed.Load(); w != nil && typ == endpoints {
		w.arrived(s.id, response)
	}
}
