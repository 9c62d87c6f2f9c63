package api

import (
	"net/http"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/control"
)

// Holds is what keeps back what would take too much away.
type Holds interface {
	Holds() []control.Held
	Hold(plugin string) (*control.Held, error)
	ApplyHold(plugin string) error
	DropHold(plugin string) error
}

// HoldOutcome is the answer to a request about one hold.
type HoldOutcome struct {
	Hold  *control.Held `json:"hold,omitempty"`
	Error string        `json:"error,omitempty"`
}

func (s *Server) holds(mux *http.ServeMux) {
	mux.HandleFunc("GET /holds", func(w http.ResponseWriter, _ *http.Request) {
		s.answer(w, http.StatusOK, append([]control.Held{}, s.Holds.Holds()...))
	})
	mux.HandleFunc("GET /holds/{name}", func(w http.ResponseWriter, r *http.Request) {
		s.held(w, r, nil)
	})
	mux.HandleFunc("POST /holds/{name}/apply", func(w http.ResponseWriter, r *http.Request) { s.decide(w, r, "hold apply", s.Holds.ApplyHold) })
	mux.HandleFunc("POST /holds/{name}/drop", func(w http.ResponseWriter, r *http.Request) { s.decide(w, r, "hold drop", s.Holds.DropHold) })
}

// decide does something with a hold, and keeps who did.
func (s *Server) decide(w http.ResponseWriter, r *http.Request, what string, do func(plugin string) error) {
	if !s.kept(w) {
		return
	}
	s.held(w, r, func(h *control.Held) error {
		is := audit.Entry{What: what, Plugin: h.Plugin, Outcome: "done", Reasons: h.Reasons}
		if h.Difference != nil {
			is.Summary = h.Difference.String()
		}
		err := do(h.Plugin)
		if err != nil {
			is.Outcome, is.Reasons = "failed", []string{err.Error()}
		}
		s.Audit.Add(r.Context(), is)
		return err
	})
}

// held answers with a hold as it is, and does something with it.
func (s *Server) held(w http.ResponseWriter, r *http.Request, do func(*control.Held) error) {
	name := r.PathValue("name")
	h, err := s.Holds.Hold(name)
	if err == nil && do != nil {
		err = do(h)
	}
	if err != nil {
		s.answer(w, http.StatusNotFound, HoldOutcome{Error: err.Error()})
		return
	}
	s.answer(w, http.StatusOK, HoldOutcome{Hold: h})
}
