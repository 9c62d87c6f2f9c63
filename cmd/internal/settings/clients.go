package settings

import (
	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/spf13/pflag"
)

// clients returns the settings that say a budget.
func clients(l budget.Limits) Clients {
	s := l.Stream
	return Clients{
		RequestBytes: s.RequestBytes, HeaderBytes: s.HeaderBytes, NodeBytes: s.NodeBytes, Extensions: s.Extensions, ExtensionBytes: s.ExtensionBytes,
		NameBytes: s.NameBytes, NamesPerType: s.TypeNames, NamesPerStream: s.Names, UnknownNames: s.UnknownNames, Types: s.Types, BytesPerStream: s.Bytes,
		ErrorBytes: s.ErrorBytes, QueuedBytes: s.QueuedBytes, Questions: s.Questions,
		Connections: l.Total.Connections, StreamsPerConn: l.Total.StreamsPerConnection,
		UnfinishedBytes:   l.Total.Unfinished,
		RequestsPerSecond: s.Requests, IdleTimeout: s.Idle,
	}
}

// Limits returns the budget that the settings say.
func (s Settings) Limits() budget.Limits {
	c, l := s.Clients, budget.Defaults()
	l.Stream.RequestBytes, l.Stream.HeaderBytes, l.Stream.NodeBytes = c.RequestBytes, c.HeaderBytes, c.NodeBytes
	l.Stream.Extensions, l.Stream.ExtensionBytes, l.Stream.NameBytes = c.Extensions, c.ExtensionBytes, c.NameBytes
	l.Stream.TypeNames, l.Stream.Names, l.Stream.Types, l.Stream.Bytes = c.NamesPerType, c.NamesPerStream, c.Types, c.BytesPerStream
	l.Stream.ErrorBytes, l.Stream.QueuedBytes, l.Stream.Questions = c.ErrorBytes, c.QueuedBytes, c.Questions
	l.Total.Connections, l.Total.StreamsPerConnection, l.Total.NewStreams = c.Connections, c.StreamsPerConn, s.MaxRequestsPerSecond
	l.Stream.Requests, l.Stream.Idle = c.RequestsPerSecond, c.IdleTimeout
	p := s.Peers
	l.Peer.Unfinished, l.Total.Unfinished = p.UnfinishedBytes, c.UnfinishedBytes
	l.Peer.Connections, l.Peer.Streams, l.Peer.NewStreams, l.Peer.Requests = p.Connections, p.Streams, p.NewStreams, p.Requests
	l.Stream.UnknownNames, l.Peer.UnknownNames = c.UnknownNames, p.UnknownNames
	l.Peer.Names, l.Peer.Bytes = p.Names, p.Bytes
	return l
}

func peers(p budget.Peer) Peers {
	return Peers{
		Connections: p.Connections, Streams: p.Streams, NewStreams: p.NewStreams, Requests: p.Requests,
		Names: p.Names, UnknownNames: p.UnknownNames, Bytes: p.Bytes, UnfinishedBytes: p.Unfinished,
	}
}

func (p Peers) flags(fs *pflag.FlagSet) {
	fs.Int("maxConnectionsPerPeer", p.Connections, "connections that one peer may have: an identity that is verified, or else an address; 0: no bound")
	fs.Int("maxStreamsPerPeer", p.Streams, "streams that it may have; 0: no bound")
	fs.Float64("maxNewStreamsPerPeer", p.NewStreams, "streams that it may begin in a second, ten times as many at once; 0: no bound")
	fs.Float64("maxRequestsPerPeer", p.Requests, "requests of it that are taken in a second, ten times as many at once; others wait; 0: no bound")
	fs.Int("maxNamesPerPeer", p.Names, "names that its streams may ask for together, equal lists counted once; 0: no bound")
	fs.Int("maxUnknownNamesPerPeer", p.UnknownNames, "names that don't exist that its streams may ask for together, equal lists counted once; 0: no bound")
	fs.Int("maxBytesPerPeer", p.Bytes, "bytes of memory that its streams' nodes and names may take together; 0: no bound")
	fs.Int("maxUnfinishedBytesPerPeer", p.UnfinishedBytes,
		"bytes of its requests that have begun to come and aren't complete; at most an eighth of memoryLimit; 0: no other bound")
}

func (c Clients) flags(fs *pflag.FlagSet) {
	fs.Int("maxRequestBytes", c.RequestBytes, "bytes that one request of an xDS client may have")
	fs.Int("maxHeaderBytes", c.HeaderBytes, "bytes that the headers of one stream may have")
	fs.Int("maxNodeBytes", c.NodeBytes, "bytes that the node of an xDS client may have, without its extensions")
	fs.Int("maxExtensions", c.Extensions, "extensions that a node may list; 0: no bound")
	fs.Int("maxExtensionBytes", c.ExtensionBytes, "bytes that they may have")
	fs.Int("maxNameBytes", c.NameBytes, "bytes that one name of a resource, a type or a node may have")
	fs.Int("maxNamesPerType", c.NamesPerType, "names that a stream may ask for of one type; 0: no bound")
	fs.Int("maxNamesPerStream", c.NamesPerStream, "names that a stream may ask for of all types; 0: no bound")
	fs.Int("maxUnknownNames", c.UnknownNames,
		"names that don't exist that a stream may ask for of one type; more are asked for in parts, as long as those before exist; 0: no bound")
	fs.Int("maxTypes", c.Types, "types that a stream may ask for; 0: no bound")
	fs.Int("maxBytesPerStream", c.BytesPerStream, "bytes of memory that a stream's node and names may take; 0: no bound")
	fs.Int("maxErrorBytes", c.ErrorBytes, "bytes of a client's refusal that are kept; the rest is cut off")
	fs.Int("maxQueuedBytes", c.QueuedBytes, "bytes of responses that may wait for one client to read them; 0: no bound")
	fs.Int("maxQuestions", c.Questions, "requests for debug types that may wait for their answers on one stream; 0: no bound")
	fs.Float64("maxRequestsPerStream", c.RequestsPerSecond,
		"requests of one stream that are taken in a second, ten times as many at once; others wait; 0: no bound")
	fs.Duration("idleTimeout", c.IdleTimeout, "close a connection without a stream, and a stream without a request, after this time; 0: never")
	fs.Int("maxConnections", c.Connections, "connections that xDS clients may have, as long as enough open files are left for plugins; 0: no other bound")
	fs.Int("maxUnfinishedBytes", c.UnfinishedBytes,
		"bytes of all clients' requests that have begun to come and aren't complete; at most a quarter of memoryLimit; 0: no other bound")
	fs.Int("maxStreamsPerConnection", c.StreamsPerConn, "streams that one connection may have; 0: no bound")
}
