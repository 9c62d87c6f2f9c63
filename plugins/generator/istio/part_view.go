package istio

import (
	"github.com/coxswain-mesh/coxswain/sdk"
)

// partView is the content of a view of a type whose resources are a set: it lists parts. Names that were asked for one by
// one, and that no part has, are own entries without a body.
type partView struct {
	e     *engine
	v     *view
	scope Scope
	keys  []partKey
	// parts are there while anything is wanted.
	parts   []*part
	told    bool
	names   map[string]bool
	missing map[string]bool
}

func newPartView(e *engine, v *view, s Scope, keys []partKey) *partView {
	return &partView{e: e, v: v, scope: s, keys: keys, names: map[string]bool{}, missing: map[string]bool{}}
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
			part.tell(out)
		}
		out.Change(p.v.typeURL, p.v.id, ids, nil, nil)
	}
	p.settle(out)
}

// settle says of each name asked for whether it is absent.
func (p *partView) settle(out sdk.Output) {
	var absent []sdk.Resource
	var found []string
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

func (p *partView) has(name string) bool {
	for _, part := range p.parts {
		if _, ok := part.bodies[name]; ok {
			return true
		}
	}
	return false
}

// drop forgets names. The parts stay until the view is gone: the core drops a view that nobody uses.
func (p *partView) drop(names []string) {
	for _, n := range names {
		delete(p.names, n)
		delete(p.missing, n)
	}
}

func (p *partView) close() {
	if p.parts == nil {
		return
	}
	for _, part := range p.parts {
		p.e.views.release(part, p)
	}
	p.parts = nil
	p.e.release(p.scope)
}
