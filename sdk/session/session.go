// Package session carries the contract's messages over any ordered carrier, with credit: the same code for the core and for
// plugins, for processes, WASM and tests.
package session

import (
	"context"
	"errors"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const (
	// MaxMessage is the largest encoded message, in bytes (session.proto, "Limits and credit").
	MaxMessage = 1 << 20
	// InitialCredit is what each side may send before the other gave any back, in bytes.
	InitialCredit = 16 << 20
)

// ErrTooLarge is returned for a message over MaxMessage.
var ErrTooLarge = errors.New("message is larger than 1 MiB")

// Carrier moves frames in order. Send is called by one goroutine at a time, Recv by another one. Close ends both.
type Carrier interface {
	// Send hands over a frame; it may block. The carrier owns the frame afterwards.
	Send(frame []byte) error
	// Recv returns the next frame, which the caller owns; io.EOF at the end.
	Recv() ([]byte, error)
	Close() error
}

// Message is a message of the contract.
type Message interface {
	Size() int
	AppendTo([]byte) []byte
	Unmarshal([]byte) error
}

// Version is the major version of the contract that this code speaks.
const Version = 1

var _ = []Message{(*pb.FromCore)(nil), (*pb.FromPlugin)(nil)}

// Core is the core's side of a session, Plugin the plugin's.
type (
	Core   = Link[*pb.FromCore, *pb.FromPlugin]
	Plugin = Link[*pb.FromPlugin, *pb.FromCore]
)

// link is what Link promises; see link.go.
type link[Out, In Message] interface {
	// Send queues a message for the carrier. It blocks until there is credit for it, in the order of callers, or ctx ends.
	Send(ctx context.Context, m Out) error
	// Recv returns the next message and its cost, which the receiver gives back with Release when it has dealt with it.
	// Credit, Ping and Pong are dealt with by the link itself.
	Recv(ctx context.Context) (m In, cost int, err error)
	// Release gives credit back to the other side.
	Release(cost int)
	Close() error
}
