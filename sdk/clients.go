package sdk

import (
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Client is an xDS client that is connected.
type Client struct {
	// Connection is the number of its stream, never used twice while the core runs.
	Connection uint64
	// Node is the encoded envoy.config.core.v3.Node without its extensions.
	Node []byte
	// Identities were verified by an authenticator; none: nobody knows who it is.
	Identities    []string
	RemoteAddress string
	// Since is when it connected.
	Since time.Time
	// Plain: it did so in plain text, where whoever is in between can see and change everything.
	Plain bool
}

// ClientWish says of which clients a controller is told.
type ClientWish struct {
	// Metadata are keys of a node's metadata: a client has one of them. None: all clients.
	Metadata []string
	// Reports are the types by which clients say how they are (ClientWatcher.Reported).
	Reports []string
}

// ClientWatcher is an optional extra of controllers that want to know which clients are connected.
// A plugin that starts again is told of all that are there, with their old numbers. Its methods
// are called one at a time, in the order in which things happened, and must not wait.
type ClientWatcher interface {
	// Clients says of which clients it is told. It is called once, before Ready.
	Clients() ClientWish
	// Connected tells of a client that is there, Disconnected that it has gone.
	Connected(c Client)
	Disconnected(connection uint64)
	// Reported tells what a client said last of its health, of its own accord: why it is bad, or
	// "" where it is good.
	Reported(connection uint64, typeURL, reason string)
}

// audience is told of clients. It is an interface, so that only programs with controllers have the
// code.
type audience interface {
	wishes(r *pb.Ready)
	meet(m *pb.FromCore) error
}

// watching tells a controller of clients.
type watching struct{ ClientWatcher }

func (w watching) wishes(r *pb.Ready) {
	of := w.Clients()
	if r.Clients, r.ClientReports = of.Metadata, of.Reports; len(r.Clients) == 0 {
		r.Clients = []string{"*"}
	}
}

func (w watching) meet(m *pb.FromCore) error {
	return caught("ClientWatcher", func() error {
		switch {
		case m.Attach != nil:
			a := m.Attach
			w.Connected(Client{a.Connection, a.Node, a.Identities, a.RemoteAddress, time.Unix(0, a.Since), a.Plain})
		case m.Detach != nil:
			w.Disconnected(m.Detach.Connection)
		case m.Report != nil:
			w.Reported(m.Report.Connection, m.Report.Type, m.Report.Detail)
		}
		return nil
	})
}
