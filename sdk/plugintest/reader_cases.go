package plugintest

import (
	"fmt"
	"maps"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// readerCases are for those that make something of rows: derivers and generators. The law: however
// the rows came to be, what is made of them is what a fresh start makes.
func readerCases() []suiteCase {
	return []suiteCase{
		{"empty state", (*kit).emptyState},
		{"differences", (*kit).stateDifferences},
		{"flapping", (*kit).stateFlapping},
		{"skipped revisions", (*kit).skippedRevisions},
		{"many endpoints", (*kit).stateMany},
		{"secrets in words", secretsInWords},
		{"large rows that it reads", (*kit).largeRowsRead},
	}
}

func (k *kit) emptyState() {
	h := k.start()
	h.Commit()
	k.said(h)
}

// said is what the plugin makes of the rows that it has.
func (k *kit) said(h *Harness) map[string]string {
	if h.Ready().Kind.Generates() {
		return k.resources(h)
	}
	return k.published(h)
}

// play sends numbers of endpoints, one State each, and compares with a fresh start that has the
// last alone.
func (k *kit) play(wait bool, numbers ...int) {
	h := k.start()
	h.Commit(k.world(h.Ready(), 0)...)
	k.said(h)
	var revision uint64
	before := 0
	for _, n := range numbers {
		revision = h.Send(k.step(h.Ready(), before, n)...)
		if wait {
			h.waitLongDone(revision)
		}
		before = n
	}
	h.waitLongDone(revision)
	fresh := k.start()
	fresh.waitLongDone(fresh.Send(k.world(fresh.Ready(), before)...))
	for _, d := range differences(k.said(fresh), k.said(h)) {
		h.failed("after these States the plugin says something else than after a fresh start with the same rows: %s", d)
	}
}

// waitLongDone is WaitDone of what may be many rows, for a plugin that says Done.
func (h *Harness) waitLongDone(revision uint64) {
	h.waitLong(fmt.Sprintf("Done of revision %d", revision), startTimeout, func() bool { return h.done[revision] })
}

// step is what differs between worlds of two numbers of endpoints.
func (k *kit) step(r *pb.Ready, from, to int) (rows []Rows) {
	if from <= to {
		return k.world(r, to)
	}
	kept := map[string]bool{}
	for _, t := range k.world(r, to) {
		for _, row := range t.Upserts {
			kept[t.Table+" "+row.Key] = true
		}
	}
	for _, t := range k.world(r, from) {
		gone := Rows{Table: t.Table}
		for _, row := range t.Upserts {
			if !kept[t.Table+" "+row.Key] {
				gone.Deletes = append(gone.Deletes, row.Key)
			}
		}
		rows = append(rows, gone)
	}
	return rows
}

func (k *kit) stateDifferences() { k.play(true, 3, 4, 25, 24, 11, 2, 0, 5) }

func (k *kit) stateFlapping() { k.play(true, 1, 0, 1, 0, 1, 2, 1, 2, 1, 2, 0, 2) }

// skippedRevisions: States that come faster than they are dealt with may be taken together; the
// last one's Done covers them.
func (k *kit) skippedRevisions() { k.play(false, 1, 5, 30, 2, 0, 7, 3, 40, 41, 12) }

func (k *kit) stateMany() { k.play(true, k.Many, k.Many-1, 10) }

// generatorCases are about views.
func generatorCases() []suiteCase {
	return []suiteCase{
		{"early attach", (*kit).earlyAttach},
		{"overtaking endpoints", (*kit).overtaking},
		{"missing bodies", (*kit).missingBodies},
		{"drop and detach", (*kit).dropAndDetach},
	}
}

// attachOne connects the suite's proxy and waits for its placement. The case is skipped if the
// plugin refuses the node.
func (k *kit) attachOne(h *Harness) uint64 {
	h.mu.Lock()
	h.connection++
	connection := h.connection
	h.mu.Unlock()
	node := k.Node
	if node == nil {
		node = sidecar()
	}
	var types []string
	for _, t := range h.Ready().Types {
		types = append(types, t.Url)
	}
	h.send(&pb.FromCore{Attach: &pb.Attach{Connection: connection, Node: node, Types: types, RemoteAddress: "127.0.0.1:30000"}})
	h.waitLong("Place", startTimeout, func() bool { return h.placed[connection] != nil || h.refusal[connection] != "" })
	h.mu.Lock()
	why := h.refusal[connection]
	h.mu.Unlock()
	if why != "" {
		k.skip("the plugin refuses the node: " + why + "; name another one")
	}
	return connection
}

// resources wants everything of the views that a proxy is in.
func (k *kit) resources(h *Harness) map[string]string {
	connection := k.attachOne(h)
	found := map[string]string{}
	for typeURL, view := range h.Placement(connection) {
		names := append([]string{"no-such-resource"}, k.Names[typeURL]...)
		h.Want(typeURL, view, names...)
		if wildcard(h.Ready(), typeURL) {
			h.Want(typeURL, view)
		}
		all := h.View(view)
		for _, name := range names {
			if _, ok := all[name]; !ok && !h.unnamed(typeURL) {
				h.failed("%s %q was wanted and Wanted was said, but no Change said whether it is there", last(typeURL), name)
			}
		}
		for name, body := range all {
			if body != nil {
				found[last(typeURL)+" "+name] = string(body)
			}
		}
	}
	return found
}

// wildcard reports whether everything of a type may be wanted (docs/contract.md, "Types and
// traits").
func wildcard(r *pb.Ready, typeURL string) bool {
	for _, t := range r.Types {
		if t.Url == typeURL && t.Traits != nil {
			return t.Traits.Wildcard
		}
	}
	switch last(typeURL) {
	case "Cluster", "Listener", "NameTable":
		return true
	}
	return false
}

func (h *Harness) unnamed(typeURL string) bool { return last(typeURL) == "NameTable" }

// earlyAttach: a proxy may be there before the first State.
func (k *kit) earlyAttach() {
	h := k.start()
	h.mu.Lock()
	h.connection++
	h.mu.Unlock()
	node := k.Node
	if node == nil {
		node = sidecar()
	}
	h.send(&pb.FromCore{Attach: &pb.Attach{Connection: h.connection, Node: node, Types: []string{h.Ready().Types[0].Url}}})
	k.feed(h, 3)
	h.wait("Place, by the first Done", func() bool { return h.placed[1] != nil || h.refusal[1] != "" })
}

// overtaking endpoints are answered with a Done of their own, and are in what comes later too.
func (k *kit) overtaking() {
	h := k.start()
	k.feed(h, 3)
	k.resources(h)
	var endpoints []*sdk.Row
	for _, t := range k.world(h.Ready(), 8) {
		if t.Table == state.Endpoints {
			endpoints = t.Upserts
		}
	}
	if endpoints == nil {
		k.skip("the plugin does not read endpoints")
	}
	h.WaitDone(h.Overtake(endpoints))
	h.Commit()
	fresh := k.start()
	fresh.Commit(k.world(fresh.Ready(), 8)...)
	for _, d := range differences(k.resources(fresh), k.resources(h)) {
		h.failed("after endpoints that overtook the plugin says something else than a fresh start: %s", d)
	}
}

// missingBodies are sent again, with the Change that names them.
func (k *kit) missingBodies() {
	h := k.start()
	k.feed(h, 3)
	before := k.resources(h)
	h.mu.Lock()
	ids := make([]uint64, 0, len(h.bodies))
	for id := range maps.Keys(h.bodies) {
		if id != 0 {
			ids = append(ids, id)
		}
	}
	h.mu.Unlock()
	if len(ids) == 0 {
		k.skip("the plugin made no resource of what it was given")
	}
	h.ForgetBodies()
	h.send(&pb.FromCore{Missing: &pb.Missing{Bodies: ids}})
	h.wait("the bodies again", func() bool {
		for _, id := range ids {
			if _, ok := h.bodies[id]; !ok {
				return false
			}
		}
		return true
	})
	for _, d := range differences(before, k.resources(h)) {
		h.failed("after Missing: %s", d)
	}
}

// dropAndDetach: what nobody wants is let go, and a proxy that comes again is served again.
func (k *kit) dropAndDetach() {
	h := k.start()
	k.feed(h, 3)
	before := k.resources(h)
	for typeURL, view := range h.Placement(1) {
		h.DropView(typeURL, view)
	}
	h.Detach(1)
	k.feed(h, 3)
	for _, d := range differences(before, k.resources(h)) {
		h.failed("a proxy that came again: %s", d)
	}
}
