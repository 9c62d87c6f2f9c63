package sdk

import "sync"

// placements are the views that connections were placed in, as far as the plugin has said. They tell a Drop of a view that nobody is in from one
// that crossed a Place.
type placements struct {
	mu    sync.Mutex
	views map[uint64]map[string]uint64 // by connection and type
	users map[viewNumber]int
	// kept are views that the core dropped while the plugin was placing a connection into them.
	kept map[viewNumber]bool
}

type viewNumber struct {
	typeURL string
	view    uint64
}

func newPlacements() *placements {
	return &placements{views: map[uint64]map[string]uint64{}, users: map[viewNumber]int{}, kept: map[viewNumber]bool{}}
}

// place notes a placement; view 0 takes it away.
func (p *placements) place(connection uint64, typeURL string, view uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.views[connection] == nil {
		p.views[connection] = map[string]uint64{}
	}
	p.leave(connection, typeURL)
	if view != 0 {
		p.views[connection][typeURL] = view
		p.users[viewNumber{typeURL, view}]++
	}
}

func (p *placements) leave(connection uint64, typeURL string) {
	old, ok := p.views[connection][typeURL]
	if !ok {
		return
	}
	delete(p.views[connection], typeURL)
	n := viewNumber{typeURL, old}
	if p.users[n]--; p.users[n] == 0 {
		delete(p.users, n)
	}
}

// detach forgets a connection, and returns views that were kept for it alone.
func (p *placements) detach(connection uint64) []viewNumber {
	p.mu.Lock()
	defer p.mu.Unlock()
	var free []viewNumber
	for typeURL, view := range p.views[connection] {
		p.leave(connection, typeURL)
		n := viewNumber{typeURL, view}
		if p.kept[n] && p.users[n] == 0 {
			delete(p.kept, n)
			free = append(free, n)
		}
	}
	delete(p.views, connection)
	return free
}

// keeps says whether a view that the core drops is to be kept: a connection is in it that the core had not seen there when it said so.
func (p *placements) keeps(typeURL string, view uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := viewNumber{typeURL, view}
	if p.users[n] == 0 {
		delete(p.kept, n)
		return false
	}
	p.kept[n] = true
	return true
}
