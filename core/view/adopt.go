package view

// Adopt puts bodies in the place of others that mean the same, so that what a client has of another
// session keeps its bytes and its version. The session's later bodies of the same content are
// replaced, too.
func (vs *Views) Adopt(instead map[*Body]*Body) {
	if len(instead) == 0 {
		return
	}
	vs.bodies.adopt(instead)
	swapped := map[*part]bool{}
	for _, p := range vs.parts {
		var changed bool
		if p.set, changed = p.set.replace(instead); changed {
			swapped[p] = true
		}
	}
	for _, v := range vs.views {
		own, changed := v.own.replace(instead)
		v.own = own
		for _, id := range v.parts {
			changed = changed || swapped[vs.part(id)]
		}
		if changed {
			vs.dirty[v] = true
		}
	}
}

// replace returns the set with bodies in the place of others of their name.
func (s *Set) replace(instead map[*Body]*Body) (*Set, bool) {
	var out []*Body
	for i, b := range s.Bodies() {
		if to := instead[b]; to != nil {
			if out == nil {
				out = append(out, s.bodies...)
			}
			out[i] = to
		}
	}
	if out == nil {
		return s, false
	}
	return &Set{bodies: out, lineage: first()}, true
}

// adopt keeps which bodies stand for which. Where one of the session's is replaced, instead has
// what is counted in its place.
func (bs *Bodies) adopt(instead map[*Body]*Body) {
	for from, to := range instead {
		bs.adopted[from.version+from.name] = to
		if s := bs.refs[from]; s != nil {
			own := *to
			s.value = s.bytes()
			instead[from], s.body = &own, &own
			delete(bs.refs, from)
			bs.refs[&own] = s
		}
	}
}

// adoptedAs returns the body that stands for one of this content.
func (bs *Bodies) adoptedAs(b *Body) *Body {
	if to := bs.adopted[b.version+b.name]; to != nil {
		own := *to
		return &own
	}
	return b
}
