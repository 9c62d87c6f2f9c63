package simulator

import (
	"fmt"
	"net/netip"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// walk is one on its way: what the proxy knows of the connection and the request so far.
type walk struct {
	*Config
	connection Connection
	// local is the destination as the proxy knows it: where it accepted the connection until a
	// listener filter restores what the client wanted.
	local netip.AddrPort
	// transport and protocols are what listener filters found, sni too.
	transport, sni string
	protocols      []string
	// opaque: it is TLS that this proxy doesn't open.
	opaque bool
	// named is the cluster that a filter sets in place of the TCP proxy's.
	named  string
	stream *stream
	out    *Outcome
}

// Walk says where a connection goes; the request that comes over it may be nil where the proxy
// doesn't look for one. With a request and no other protocol, the client speaks HTTP/1.1.
func (c *Config) Walk(conn Connection, r *Request) *Outcome {
	if r != nil && conn.Protocol == "" {
		conn.Protocol = "http/1.1"
	}
	w := &walk{Config: c, connection: conn, out: &Outcome{}}
	w.local = netip.AddrPortFrom(conn.Destination.Addr(), conn.accepted())
	if r != nil {
		w.stream = newStream(*r, conn)
	}
	w.connect()
	return w.out
}

func (w *walk) connect() {
	l := w.accept()
	if l == nil {
		return
	}
	chain := w.chain(l)
	if chain == nil || !w.handshake(chain) {
		return
	}
	w.network(chain)
}

// step notes a decision.
func (w *walk) step(at, chosen, format string, args ...any) {
	w.out.Steps = append(w.out.Steps, Step{at, chosen, fmt.Sprintf(format, args...)})
}

// assume notes what the simulator can't know.
func (w *walk) assume(format string, args ...any) {
	w.out.Assumes = append(w.out.Assumes, fmt.Sprintf(format, args...))
}

func (w *walk) end(v Verdict, format string, args ...any) {
	w.out.Verdict, w.out.Reason = v, fmt.Sprintf(format, args...)
}

// typed reads a configuration of a type; false: it is another's.
func typed[T proto.Message](a *anypb.Any, into T) bool {
	return a != nil && a.MessageIs(into) && a.UnmarshalTo(into) == nil
}
