// Package xds is the ADS server: state of the world and delta, aggregated and per type, over gRPC.
package xds

import (
	"context"

	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Source is what the server serves from; core/control implements it.
type Source interface {
	// Connect registers a stream with its first node. The error is a gRPC status: Unavailable while
	// the core isn't ready, InvalidArgument for a node that no generator accepts. wake is called,
	// from any goroutine and without blocking, whenever Pull may return something new.
	Connect(ctx context.Context, p Peer, wake func(Wake)) (Connection, error)
}

// Wake says what is new.
type Wake int

const (
	// WakeAll: anything.
	WakeAll Wake = iota
	// WakeDependent: nothing but types that are answered again after another one: endpoints.
	// Streams that still wait for their turn with a large push get these first.
	WakeDependent
)

// Peer is who is at the other end of a stream.
type Peer struct {
	Node          *core.Node
	Identities    []string
	RemoteAddress string
	// Plain: the connection is in plain text.
	Plain bool
	// Protocol is sotw or delta.
	Protocol string
	// Names: its first request asks for listeners by name, as clients of gRPC do and proxies don't.
	Names bool
}

// Connection is one stream's side of the Source. It is used by one goroutine at a time.
type Connection interface {
	// ID is the number of the connection.
	ID() uint64
	// Offers reports whether some generator serves the type to this connection, and how the type
	// behaves.
	Offers(typeURL string) (traits *pb.Traits, ok bool)
	// Subscribe sets what the stream wants of a type, in place of what it wanted before. wildcard
	// means everything; names may come in addition; they are sorted, unique and never written to,
	// and equal lists of several streams are mostly one slice. No wildcard and no names end the
	// subscription.
	Subscribe(typeURL string, wildcard bool, names []string)
	// Pull returns the served snapshots of all subscribed types, of one revision. A type for which
	// nothing is known yet is missing.
	Pull() Served
	// Report says what became of a response: acknowledged or refused, for the ledger and for
	// plugins that asked for it.
	Report(Outcome)
	// Close ends the connection.
	Close()
}

// Served is what a connection is to have at one revision.
type Served struct {
	Epoch, Number uint64
	Types         map[string]*view.Snapshot
	// Err, a gRPC status, ends the stream: a generator refused the node (InvalidArgument), or the
	// core lost the connection's plugin.
	Err error
}

// Culprit is a resource that a client refuses, alone of a response.
type Culprit struct {
	Body *view.Body
	// Instead is what it accepted of that name before; nil: nothing.
	Instead *view.Body
}

// Outcome of a response.
type Outcome struct {
	Type    string
	Version string
	Number  uint64
	// Refused is the client's error message; empty for an ACK.
	Refused string
	// Resources and Bytes of the response; Has is what the client has of the type after it, in an
	// ACK.
	Resources, Bytes int
	Has              *view.Snapshot
	// Culprits are, in a NACK, those of its resources that are refused, as far as is known.
	Culprits []Culprit
	// Answered is the revision of which the client now has all that it wants, and has answered it;
	// 0: something is still to come. Without a Type that is all that the outcome says.
	Answered uint64
	// Left is, in an ACK, the message about resources that are left out because the client refused
	// them before.
	Left string
	// Health is set for reports of health that aren't answers to a response (Config.HealthType).
	Health bool
}
