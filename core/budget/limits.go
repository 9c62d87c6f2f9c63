// Package budget says what a client may cost: how much it may say, hold and ask for, by itself and
// together with the others of its peer. It decides alone: sizes, counts and times in, verdicts out.
// Who measures, refuses and waits is core/xds.
package budget

import (
	"errors"
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/setting"
)

// Limits of what clients may cost. Zero means no limit, but for those that have a least value. Each
// is a setting: its tags say its name, its default, its bounds and what it is for
// (internal/setting). What must fit into one message to a plugin, which is 1 MiB with all that is
// said beside it, is bounded above for that reason.
type Limits struct {
	Stream Stream `setting:",squash"`
	Total  Total  `setting:",squash"`
	Peer   Peer   `setting:",squash"`
}

// Stream limits each stream.
type Stream struct {
	RequestBytes int `setting:"maxRequestBytes" default:"4Mi" least:"64Ki" most:"1Gi" help:"bytes that one request of an xDS client may have"`
	HeaderBytes  int `setting:"maxHeaderBytes" default:"128Ki" least:"4Ki" most:"16Mi" help:"bytes that the headers of one stream may have"`

	NodeBytes      int `setting:"maxNodeBytes" default:"256Ki" least:"1Ki" most:"512Ki" help:"bytes of an xDS client's node, without its extensions"`
	Extensions     int `setting:"maxExtensions" default:"5000" zero:"no bound" help:"extensions that a node may list"`
	ExtensionBytes int `setting:"maxExtensionBytes" default:"512Ki" least:"1Ki" most:"768Ki" help:"bytes that they may have"`
	NameBytes      int `setting:"maxNameBytes" default:"4Ki" least:"256" most:"64Ki" help:"bytes that one name of a resource, a type or a node may have"`

	TypeNames int `setting:"maxNamesPerType" default:"100000" zero:"no bound" help:"names that a stream may ask for of one type"`
	Names     int `setting:"maxNamesPerStream" default:"200000" zero:"no bound" help:"names that a stream may ask for of all types"`

	UnknownNames int `setting:"maxUnknownNames" default:"10000" zero:"no bound" help:"names of one type that don't exist; more than these go in parts"`

	Types int `setting:"maxTypes" default:"64" zero:"no bound" help:"types that a stream may ask for"`
	Bytes int `setting:"maxBytesPerStream" default:"32Mi" zero:"no bound" help:"bytes of memory that a stream's node and names may take"`

	ErrorBytes  int `setting:"maxErrorBytes" default:"4Ki" least:"64" most:"256Ki" help:"bytes of a client's refusal that are kept; the rest is cut off"`
	QueuedBytes int `setting:"maxQueuedBytes" default:"256Mi" zero:"no bound" help:"bytes of responses that may wait for one client to read them"`

	Questions int     `setting:"maxQuestions" default:"8" zero:"no bound" help:"requests for debug types that may wait for answers on one stream"`
	Requests  float64 `setting:"maxRequestsPerStream" default:"200" zero:"no bound" help:"requests of a stream a second, ten times as many at once; others wait"`

	Idle time.Duration `setting:"idleTimeout" default:"30s" zero:"for ever" help:"how long a connection may lack a stream, and a stream a request"`
}

// Total limits what all clients are together.
type Total struct {
	NewStreams float64 `setting:"maxRequestsPerSecond" default:"2000" zero:"no bound" help:"new streams that are accepted in a second, ten times as many at once"`

	Connections int `setting:"maxConnections" default:"50000" zero:"no other bound" help:"connections of xDS clients, as long as plugins have enough open files"`
	Unfinished  int `setting:"maxUnfinishedBytes" default:"256Mi" zero:"no other bound" help:"bytes of all incomplete requests, at most 1/4 of memoryLimit"`

	StreamsPerConnection int `setting:"maxStreamsPerConnection" default:"1000" zero:"no bound" help:"streams that one connection may have"`
}

// Peer limits what the streams of one peer are together: of an identity if it is verified,
// otherwise of an address. Streams with equal lists of names share them, so that these count once.
type Peer struct {
	Connections int `setting:"maxConnectionsPerPeer" default:"5000" zero:"no bound" help:"connections of a peer: of a verified identity, or else of an address"`
	Streams     int `setting:"maxStreamsPerPeer" default:"20000" zero:"no bound" help:"streams that it may have"`

	NewStreams float64 `setting:"maxNewStreamsPerPeer" default:"500" zero:"no bound" help:"streams that it may begin in a second, ten times as many at once"`
	Requests   float64 `setting:"maxRequestsPerPeer" default:"20000" zero:"no bound" help:"requests of it a second, ten times as many at once; others wait"`

	Names        int `setting:"maxNamesPerPeer" default:"5000000" zero:"no bound" help:"names that its streams may ask for together, equal lists counted once"`
	UnknownNames int `setting:"maxUnknownNamesPerPeer" default:"200000" zero:"no bound" help:"names of its streams that don't exist, equal lists counted once"`

	Bytes      int `setting:"maxBytesPerPeer" default:"1Gi" zero:"no bound" help:"bytes of memory that its streams' nodes and names take together"`
	Unfinished int `setting:"maxUnfinishedBytesPerPeer" default:"128Mi" zero:"no other bound" help:"bytes of its incomplete requests, at most 1/8 of memoryLimit"`
}

// burst is how many seconds' worth may come at once.
const burst = 10

// Defaults are beyond what real meshes need and within what a small machine bears: gateways that
// ask for tens of thousands of names by themselves, thousands of proxies that come back at once
// from one address.
func Defaults() Limits { return setting.Default[Limits]() }

// Check returns what can't be, in the words of the settings.
func (l Limits) Check() error {
	return errors.Join(
		setting.Check(l),
		roomFor("maxUnfinishedBytesPerPeer", l.Peer.Unfinished, l.Stream.RequestBytes),
		roomFor("maxUnfinishedBytes", l.Total.Unfinished, l.Stream.RequestBytes),
	)
}

// roomFor checks a bound of messages that aren't complete: one of any size must fit, with what its
// frames cost.
func roomFor(name string, n, message int) error {
	if n < 0 || n > 0 && n < 2*message {
		return fmt.Errorf("%s: %d is less than twice maxRequestBytes, %d; 0 means no limit", name, n, message)
	}
	return nil
}
