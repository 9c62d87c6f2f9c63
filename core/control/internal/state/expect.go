package state

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Expected is a plugin that is declared.
type Expected struct {
	Name string
	// Order is its place in plugins.yaml.
	Order int
	Kind  pb.Kind
	// Optional ones don't hold the first revision.
	Optional bool
	// Blocks: the core isn't ready while it is away (onFailure: block).
	Blocks bool
	// OnDemand: a generator that runs only while somebody asks for what it makes, or a source or
	// deriver that does while there are rows that it reads (start: onDemand).
	OnDemand bool
	// Guard is how much it may take away at once, LossApplies that it may take away anything
	// (onLoss: apply).
	Guard       guard.Guard
	LossApplies bool
	// Priority is that of its rows among those of others (merge); DropAfter how long they are
	// served while their source is away, 0: for ever (onLoss).
	Priority  int
	DropAfter time.Duration
	// Skips: a patch that may be left out where it can't answer (onFailure: skip).
	Skips bool
	// Headers that an authenticator wants of callers, besides those that each gets.
	Headers []string
	Limits  Limits
}

// Limits of one plugin.
type Limits struct {
	// Revision is how long it may take for a revision before it counts as hung and is started
	// again.
	Revision time.Duration
	// Progress is how long it may show no sign of life while it owes something.
	Progress time.Duration
	// Call is how long it may take for the answer to a call.
	Call time.Duration
	// Rows of its shard, the bytes of one and of all; 0: no limit. Message is the bytes of a
	// message.
	Rows, RowBytes, Bytes, Bodies, Message int
}

// Rules say which plugins serve which proxies.
type Rules struct {
	// Choose returns which of the generators that offer a type serves it to a node: the name of one
	// of offering, or "". named reports whether it asks for listeners by name (xds.Peer).
	Choose func(typeURL string, node *corev3.Node, named bool, offering []string) string
	// Patches returns the patches for a node, in the order in which they apply; nil: there are
	// none.
	Patches func(typeURL string, node *corev3.Node) []string
}

// Expect returns what control must know of an entry at its place in the file.
func Expect(e *manifest.Entry, order int) Expected {
	l := e.Limits
	var headers []string
	for _, h := range e.Headers {
		headers = append(headers, string(h))
	}
	return Expected{
		Headers: headers,
		Name:    e.Name, Order: order, Kind: e.Kind.Proto(), Optional: e.Optional, Blocks: e.OnFailure == "block", Skips: e.OnFailure == "skip",
		OnDemand: e.Start == manifest.OnDemand, Guard: guardOf(e), LossApplies: e.LossApplies(),
		Priority: e.Priority(), DropAfter: e.DropAfter(),
		Limits: Limits{
			Revision: l.Revision, Progress: l.Progress, Call: l.Call, Rows: int(l.Rows), RowBytes: int(l.RowBytes),
			Bytes: int(l.Bytes), Bodies: int(l.Bodies), Message: int(l.MessageBytes),
		},
	}
}

// ExpectAll returns what control must know of the entries that run.
func ExpectAll(set *manifest.Set) []Expected {
	var all []Expected
	for i, e := range set.Plugins {
		if e.Runs() {
			all = append(all, Expect(e, i))
		}
	}
	return all
}

// RulesOf returns the rules that a set of entries makes.
func RulesOf(set *manifest.Set) Rules {
	return Rules{Choose: set.Choose, Patches: func(typeURL string, node *corev3.Node) []string {
		var names []string
		for _, e := range set.Patches(node) {
			if e.Serves(typeURL) {
				names = append(names, e.Name)
			}
		}
		return names
	}}
}

// guardOf is an entry's guard, or the default.
func guardOf(e *manifest.Entry) guard.Guard {
	if e.Guard != nil && e.Guard.MaxRemoved != (manifest.Share{}) {
		return guard.Guard{MaxRemoved: guard.Share(e.Guard.MaxRemoved)}
	}
	return guard.Default()
}
