package plugintest

import (
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Connect tells a controller of a client, as the core does where it has asked for that.
func (h *Harness) Connect(c sdk.Client) {
	h.t.Helper()
	h.send(&pb.FromCore{Attach: &pb.Attach{
		Connection: c.Connection, Node: c.Node, Identities: c.Identities, RemoteAddress: c.RemoteAddress, Since: c.Since.UnixNano(), Plain: c.Plain,
	}})
}

// Disconnect tells a controller that a client has gone.
func (h *Harness) Disconnect(connection uint64) {
	h.t.Helper()
	h.send(&pb.FromCore{Detach: &pb.Detach{Connection: connection}})
}

// Says tells a controller what a client says of its health.
func (h *Harness) Says(connection uint64, typeURL, reason string) {
	h.t.Helper()
	h.send(&pb.FromCore{Report: &pb.Report{Connection: connection, Type: typeURL, Event: pb.ReportEventHealth, Detail: reason}})
}
