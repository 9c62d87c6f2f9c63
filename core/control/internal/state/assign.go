package state

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// Assign chooses a generator for each type that is offered, among declared plugins that have once
// been ready.
func (r *Roster) Assign(conn *Connection) { conn.Generators = r.Assignment(conn, r.Rules, nil) }

// Assignment chooses a generator for each type; instead stands for the plugin of its name.
func (r *Roster) Assignment(conn *Connection, rules Rules, instead *Plugin) map[string]string {
	offering := map[string][]string{}
	for _, k := range r.Sorted() {
		if instead != nil && k.Name() == instead.Name() {
			k = instead
		}
		if k.Kind().Generates() && k.Ready != nil {
			for _, t := range k.Ready.Types {
				offering[t.Url] = append(offering[t.Url], k.Name())
			}
		}
	}
	chosen := make(map[string]string, len(offering))
	for url, names := range offering {
		if name := rules.Choose(url, conn.Peer.Node, conn.Peer.Names, names); name != "" {
			chosen[url] = name
		}
	}
	return chosen
}

// TypesOf returns the types that an assignment gives to a generator, sorted.
func TypesOf(assignment map[string]string, name string) []string {
	var types []string
	for url, n := range assignment {
		if n == name {
			types = append(types, url)
		}
	}
	slices.Sort(types)
	return types
}

// NewConnection adds a connection of a peer, whose node is encoded, with the hash of its extensions
// (EncodeNode).
func (s *State) NewConnection(p xds.Peer, node []byte, extensions uint64, wake func(xds.Wake)) *Connection {
	cs := s.Connections
	cs.Last++
	conn := &Connection{
		Roster: s.Roster, ID: cs.Last, Peer: p, Node: node, Extensions: extensions, Since: s.Clock.Now(), Wake: wake,
		Generators: map[string]string{}, Attached: map[string]bool{}, Subs: map[string]placement.Wish{},
		Outcomes: map[string]Outcome{}, Seen: map[string]*view.Snapshot{},
	}
	cs.All[conn.ID] = conn
	s.Roster.Assign(conn)
	return conn
}
