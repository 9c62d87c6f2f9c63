package api

import (
	"encoding/json"
	"net/http"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/swap"
)

// Login is the answer to a request for a code with which somebody logs in on the page.
type Login struct {
	// Code counts once, and for a minute; empty: the page changes nothing here.
	Code  string `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
}

// code hands out a code: whoever may give commands may act on the page, by the same name.
func (s *Server) code(w http.ResponseWriter, r *http.Request) {
	if s.Logins == nil {
		s.answer(w, http.StatusOK, Login{})
		return
	}
	who := audit.By(r.Context())
	who.By = audit.ByPage
	code, err := s.Logins.Code(who)
	if err != nil {
		s.answer(w, http.StatusTooManyRequests, Login{Error: err.Error()})
		return
	}
	// The code is a secret for as long as it counts; nothing of this answer is in a log.
	s.answer(w, http.StatusOK, Login{Code: code})
}

// PageOrder is the body of a request of the page for a change of a plugin. It names no program:
// what runs is what plugins.yaml has, or what ran before.
type PageOrder struct {
	DryRun bool `json:"dryRun,omitempty"`
	Force  bool `json:"force,omitempty"`
}

// Page returns the handler of what may be changed from the page: pins, holds, stages, and plugins
// that plugins.yaml has, with the programs and the digests of artifacts that it says or that ran
// before.
func (s *Server) Page() http.Handler {
	mux := http.NewServeMux()
	s.holds(mux)
	s.pins(mux)
	s.rollout(mux)
	for _, what := range []string{"swap", "restart", "rollback", "disable", "enable"} {
		mux.HandleFunc("POST /plugins/{name}/"+what, func(w http.ResponseWriter, r *http.Request) {
			var o PageOrder
			d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
			d.DisallowUnknownFields()
			if err := d.Decode(&o); err != nil {
				s.answer(w, http.StatusBadRequest, Outcome{Error: err.Error()})
				return
			}
			s.order(w, r, what, swap.Request{}, swap.Options{DryRun: o.DryRun, Force: o.Force, Declared: true})
		})
	}
	return mux
}
