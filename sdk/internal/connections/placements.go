// Package connections has what a generator's session knows of connections: the views that they were
// placed in, and the lists of Envoy extensions that they have.
package connections

import "sync"

// Placements are the views that connections were placed in, as far as the plugin has said. They
// tell a Drop of a view that nobody is in from one that crossed a Place.
type Placements struct {
	mu    sync.Mutex
	views map[uint64]map[string]uint64 // by connection and type
	users map[View]int
	// kept are views that the core dropped while the plugin was placing a connection into them.
	kept map[View]bool
}

// View is a view of a type, by its number.
type View struct {
	Type string
	View uint64
}

// NewPlacements returns none.
func NewPlacements() *Placements {
	return &Placements{views: map[uint64]map[string]uint64{}, users: map[View]int{}, kept: map[View]bool{}}
}

// Place notes a placement; view 0 takes it away.
func (p *Placements) Place(connection uint64, typeURL string, view uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.views[connection] == nil {
		p.views[connection] = map[string]uint64{}
	}
	p.leave(connection, typeURL)
	if view != 0 {
		p.views[connection][typeURL] = view
		p.users[View{typeURL, view}]++
	}
}

func (p *Placements) leave(connection uint64, typeURL string) {
	old, ok := p.views[connection][typeURL]
	if !ok {
		return
	}
	delete(p.views[connection], typeURL)
	n := View{typeURL, old}
	if p.users[n]--; p.users[n] == 0 {
		delete(p.users, n)
	}
}

// Detach forgets a connection, and returns views that were kept for it alone.
func (p *Placements) Detach(connection uint64) []View {
	p.mu.Lock()
	defer p.mu.Unlock()
	var free []View
	for typeURL, view := range p.views[connection] {
		p.leave(connection, typeURL)
		n := View{typeURL, view}
		if p.kept[n] && p.users[n] == 0 {
			delete(p.kept, n)
			free = append(free, n)
		}
	}
	delete(p.views, connection)
	return free
}

// Keeps reports whether a view that the core drops is to be kept: a connection is in it that the
// core had not seen there when it said so.
func (p *Placements) Keeps(typeURL string, view uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := View{typeURL, view}
	if p.users[n] == 0 {
		delete(p.kept, n)
		return false
	}
	p.kept[n] = true
	return true
}
