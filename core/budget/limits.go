// Package budget says what a client may cost: how much it may say, hold and ask for, by itself and
// together with the others of its peer. It decides alone: sizes, counts and times in, verdicts out.
// Who measures, refuses and waits is core/xds.
package budget

import (
	"errors"
	"fmt"
	"time"
)

// Limits of what clients may cost. Zero means no limit, but for those that Check holds to a
// session's messages.
type Limits struct {
	Stream Stream
	Peer   Peer
	Total  Total
}

// Stream limits each stream.
type Stream struct {
	// RequestBytes of one request, HeaderBytes of a stream's headers.
	RequestBytes, HeaderBytes int
	// NodeBytes of a node without its extensions; Extensions that it lists, and their bytes.
	NodeBytes, Extensions, ExtensionBytes int
	// NameBytes of one name: of a resource, a type, the node's id, a version.
	NameBytes int
	// TypeNames are those that a stream may ask for of one type, Names of all types together, and
	// UnknownNames those that don't exist.
	TypeNames, Names, UnknownNames int
	// Types that a stream may ask for.
	Types int
	// Bytes that its node and names take in memory.
	Bytes int
	// ErrorBytes of a refusal's text; what is longer is cut.
	ErrorBytes int
	// QueuedBytes of responses that wait to be written.
	QueuedBytes int
	// Requests a second; those above it wait. Ten times as many may come at once.
	Requests float64
	// Questions (of types that are answered per request) that wait for their answers.
	Questions int
	// Idle is how long a connection may be without a stream, and a stream without a request.
	Idle time.Duration
}

// Peer limits what the streams of one peer are together: of an identity if it is verified,
// otherwise of an address.
type Peer struct {
	Connections, Streams int
	// NewStreams and Requests a second. Ten times as many may begin, and come, at once.
	NewStreams, Requests float64
	// Names and Bytes: streams with equal lists share them, so that these count once. UnknownNames
	// likewise.
	Names, UnknownNames int
	Bytes               int
	// Unfinished are bytes of messages that have begun to come and aren't complete.
	Unfinished int
}

// Total limits what all clients are together.
type Total struct {
	Connections          int
	StreamsPerConnection int
	// NewStreams a second. Ten times as many may begin at once.
	NewStreams float64
	// Unfinished are bytes of messages that aren't complete.
	Unfinished int
}

// burst is how many seconds' worth may come at once.
const burst = 10

// Defaults are beyond what real meshes need and within what a small machine bears: gateways that
// ask for tens of thousands of names by themselves, thousands of proxies that come back at once
// from one address.
func Defaults() Limits {
	return Limits{
		Stream: Stream{
			RequestBytes: 4 << 20, HeaderBytes: 128 << 10,
			NodeBytes: 256 << 10, Extensions: 5000, ExtensionBytes: 512 << 10,
			NameBytes: 4 << 10, TypeNames: 100_000, Names: 200_000, UnknownNames: 10_000, Types: 64,
			Bytes: 32 << 20, ErrorBytes: 4 << 10, QueuedBytes: 256 << 20, Requests: 200, Questions: 8,
			Idle: 30 * time.Second,
		},
		Peer: Peer{
			Connections: 5_000, Streams: 20_000, NewStreams: 500, Requests: 20_000,
			Names: 5_000_000, UnknownNames: 200_000, Bytes: 1 << 30, Unfinished: 128 << 20,
		},
		Total: Total{Connections: 50_000, StreamsPerConnection: 1_000, NewStreams: 2000, Unfinished: 256 << 20},
	}
}

// What must fit into one message to a plugin, which is 1 MiB with all that is said beside it.
const (
	mostNode       = 512 << 10
	mostExtensions = 768 << 10
	mostName       = 64 << 10
	mostError      = 256 << 10
)

// Check returns what can't be, in the words of the settings.
func (l Limits) Check() error {
	s, p, t := l.Stream, l.Peer, l.Total
	return errors.Join(
		within("maxNodeBytes", s.NodeBytes, 1<<10, mostNode),
		within("maxExtensionBytes", s.ExtensionBytes, 1<<10, mostExtensions),
		within("maxNameBytes", s.NameBytes, 256, mostName),
		within("maxErrorBytes", s.ErrorBytes, 64, mostError),
		within("maxRequestBytes", s.RequestBytes, 64<<10, 1<<30),
		within("maxHeaderBytes", s.HeaderBytes, 4<<10, 16<<20),
		notNegative("maxExtensions", s.Extensions), notNegative("maxNamesPerType", s.TypeNames), notNegative("maxNamesPerStream", s.Names),
		notNegative("maxUnknownNames", s.UnknownNames), notNegative("maxTypes", s.Types), notNegative("maxBytesPerStream", s.Bytes),
		notNegative("maxQueuedBytes", s.QueuedBytes), notNegative("maxRequestsPerStream", s.Requests), notNegative("maxQuestions", s.Questions),
		notNegative("idleTimeout", s.Idle),
		notNegative("maxConnectionsPerPeer", p.Connections), notNegative("maxStreamsPerPeer", p.Streams),
		notNegative("maxNewStreamsPerPeer", p.NewStreams), notNegative("maxRequestsPerPeer", p.Requests), notNegative("maxNamesPerPeer", p.Names),
		notNegative("maxUnknownNamesPerPeer", p.UnknownNames), notNegative("maxBytesPerPeer", p.Bytes),
		roomFor("maxUnfinishedBytesPerPeer", p.Unfinished, s.RequestBytes), roomFor("maxUnfinishedBytes", t.Unfinished, s.RequestBytes),
		notNegative("maxConnections", t.Connections), notNegative("maxStreamsPerConnection", t.StreamsPerConnection),
		notNegative("maxRequestsPerSecond", t.NewStreams),
	)
}

func within(name string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("%s: %d must be from %d to %d", name, n, least, most)
	}
	return nil
}

// roomFor checks a bound of messages that aren't complete: one of any size must fit, with what its
// frames cost.
func roomFor(name string, n, message int) error {
	if n < 0 || n > 0 && n < 2*message {
		return fmt.Errorf("%s: %d is less than twice maxRequestBytes, %d; 0 means no limit", name, n, message)
	}
	return nil
}

func notNegative[N int | float64 | time.Duration](name string, n N) error {
	if n < 0 {
		return fmt.Errorf("%s: %v is negative; 0 means no limit", name, n)
	}
	return nil
}
