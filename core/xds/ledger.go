package xds

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// StreamLedger is what became of each resource of a stream.
type StreamLedger struct {
	Connection uint64       `json:"connection"`
	Node       string       `json:"node"`
	Since      time.Time    `json:"since"`
	Types      []TypeLedger `json:"types"`
}

// TypeLedger is what became of each resource of a type.
type TypeLedger struct {
	Type      string           `json:"type"`
	Resources []ResourceStatus `json:"resources"`
}

// ResourceStatus is what became of a resource that a stream is to have.
type ResourceStatus struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	State   State  `json:"state"`
	// Since is when it was sent, refused or, with all of its type, last acknowledged.
	Since time.Time `json:"since,omitzero"`
	// Revision that it was sent for.
	Revision uint64 `json:"revision,omitempty"`
	// Reason is why it was refused, Has the version that the client has instead; empty: none.
	Reason string `json:"reason,omitempty"`
	Has    string `json:"has,omitempty"`
}

// State of a resource of a stream.
type State string

// Acked: the client has accepted it. Pending: it was sent, and not answered yet. Queued: it is to
// be sent, after what comes before it. Refused: the client refused it, and has what it had before.
// Trying: it was refused with others, and which of them is at fault is being found out.
const (
	Acked   State = "acked"
	Pending State = "pending"
	Queued  State = "queued"
	Refused State = "refused"
	Trying  State = "trying"
)

// Ledger says what became of each resource of a node's streams.
func (s *Server) Ledger(node string) []StreamLedger {
	out := []StreamLedger{}
	for _, st := range s.snapshot() {
		if st.node.GetId() != node {
			continue
		}
		answer := make(chan StreamLedger, 1)
		select {
		case st.inspect <- func() { answer <- st.ledger() }:
			out = append(out, <-answer)
		case <-st.done:
		}
	}
	return out
}

func (st *stream) ledger() StreamLedger {
	out := StreamLedger{Connection: st.connection.ID(), Node: st.node.Id, Since: st.since.UTC(), Types: []TypeLedger{}}
	for _, w := range st.machine.watches {
		out.Types = append(out.Types, TypeLedger{w.url, ledger(st.machine, w)})
	}
	return out
}

// ledger says what became of each resource that the client is to have of a type.
func ledger(m *machine, w *watch) []ResourceStatus {
	out := []ResourceStatus{}
	accepted := m.common.memo.content(w.acked.to).bodies
	for _, b := range resolve(situation{m.newest.Types[w.url], w.subscription}).bodies {
		if b.Exists() {
			out = append(out, resourceStatus(m, w, b, accepted))
		}
	}
	return out
}

func resourceStatus(m *machine, w *watch, b *view.Body, accepted []*view.Body) ResourceStatus {
	r := ResourceStatus{Name: b.Name(), Version: b.Version(), State: Queued}
	same := func(bodies []*view.Body) bool {
		x, ok := find(bodies, b)
		return ok && x.Version() == b.Version()
	}
	for _, c := range w.held.culprits {
		if c.body.Name() != b.Name() || c.body.Version() != b.Version() {
			continue
		}
		if r.State, r.Since, r.Reason = Refused, c.since.UTC(), c.reason; c.group != 0 || c.pardoned {
			r.State = Trying
		}
		if c.instead != nil {
			r.Has = c.instead.Version()
		}
		return r
	}
	for _, f := range w.flights {
		if same(m.common.memo.content(f.to).bodies) && !same(accepted) {
			r.State, r.Since, r.Revision = Pending, f.since.UTC(), f.number
			return r
		}
	}
	switch {
	case same(accepted):
		r.State, r.Since, r.Revision, r.Has = Acked, w.acked.since.UTC(), w.acked.number, r.Version
	case w.refused != "" && same(m.common.memo.content(w.sent).bodies):
		r.State, r.Reason = Refused, w.refused
	}
	return r
}
