package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"net"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Connection is one xDS stream.
type Connection struct {
	Roster *Roster
	ID     uint64
	Peer   xds.Peer
	Node   []byte // encoded, without extensions
	// Extensions is the list's hash, so that equal lists are sent once; 0 where the node has none.
	Extensions uint64
	Caller     Caller
	Since      time.Time
	Wake       func(xds.Wake)
	Err        error

	Generators map[string]string // type -> entry
	// Attached are the generators that know of it: those of types that it has asked for.
	Attached map[string]bool
	Subs     map[string]placement.Wish
	// Places are the views that it is in.
	Places   placement.Places[*Session]
	Outcomes map[string]Outcome
	// Seen is what the stream gets: its views' snapshots, patched.
	Seen map[string]*view.Snapshot
	// Owes are pushes that it has not answered yet.
	Owes []*push
	// Said is what it says of its health, by type; empty: it is well. Nil: it says nothing.
	Said map[string]string
}

// Caller is who is calling.
type Caller struct {
	// Credentials are nil where nobody asks for them.
	Credentials *caller.Credentials
	// Voice is who speaks for the connection where what it says counts for others.
	Voice Voice
}

// Outcome is what became of the responses of one type.
type Outcome struct {
	Acked    string
	Revision uint64
	// First is the revision of the first push that was accepted; 0: none was.
	First   uint64
	Refused string
	// Has is what it accepted last.
	Has *view.Snapshot
}

// After is what has become of a type once a proxy has said something of another response.
func (o Outcome) After(said xds.Outcome) Outcome {
	if said.Refused != "" {
		o.Refused = said.Refused
		return o
	}
	return Outcome{Acked: said.Version, Revision: said.Number, First: cmp.Or(o.First, said.Number), Refused: said.Left, Has: said.Has}
}

// Without is the outcome where the proxy has the rest without some pieces; "": it has all.
func (o Outcome) Without(refused string) Outcome {
	o.Refused = cmp.Or(o.Refused, refused)
	return o
}

// Speaks notes who is calling.
func (conn *Connection) Speaks(c Caller) { conn.Caller = c }

// Says notes what it says of its health.
func (conn *Connection) Says(typeURL, word string) {
	if conn.Said == nil {
		conn.Said = map[string]string{}
	}
	conn.Said[typeURL] = word
}

// Know notes that a generator knows of it.
func (conn *Connection) Know(generator string) { conn.Attached[generator] = true }

// Forget notes that a generator doesn't know of it.
func (conn *Connection) Forget(generator string) { delete(conn.Attached, generator) }

// Ask notes what it asks for of a type from now on, and returns what it did before.
func (conn *Connection) Ask(typeURL string, sub placement.Wish) (before placement.Wish) {
	before = conn.Subs[typeURL]
	if conn.Subs[typeURL] = sub; !sub.Wildcard && len(sub.Names) == 0 {
		delete(conn.Subs, typeURL)
	}
	return before
}

// Came notes what became of its responses of a type.
func (conn *Connection) Came(typeURL string, o Outcome) { conn.Outcomes[typeURL] = o }

// See notes what it gets of a type; nil: nothing.
func (conn *Connection) See(typeURL string, s *view.Snapshot) {
	if s == nil {
		delete(conn.Seen, typeURL)
		return
	}
	conn.Seen[typeURL] = s
}

// Connections are those that are there, and what those that left still have of views.
type Connections struct {
	All  map[uint64]*Connection
	Last uint64 // the last one's number
	Left *placement.Left[*Session]
}

// Remove takes one out.
func (cs *Connections) Remove(conn *Connection) { delete(cs.All, conn.ID) }

// Sorted returns all connections, older ones first.
func (cs *Connections) Sorted() []*Connection {
	all := make([]*Connection, 0, len(cs.All))
	for _, conn := range cs.All {
		all = append(all, conn)
	}
	slices.SortFunc(all, func(a, b *Connection) int { return int(int64(a.ID) - int64(b.ID)) })
	return all
}

// EncodeNode returns the node without its extensions, and the hash of their list.
func EncodeNode(n *corev3.Node) ([]byte, uint64, error) {
	if len(n.GetExtensions()) == 0 {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(n)
		return b, 0, err
	}
	h := sha256.New()
	for _, e := range n.Extensions {
		h.Write(append([]byte(e.Name), 0))
	}
	id := binary.LittleEndian.Uint64(h.Sum(nil)) | 1
	short := proto.CloneOf(n)
	short.Extensions = nil
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(short)
	return b, id, err
}

// PeerKey is whose turn a connection's is: an identity's, if it has one, otherwise an address's.
func PeerKey(conn *Connection) string {
	if len(conn.Peer.Identities) > 0 {
		return conn.Peer.Identities[0]
	}
	host, _, err := net.SplitHostPort(conn.Peer.RemoteAddress)
	if err != nil {
		return conn.Peer.RemoteAddress
	}
	return host
}

// ServedBy returns the types that a generator serves to the connection, sorted.
func (conn *Connection) ServedBy(name string) []string { return TypesOf(conn.Generators, name) }

// Asks reports whether the connection asks for anything that a generator serves to it.
func (conn *Connection) Asks(name string) bool {
	for url := range conn.Subs {
		if conn.Generators[url] == name {
			return true
		}
	}
	return false
}

// Visible, Wish, Label, After and Generator implement guard.Stream.
func (conn *Connection) Visible(typeURL string) *view.Snapshot { return conn.Seen[typeURL] }

// Wish is what it asks for of a type.
func (conn *Connection) Wish(typeURL string) placement.Wish { return conn.Subs[typeURL] }

// Label is what its view of a type is called; empty: it is in none.
func (conn *Connection) Label(typeURL string) string {
	if v := conn.Places.View(typeURL); v != nil {
		return v.Label
	}
	return ""
}

// After is the type whose resources name those of this one.
func (conn *Connection) After(typeURL string) string {
	return conn.Roster.Traits(conn.Generators[typeURL], typeURL).After
}

// Generator is the plugin that serves a type to it.
func (conn *Connection) Generator(typeURL string) string { return conn.Generators[typeURL] }

// Refuse ends the stream: a generator can make nothing of the node.
func (conn *Connection) Refuse(plugin, reason string) {
	conn.end(status.Errorf(codes.InvalidArgument, "%s (refused by generator %s)", budget.Clip(reason, mostReason), plugin))
}

// end ends the stream.
func (conn *Connection) end(err error) {
	conn.Err = err
	conn.Wake(xds.WakeAll)
}

// mostReason is how much of a plugin's reason a client is told: it goes into a header.
const mostReason = 4 << 10
