package xds

import (
	"cmp"
	"slices"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// StreamStatus is one connected stream, as /debug/streams shows it.
type StreamStatus struct {
	Connection uint64       `json:"connection"`
	Node       string       `json:"node"`
	Client     *core.Node   `json:"-"`
	Remote     string       `json:"remote"`
	Protocol   string       `json:"protocol"`
	Since      time.Time    `json:"since"`
	Types      []TypeStatus `json:"types"`
	// Names are those that it subscribes to, by type URL; they are sorted and never written to.
	Names map[string][]string `json:"-"`
}

// TypeStatus is what a stream has of a type.
type TypeStatus struct {
	Type     string `json:"type"`
	Wildcard bool   `json:"wildcard,omitempty"`
	Names    int    `json:"names,omitempty"`
	// Sent and Acked are nonces and versions of the last response and of the last that was
	// accepted.
	Sent         string `json:"sent,omitempty"`
	Acked        string `json:"acked,omitempty"`
	SentVersion  string `json:"sentVersion,omitempty"`
	AckedVersion string `json:"ackedVersion,omitempty"`
	// SentAt and AckedAt are when the last response was handed over, and the last one accepted.
	SentAt  time.Time `json:"sentAt,omitzero"`
	AckedAt time.Time `json:"ackedAt,omitzero"`
	// Number is the revision that was accepted last.
	Number uint64 `json:"revision,omitempty"`
	// Refused is the client's reason, until it accepts a response that makes up for it.
	Refused string `json:"refused,omitempty"`
	// RefusedAt is when the first response was handed over that it has refused since.
	RefusedAt time.Time `json:"refusedAt,omitzero"`
	// Waiting says that a request waits for its answer.
	Waiting bool `json:"waiting,omitempty"`
}

// Status returns the connected streams in order of their connections.
func (s *Server) Status() []StreamStatus {
	streams := s.snapshot()
	out := make([]StreamStatus, 0, len(streams))
	for _, st := range streams {
		answer := make(chan StreamStatus, 1)
		select {
		case st.inspect <- func() { answer <- st.status() }:
			out = append(out, <-answer)
		case <-st.done:
		}
	}
	slices.SortFunc(out, func(a, b StreamStatus) int { return cmp.Compare(a.Connection, b.Connection) })
	return out
}

func (s *Server) join(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.version = s.metrics.connect(s.config.version(st.node))
	s.streams[st] = struct{}{}
}

func (s *Server) leave(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metrics.disconnect(st.version)
	delete(s.streams, st)
}

func (st *stream) status() StreamStatus {
	out := StreamStatus{
		Connection: st.connection.ID(), Node: st.node.Id, Client: st.node, Remote: st.remote, Protocol: "sotw",
		Since: st.since, Names: map[string][]string{},
	}
	if st.delta {
		out.Protocol = "delta"
	}
	for _, w := range st.machine.watches {
		t := w.status()
		if t.Refused != "" && !refuses(st.machine, w) {
			t.Refused, t.RefusedAt = "", time.Time{}
		}
		out.Types = append(out.Types, t)
		if w.subscription != nil {
			out.Names[w.url] = w.subscription.names
		}
	}
	return out
}

// refuses reports whether something of what the client is to have now is such as it refused. What
// was mended, is gone, or is not asked for any more is over.
func refuses(m *machine, w *watch) bool {
	return slices.ContainsFunc(ledger(m, w), func(r ResourceStatus) bool { return r.State == Refused || r.State == Trying })
}

func (w *watch) status() TypeStatus {
	t := TypeStatus{
		Type: w.url, Sent: w.nonce, SentVersion: w.version, Acked: w.acked.nonce, AckedVersion: w.acked.version, Number: w.acked.number,
		Refused: w.refused, Waiting: w.owed,
	}
	if w.refused != "" {
		t.RefusedAt = w.since.UTC()
	}
	if w.acked.nonce != "" {
		t.SentAt, t.AckedAt = w.acked.since.UTC(), w.acked.since.UTC()
	}
	if n := len(w.flights); n > 0 {
		t.SentAt = w.flights[n-1].since.UTC()
	}
	if s := w.subscription; s != nil {
		t.Wildcard, t.Names = s.wildcard, len(s.names)
	}
	return t
}
