package trial

import (
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// Refusals counts the proxies that refuse what a switch has changed for them. C stands for their
// streams.
type Refusals[C comparable] struct {
	// from is the revision of the switch.
	from uint64
	// before is what streams had, until that revision is served; changed is what it then changed,
	// for each of these streams.
	before  map[C]map[string]*view.Snapshot
	changed map[C]map[string]changes
	// by are the streams that refuse, by the namespace and the identity that speak for them.
	by    map[string]map[string]map[C]bool
	lines []string
	limit guard.Share
	over  bool
}

// Electorate is who is connected and has a vote: how many streams each identity has, by namespace.
type Electorate struct {
	Streams map[string]map[string]int
	// Operators is the namespace of those who run the control plane.
	Operators string
}

// changes are resources that a switch changed: the version by name, empty where the resource went.
type changes map[string]string

// Refusal is that of a response.
type Refusal[C comparable] struct {
	Stream             C
	Node, Type, Reason string
	// Identity and Namespace are whose vote it is; empty: nobody's.
	Identity, Namespace string
	// Revision is that of the response, Accepted that of the last one of the type that the stream
	// has accepted.
	Revision, Accepted uint64
	// Has is what the stream gets of the type, and Wish what it asks for of that.
	Has *view.Snapshot
	placement.Wish
}

// NewRefusals begins to count from the revision of a switch on. before is what streams have of each
// type until then; it is not kept.
func NewRefusals[C comparable](from uint64, before map[C]map[string]*view.Snapshot) *Refusals[C] {
	return &Refusals[C]{from: from, before: before, by: map[string]map[string]map[C]bool{}}
}

// From is the revision of the switch.
func (r *Refusals[C]) From() uint64 { return r.from }

// Served notes that a revision is served, and finds out what the switch has changed if it is that
// one or a later one; has returns what a stream gets now.
func (r *Refusals[C]) Served(revision uint64, has func(C) map[string]*view.Snapshot) {
	if r.changed != nil || revision < r.from {
		return
	}
	type pair struct{ was, is *view.Snapshot } // streams share snapshots: each pair of them is compared once
	found := map[pair]changes{}
	r.changed = make(map[C]map[string]changes, len(r.before))
	for conn, before := range r.before {
		of, visible := map[string]changes{}, has(conn)
		types := maps.Collect(maps.All(before))
		maps.Copy(types, visible)
		for url := range types {
			p := pair{before[url], visible[url]}
			if _, ok := found[p]; !ok && p.was != p.is {
				found[p] = changesBetween(p.was, p.is)
			}
			if ch := found[p]; len(ch) > 0 {
				of[url] = ch
			}
		}
		r.changed[conn] = of
	}
	r.before = nil
}

func changesBetween(was, is *view.Snapshot) changes {
	ch := changes{}
	for _, b := range is.Bodies() {
		if old := was.Get(b.Name()); old == nil || old.Version() != b.Version() {
			ch[b.Name()] = b.Version()
		}
	}
	for _, old := range was.Bodies() {
		if b := is.Get(old.Name()); b == nil || !b.Exists() {
			ch[old.Name()] = ""
		}
	}
	return ch
}

// Refused takes a refusal of a proxy that had refused nothing of the type before, and reports
// whether there are too many now. It does so once.
func (r *Refusals[C]) Refused(o Refusal[C], all Electorate) (over bool) {
	if o.Namespace == "" || !r.concerns(o) {
		return false
	}
	of := r.by[o.Namespace]
	if of == nil {
		of = map[string]map[C]bool{}
		r.by[o.Namespace] = of
	}
	if of[o.Identity] == nil {
		of[o.Identity] = map[C]bool{}
	}
	of[o.Identity][o.Stream] = true
	if len(r.lines) < guard.Examples {
		r.lines = append(r.lines, fmt.Sprintf("%s refused %s: %s", o.Node, o.Type, budget.Line(o.Reason, 1000)))
	}
	return r.check(all)
}

// concerns reports whether a refusal may be about what the switch changed: the stream has some of
// that, and has not accepted it yet. What a later revision changed again, or changed alone, is not
// the switch's doing.
func (r *Refusals[C]) concerns(o Refusal[C]) bool {
	if o.Revision < r.from || o.Accepted >= r.from {
		return false
	}
	if of, there := r.changed[o.Stream]; there {
		return o.about(of[o.Type], true)
	}
	// It came later: it was given what the others were.
	for _, of := range r.changed {
		if o.about(of[o.Type], false) {
			return true
		}
	}
	return false
}

// about reports whether any of the resources that the stream asks for is still as it was changed.
func (o Refusal[C]) about(ch changes, gone bool) bool {
	for name, version := range ch {
		if _, named := slices.BinarySearch(o.Names, name); !o.Wildcard && !named {
			continue
		}
		b := o.Has.Get(name)
		if b != nil && b.Exists() && b.Version() == version || gone && version == "" && (b == nil || !b.Exists()) {
			return true
		}
	}
	return false
}

// Limit says how many proxies may refuse, and reports whether there are more already.
func (r *Refusals[C]) Limit(limit guard.Share, all Electorate) (over bool) {
	r.limit = limit
	return r.check(all)
}

// Left notes that a stream has gone.
func (r *Refusals[C]) Left(stream C) {
	for _, of := range r.by {
		for _, streams := range of {
			delete(streams, stream)
		}
	}
}

func (r *Refusals[C]) check(all Electorate) bool {
	if r.over || r.limit == (guard.Share{}) {
		return false
	}
	refuse, proxies, namespaces := r.votes(all)
	if !r.limit.Exceeded(refuse, proxies) || len(namespaces) < min(2, len(all.Streams)) && !slices.Contains(namespaces, all.Operators) {
		return false
	}
	r.over = true
	return true
}

// votes are how many proxies refuse by their namespace's vote, of how many whose namespaces have
// one, and which namespaces refuse: those in which most identities do, most of whose streams do.
// One namespace alone speaks for no other, but for that of those who run the control plane.
func (r *Refusals[C]) votes(all Electorate) (refuse, proxies int, namespaces []string) {
	for ns, identities := range all.Streams {
		against, streams := 0, 0
		for identity, n := range identities {
			proxies += n
			if by := len(r.by[ns][identity]); 2*by > n {
				against++
				streams += by
			}
		}
		if 2*against > len(identities) {
			refuse += streams
			namespaces = append(namespaces, ns)
		}
	}
	return refuse, proxies, namespaces
}

// All is how many proxies refused, and what: one line for each proxy and type, some of many.
func (r *Refusals[C]) All() (proxies int, lines []string) {
	for _, of := range r.by {
		for _, streams := range of {
			proxies += len(streams)
		}
	}
	return proxies, append(lines, r.lines...)
}
