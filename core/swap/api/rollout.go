package api

import (
	"encoding/json"
	"net/http"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// Rollout is the stages of pushes.
type Rollout interface {
	Promote() (report.Stage, error)
	Abort(why string) (report.Stage, error)
}

// RolloutOrder is the body of an order; Why is kept with who gave it.
type RolloutOrder struct {
	Why string `json:"why,omitempty"`
}

// RolloutOutcome is the answer.
type RolloutOutcome struct {
	Status *report.Stage `json:"status,omitempty"`
	Error  string        `json:"error,omitempty"`
}

func (s *Server) rollout(mux *http.ServeMux) {
	mux.HandleFunc("POST /rollout/promote", func(w http.ResponseWriter, r *http.Request) {
		s.changeRollout(w, r, "promote", func(RolloutOrder) (report.Stage, error) { return s.Rollout.Promote() })
	})
	mux.HandleFunc("POST /rollout/abort", func(w http.ResponseWriter, r *http.Request) {
		s.changeRollout(w, r, "abort", func(o RolloutOrder) (report.Stage, error) { return s.Rollout.Abort(o.Why) })
	})
}

// changeRollout does something with the stage, and keeps who did.
func (s *Server) changeRollout(w http.ResponseWriter, r *http.Request, what string, do func(RolloutOrder) (report.Stage, error)) {
	var o RolloutOrder
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		s.answer(w, http.StatusBadRequest, RolloutOutcome{Error: err.Error()})
		return
	}
	if !s.kept(w) {
		return
	}
	entry := audit.Entry{What: "rollout " + what, Outcome: "done", Summary: o.Why}
	is, err := do(o)
	if err != nil {
		entry.Outcome, entry.Reasons = "failed", []string{err.Error()}
		s.Audit.Add(r.Context(), entry)
		s.answer(w, http.StatusConflict, RolloutOutcome{Error: err.Error()})
		return
	}
	s.Audit.Add(r.Context(), entry)
	s.answer(w, http.StatusOK, RolloutOutcome{Status: &is})
}
