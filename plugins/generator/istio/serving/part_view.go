package serving

import (
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// partView is the content of a view of a type whose resources are a set: it lists parts. Names that
// were asked for one by one, and that no part has, are own entries without a body.
type partView struct {
	e     *Engine
	v     *view
	scope scope.Scope
	keys  []partKey
	// parts are there while anything is wanted.
	parts   []*part
	told    bool
	closed  bool
	names   map[string]bool
	missing map[string]bool
	// before is the view that connections came from, until the first answer; kept are its resources
	// that stay because what would be in their place is refused.
	before *partView
	kept   map[string][]byte
}

func newPartView(e *Engine, v *view, s scope.Scope, keys []partKey) *partView {
	return &partView{e: e, v: v, scope: s, keys: keys, names: map[string]bool{}, missing: map[string]bool{}, kept: map[string][]byte{}}
}

func (p *partView) want(names []string) {
	for _, n := range names {
		p.names[n] = true
	}
	if p.parts != nil {
		return
	}
	p.e.use(p.scope)
	for _, k := range p.keys {
		p.parts = append(p.parts, p.e.views.part(k, p))
	}
}

func (p *partView) answer(_ []string, out sdk.Output) {
	if !p.told {
		p.told = true
		ids := make([]uint64, len(p.parts))
		for i, part := range p.parts {
			ids[i] = part.id
			part.tell(p.had, out)
		}
		out.Change(p.v.typeURL, p.v.id, ids, p.keep(), nil)
	}
	p.tellAbsent(out)
}

// follow implements content.
func (p *partView) follow(before content) {
	if b, ok := before.(*partView); ok && !p.told {
		p.before = b
	}
}

// had is a resource of the view before; nil where there is none.
func (p *partView) had(name string) []byte {
	if p.before == nil {
		return nil
	}
	return p.before.body(name)
}

// keep takes over what the view before had, and this one has not because it is refused.
func (p *partView) keep() []sdk.Resource {
	var out []sdk.Resource
	if p.before != nil {
		for _, n := range p.e.holds.names(p.v.typeURL) {
			if b := p.before.body(n); b != nil && p.body(n) == nil {
				p.kept[n] = b
				out = append(out, sdk.Resource{Name: n, Body: b})
			}
		}
	}
	p.before = nil
	p.e.holds.hold(p, len(p.kept) > 0)
	return out
}

// review implements holder.
func (p *partView) review(out sdk.Output) { p.tellAbsent(out) }

// tellAbsent says of each name asked for whether it is absent, and lets go what needn't be kept any
// more.
func (p *partView) tellAbsent(out sdk.Output) {
	var absent []sdk.Resource
	found := p.letGo()
	for _, n := range sortedNames(p.names) {
		there := p.has(n)
		switch {
		case !there && !p.missing[n]:
			p.missing[n] = true
			absent = append(absent, sdk.Resource{Name: n})
		case there && p.missing[n]:
			delete(p.missing, n)
			found = append(found, n)
		}
	}
	if len(absent)+len(found) > 0 {
		out.Change(p.v.typeURL, p.v.id, nil, absent, found)
	}
}

func (p *partView) letGo() []string {
	var gone []string
	for _, n := range sortedNames(p.kept) {
		if p.inParts(n) != nil || !p.e.holds.refused[resourceName{p.v.typeURL, n}] {
			delete(p.kept, n)
			gone = append(gone, n)
		}
	}
	p.e.holds.hold(p, len(p.kept) > 0)
	return gone
}

func (p *partView) has(name string) bool { return p.body(name) != nil }

// body is a resource as it was told; nil for one that isn't there.
func (p *partView) body(name string) []byte {
	if b := p.inParts(name); b != nil {
		return b
	}
	return p.kept[name]
}

func (p *partView) inParts(name string) []byte {
	for _, part := range p.parts {
		if b, ok := part.bodies[name]; ok {
			return b
		}
	}
	return nil
}

// drop forgets names. The parts stay until the view is gone: the core drops a view that nobody
// uses.
func (p *partView) drop(names []string) {
	for _, n := range names {
		delete(p.names, n)
		delete(p.missing, n)
	}
}

func (p *partView) close() {
	if p.parts == nil || p.closed {
		return
	}
	p.closed = true
	for _, part := range p.parts {
		p.e.views.release(part, p)
	}
	p.e.holds.hold(p, false)
	p.e.release(p.scope)
}
