package control

import (
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

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
		Limits: Limits{Revision: l.Revision, Progress: l.Progress, Call: l.Call, Rows: int(l.Rows), RowBytes: int(l.RowBytes), Bytes: int(l.Bytes), Bodies: int(l.Bodies), Message: int(l.MessageBytes)},
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
