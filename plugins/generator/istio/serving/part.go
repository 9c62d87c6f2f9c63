package serving

import (
	"bytes"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/clusters"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/held"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listeners"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/nametables"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// part is a set of resources that views share.
type part struct {
	e       *Engine
	id      uint64
	key     partKey
	typeURL string
	views   map[*partView]bool
	root    source
	told    bool
	// bodies are the resources as they were told, held those that are there only because what would
	// be in their place is refused.
	bodies map[string][]byte
	held   map[string]bool
}

// source is a root, read as resources.
type source interface {
	// observed is the root; waves name it.
	observed() incr.Observed
	Close()
	// delta returns what changed since it was told before.
	delta(told map[string][]byte) (upserts []sdk.Resource, removes []string)
	all() []sdk.Resource
	explain(name string) (incr.Explanation, bool)
}

// partKey is one of the kinds of parts below.
type partKey interface {
	open(e *Engine) (typeURL string, root source)
	// closed is called when no view has the part any more.
	closed(e *Engine)
}

type (
	staticPart   clusters.StaticKey
	outboundPart clusters.Set
	inboundPart  clusters.InboundKey
	fixedPart    listeners.FixedKey
	listenerPart listeners.Set
	gatewayPart  listeners.GatewayKey
	namePart     nametables.View
	// What patches add.
	newClusterPart  patches.Added
	newListenerPart patches.Added
)

func (k staticPart) open(e *Engine) (string, source) {
	return encode.ClusterType, listOf(e.from.Clusters.Static, clusters.StaticKey(k))
}

func (k inboundPart) open(e *Engine) (string, source) {
	return encode.ClusterType, listOf(e.from.Clusters.Inbound, clusters.InboundKey(k))
}

func (k fixedPart) open(e *Engine) (string, source) {
	return encode.ListenerType, listOf(e.from.Listeners.Fixed, listeners.FixedKey(k))
}

func (k gatewayPart) open(e *Engine) (string, source) {
	return encode.ListenerType, listOf(e.from.Listeners.Gateways, listeners.GatewayKey(k))
}

func (k outboundPart) open(e *Engine) (string, source) {
	e.from.Clusters.Outbound.Sets.Set(clusters.Set(k), struct{}{})
	return encode.ClusterType, setOf(e.from.Clusters.Outbound.InSet.At(clusters.Set(k)), func(k clusters.Cluster) string { return k.Name })
}

func (k listenerPart) open(e *Engine) (string, source) {
	e.from.Listeners.Outbound.Sets.Set(listeners.Set(k), struct{}{})
	return encode.ListenerType, setOf(e.from.Listeners.Outbound.InSet.At(listeners.Set(k)), func(k listeners.Listener) string { return k.Bind.Name() })
}

func (k namePart) open(e *Engine) (string, source) {
	e.from.NameTables.Views.Set(nametables.View(k), struct{}{})
	return encode.NameTableType, listOf(e.from.NameTables.Of, nametables.View(k))
}

func (k newClusterPart) open(e *Engine) (string, source) {
	return encode.ClusterType, listOf(e.from.Additions.Clusters, patches.Added(k))
}

func (k newListenerPart) open(e *Engine) (string, source) {
	return encode.ListenerType, listOf(e.from.Additions.Listeners, patches.Added(k))
}

func (newClusterPart) closed(*Engine)  {}
func (newListenerPart) closed(*Engine) {}
func (staticPart) closed(*Engine)      {}
func (inboundPart) closed(*Engine)     {}
func (fixedPart) closed(*Engine)       {}
func (gatewayPart) closed(*Engine)     {}

func (k outboundPart) closed(e *Engine) { e.from.Clusters.Outbound.Sets.Delete(clusters.Set(k)) }
func (k namePart) closed(e *Engine)     { e.from.NameTables.Views.Delete(nametables.View(k)) }
func (k listenerPart) closed(e *Engine) { e.from.Listeners.Outbound.Sets.Delete(listeners.Set(k)) }

// part returns the part of a key, which a view uses from now on.
func (s *views) part(k partKey, v *partView) *part {
	p := s.parts[k]
	if p == nil {
		s.next++
		p = &part{e: s.e, id: s.next, key: k, views: map[*partView]bool{}, bodies: map[string][]byte{}, held: map[string]bool{}}
		p.typeURL, p.root = k.open(s.e)
		s.e.watch(p.root.observed(), p)
		s.parts[k] = p
	}
	p.views[v] = true
	return p
}

func (s *views) release(p *part, v *partView) {
	delete(p.views, v)
	if len(p.views) > 0 {
		return
	}
	delete(s.parts, p.key)
	s.e.holds.hold(p, false)
	s.e.unwatch(p.root.observed())
	p.root.Close()
	p.key.closed(s.e)
}

// tell reports the whole part, once; before is what the first view that has it had of a resource.
func (p *part) tell(before func(name string) []byte, out sdk.Output) {
	if p.told {
		return
	}
	p.told = true
	all := p.fill(p.root.all(), before)
	for _, r := range all {
		p.bodies[r.Name] = r.Body
	}
	out.Part(p.typeURL, p.id, all, nil)
}

// fill puts into resources of which something is refused what was there of it before; what can't be
// served without is left out.
func (p *part) fill(list []sdk.Resource, before func(name string) []byte) []sdk.Resource {
	if p.typeURL != encode.ListenerType {
		return list
	}
	out := make([]sdk.Resource, 0, len(list))
	for _, r := range list {
		if p.e.holds.refused[resourceName{p.typeURL, r.Name}] {
			r.Body = held.FillListener(r.Body, before(r.Name))
		}
		if r.Body != nil {
			out = append(out, r)
		}
	}
	return out
}

// report implements watcher. What nobody was told yet is told with the first answer.
func (p *part) report(out sdk.Output) {
	if !p.told {
		return
	}
	upserts, removes := p.root.delta(p.bodies)
	upserts = p.fill(upserts, func(name string) []byte { return p.bodies[name] })
	upserts = slices.DeleteFunc(upserts, func(r sdk.Resource) bool { return bytes.Equal(r.Body, p.bodies[r.Name]) && !p.held[r.Name] })
	for _, r := range upserts {
		p.bodies[r.Name] = r.Body
		delete(p.held, r.Name)
	}
	for _, n := range removes {
		p.held[n] = true
	}
	p.publish(upserts, out)
}

// review implements holder.
func (p *part) review(out sdk.Output) { p.publish(nil, out) }

// publish tells what is new, and takes away what is gone and not held.
func (p *part) publish(upserts []sdk.Resource, out sdk.Output) {
	var removes []string
	for _, n := range sortedNames(p.held) {
		if !p.e.holds.refused[resourceName{p.typeURL, n}] {
			removes = append(removes, n)
			delete(p.bodies, n)
			delete(p.held, n)
		}
	}
	p.e.holds.hold(p, len(p.held) > 0)
	if len(upserts)+len(removes) > 0 {
		out.Part(p.typeURL, p.id, upserts, removes)
	}
	for v := range p.views {
		v.tellAbsent(out)
	}
}

// list is a root whose value is a short list of resources.
type list[K comparable] struct {
	*incr.Root[K, []sdk.Resource]
	from *incr.Func[K, []sdk.Resource]
}

func listOf[K comparable](from *incr.Func[K, []sdk.Resource], k K) list[K] {
	return list[K]{incr.Observe(from, k), from}
}

func (l list[K]) explain(string) (incr.Explanation, bool) {
	return incr.Explain(l.from, l.Key(), explainLimit)
}

func (l list[K]) observed() incr.Observed { return l.Root }

func (l list[K]) all() []sdk.Resource {
	out, _ := l.Value()
	return out
}

func (l list[K]) delta(told map[string][]byte) (upserts []sdk.Resource, removes []string) {
	now := map[string]bool{}
	for _, r := range l.all() {
		now[r.Name] = true
		if !bytes.Equal(told[r.Name], r.Body) {
			upserts = append(upserts, r)
		}
	}
	for _, n := range sortedNames(told) {
		if !now[n] {
			removes = append(removes, n)
		}
	}
	return upserts, removes
}

// set is a root whose elements are the resources.
type set[K comparable] struct {
	*incr.SetRoot[K, []byte]
	from incr.Collection[K, []byte]
	name func(K) string
}

func setOf[K comparable](from incr.Collection[K, []byte], name func(K) string) set[K] {
	return set[K]{incr.ObserveAll(from), from, name}
}

func (s set[K]) explain(name string) (incr.Explanation, bool) {
	for _, item := range s.Items() {
		if s.name(item.Key) == name {
			return incr.Explain(s.from, item.Key, explainLimit)
		}
	}
	return incr.Explanation{}, false
}

func (s set[K]) observed() incr.Observed { return s.SetRoot }

func (s set[K]) all() []sdk.Resource { return s.resources(s.Items()) }

func (s set[K]) resources(items []incr.Item[K, []byte]) []sdk.Resource {
	out := make([]sdk.Resource, len(items))
	for i, item := range items {
		out[i] = sdk.Resource{Name: s.name(item.Key), Body: item.Value}
	}
	return out
}

func (s set[K]) delta(map[string][]byte) (upserts []sdk.Resource, removes []string) {
	items, gone := s.Delta()
	for _, k := range gone {
		removes = append(removes, s.name(k))
	}
	return s.resources(items), removes
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
