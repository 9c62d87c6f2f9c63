// Package session carries the contract's messages over any ordered carrier, with credit: the same
// code for the core and for plugins, for processes, WASM and tests.
//
// A Link is one side of a session. It owns two goroutines: a reader that is always reading, since
// the other side sends only what it has credit for, and a writer. So neither side can block the
// other by being slow, and the memory of a session is bounded by the credit that was given.
package session

import (
	"errors"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const (
	// MaxStores is how many Stores a plugin may have on their way: further ones are answered as
	// unavailable.
	MaxStores = 64
	// MaxMessage is the largest encoded message, in bytes (session.proto, "Limits and credit").
	MaxMessage = 1 << 20
	// MaxRow is the largest encoded row that a core takes, in bytes: it must fit into a message
	// again with the shard's name.
	MaxRow = MaxMessage - 16<<10
	// InitialCredit is what each side may send before the other gave any back, in bytes.
	InitialCredit = 16 << 20
	// MinCost is what a smaller message costs, in bytes: about what it takes in memory once it is
	// decoded. So credit bounds how many messages wait, too.
	MinCost = 256
)

// Cost of a message in credit, unless it is free.
func Cost(size int) int { return max(size, MinCost) }

// Version is the major version of the contract that this code speaks.
const Version = 1

var (
	// ErrTooLarge is returned for a message over MaxMessage.
	ErrTooLarge = errors.New("message is larger than 1 MiB")
	// ErrClosed is returned after this side closed the session.
	ErrClosed = errors.New("session is closed")
)

// Carrier moves frames in order. Send is called by one goroutine at a time, Recv by another one.
// Close ends both; it may be called more than once and by any goroutine.
type Carrier interface {
	// Send hands over a frame; it may block. The carrier owns the frame afterwards, and may write
	// it over.
	Send(frame []byte) error
	// Recv returns the next frame, which is the caller's until it calls Recv again; io.EOF at the
	// end.
	Recv() ([]byte, error)
	Close() error
}

// Framer is a Carrier that has room for frames: it gets back what it gave when it has sent a frame.
type Framer interface {
	// Frame returns room for a frame of a size, with no length.
	Frame(size int) []byte
}

// Message is a message of the contract.
type Message interface {
	Size() int
	AppendTo([]byte) []byte
	Unmarshal([]byte) error
}

// Core is the core's side of a session, Plugin the plugin's.
type (
	Core   = Link[*pb.FromCore, *pb.FromPlugin]
	Plugin = Link[*pb.FromPlugin, *pb.FromCore]
)

// NewCore starts the core's side of a session.
func NewCore(c Carrier) *Core { return newLink(c, coreSide()) }

// Observer sees the messages of a session at the core's side, with their encoded sizes: those that
// are sent when they are queued, those that are received when they arrive. It must not block nor
// change them, and is called by several goroutines.
type Observer interface {
	Sent(m *pb.FromCore, size int)
	Received(m *pb.FromPlugin, size int)
}

// NewObserved is NewCore with somebody who watches.
func NewObserved(c Carrier, o Observer) *Core {
	s := coreSide()
	s.sent, s.received = o.Sent, o.Received
	return newLink(c, s)
}

// NewPlugin starts the plugin's side of a session.
func NewPlugin(c Carrier) *Plugin { return newLink(c, pluginSide()) }
