package plugintest

import (
	"maps"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Attach connects a proxy and returns its placement: view number by type. Types must be set to what
// is to be served. The number of the connection is chosen if it is 0. The test fails if the plugin
// refuses the proxy.
func (h *Harness) Attach(p *sdk.Proxy) map[string]uint64 {
	h.t.Helper()
	h.attach(p)
	if why := h.refusal[p.Connection]; why != "" {
		h.t.Fatalf("the plugin refused connection %d: %s", p.Connection, why)
	}
	return h.Placement(p.Connection)
}

// AttachRefused connects a proxy that the plugin is expected to refuse, and returns why.
func (h *Harness) AttachRefused(p *sdk.Proxy) string {
	h.t.Helper()
	h.attach(p)
	if h.refusal[p.Connection] == "" {
		h.t.Fatalf("the plugin took connection %d", p.Connection)
	}
	return h.refusal[p.Connection]
}

// attach attaches and waits until the plugin has dealt with it.
func (h *Harness) attach(p *sdk.Proxy) {
	h.t.Helper()
	h.mu.Lock()
	if p.Connection == 0 {
		h.connection++
		p.Connection = h.connection
	}
	h.mu.Unlock()
	a := &pb.Attach{
		Connection: p.Connection, Node: p.Node, Identities: p.Identities, RemoteAddress: p.RemoteAddress, Types: p.Types,
	}
	if len(p.Extensions) > 0 {
		a.Extensions = h.nextID()
		h.send(&pb.FromCore{Extensions: &pb.Extensions{Id: a.Extensions, Names: p.Extensions}})
	}
	h.send(&pb.FromCore{Attach: a})
	h.Settle()
}

// Settle waits until the plugin has dealt with everything that was sent to it.
func (h *Harness) Settle() {
	h.t.Helper()
	id := h.nextID()
	// A question of no type is answered in order, after all that came before.
	h.send(&pb.FromCore{Ask: &pb.Ask{Id: id}})
	h.wait("an answer", func() bool { return h.answers[id] != nil })
}

// Detach disconnects a proxy.
func (h *Harness) Detach(connection uint64) {
	h.t.Helper()
	h.send(&pb.FromCore{Detach: &pb.Detach{Connection: connection}})
}

// Placement returns the views of a connection by type.
func (h *Harness) Placement(connection uint64) map[string]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := maps.Clone(h.placed[connection])
	maps.DeleteFunc(at, func(_ string, view uint64) bool { return view == 0 })
	return at
}

// Want asks for names of a view, all resources if there are none, and waits until they are
// answered.
func (h *Harness) Want(typeURL string, view uint64, names ...string) {
	h.t.Helper()
	id := h.nextID()
	h.send(&pb.FromCore{Want: &pb.Want{Id: id, Type: typeURL, View: view, Wildcard: len(names) == 0, Names: names}})
	h.wait("Wanted", func() bool { return h.wanted[id] })
}

// Drop takes back names of a view, the wildcard if there are none.
func (h *Harness) Drop(typeURL string, view uint64, names ...string) {
	h.t.Helper()
	h.send(&pb.FromCore{Drop: &pb.Drop{Type: typeURL, View: view, Wildcard: len(names) == 0, Names: names}})
}

// DropView says that a view is no longer used.
func (h *Harness) DropView(typeURL string, view uint64) {
	h.t.Helper()
	h.send(&pb.FromCore{Drop: &pb.Drop{Type: typeURL, View: view, All: true}})
}

// Resources wants resources (all if there are no names) of the view that a connection is in, and
// returns them by name; the value of a name that is known to be absent is nil.
func (h *Harness) Resources(connection uint64, typeURL string, names ...string) map[string][]byte {
	h.t.Helper()
	view := h.Placement(connection)[typeURL]
	if view == 0 {
		h.t.Fatalf("connection %d has no view of %s; it has %v", connection, typeURL, h.Placement(connection))
	}
	h.Want(typeURL, view, names...)
	all := h.View(view)
	if len(names) == 0 {
		return all
	}
	found := make(map[string][]byte, len(names))
	for _, n := range names {
		if b, ok := all[n]; ok {
			found[n] = b
		}
	}
	return found
}

// View returns the resources of a view as the plugin has reported them so far.
func (h *Harness) View(number uint64) map[string][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.resources(number)
}

// Facts returns the facts and the label that a view was described with.
func (h *Harness) Facts(number uint64) (label string, facts map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if v := h.views[number]; v != nil {
		return v.label, v.facts
	}
	return "", nil
}

// Bodies returns how many bodies the plugin has sent.
func (h *Harness) Bodies() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.bodies)
}

// ForgetBodies makes the harness forget all bodies, as a core that freed them.
func (h *Harness) ForgetBodies() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.bodies)
}

// Explain asks from which rows a resource was made.
func (h *Harness) Explain(typeURL string, view uint64, name string) *pb.Because {
	h.t.Helper()
	return h.ExplainPiece(&pb.Explain{Type: typeURL, View: view, Name: name})
}

// ExplainPiece asks from which rows a piece of a resource was made; it sets the question's id.
func (h *Harness) ExplainPiece(of *pb.Explain) *pb.Because {
	h.t.Helper()
	of.Id = h.nextID()
	h.send(&pb.FromCore{Explain: of})
	h.wait("Because", func() bool { return h.because[of.Id] != nil })
	return h.because[of.Id]
}

// Authenticate asks an authenticator who is calling.
func (h *Harness) Authenticate(c sdk.Credentials) *pb.Caller {
	h.t.Helper()
	id := h.nextID()
	h.send(&pb.FromCore{Authenticate: &pb.Authenticate{
		Id: id, Certificates: c.Certificates, Headers: c.Headers, RemoteAddress: c.RemoteAddress,
	}})
	var caller *pb.Caller
	h.wait("Caller", func() bool {
		caller = h.callers[id]
		return caller != nil
	})
	return caller
}

// Patch hands resources to a patch plugin.
func (h *Harness) Patch(typeURL string, facts map[string]string, resources ...sdk.Resource) *pb.Patched {
	h.t.Helper()
	id := h.nextID()
	m := &pb.Patch{Id: id, Type: typeURL, Facts: facts}
	for _, r := range resources {
		m.Resources = append(m.Resources, &pb.Resource{Name: r.Name, Bytes: r.Body})
	}
	h.send(&pb.FromCore{Patch: m})
	h.wait("Patched", func() bool { return h.patched[id] != nil })
	return h.patched[id]
}

func (h *Harness) nextID() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.id++
	return h.id
}
