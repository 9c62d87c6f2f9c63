package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// Pins has proxies served what they were at a revision.
type Pins interface {
	Pins() []report.Pin
	Pin(revision uint64, proxies string, endpoints bool) (report.Pin, error)
	Unpin(proxies string, all bool) ([]report.Pin, error)
}

// PinOrder is the body of a request for a pin, or for the end of one; All: of all that there are.
type PinOrder struct {
	Revision  uint64 `json:"revision,omitempty"`
	Proxies   string `json:"proxies,omitempty"`
	Endpoints bool   `json:"endpoints,omitempty"`
	All       bool   `json:"all,omitempty"`
}

// PinOutcome is the answer: the pins that were made, or taken away.
type PinOutcome struct {
	Pins  []report.Pin `json:"pins,omitempty"`
	Error string       `json:"error,omitempty"`
}

func (s *Server) pins(mux *http.ServeMux) {
	mux.HandleFunc("GET /pins", func(w http.ResponseWriter, _ *http.Request) {
		s.answer(w, http.StatusOK, PinOutcome{Pins: s.Pins.Pins()})
	})
	mux.HandleFunc("POST /pins", func(w http.ResponseWriter, r *http.Request) {
		s.changePins(w, r, "pin", func(o PinOrder) ([]report.Pin, error) {
			p, err := s.Pins.Pin(o.Revision, o.Proxies, o.Endpoints)
			return []report.Pin{p}, err
		})
	})
	mux.HandleFunc("DELETE /pins", func(w http.ResponseWriter, r *http.Request) {
		s.changePins(w, r, "unpin", func(o PinOrder) ([]report.Pin, error) { return s.Pins.Unpin(o.Proxies, o.All) })
	})
}

// changePins does something with pins, and keeps who did.
func (s *Server) changePins(w http.ResponseWriter, r *http.Request, what string, do func(PinOrder) ([]report.Pin, error)) {
	var o PinOrder
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		s.answer(w, http.StatusBadRequest, PinOutcome{Error: err.Error()})
		return
	}
	if !s.kept(w) {
		return
	}
	is := audit.Entry{What: what, Outcome: "done"}
	pins, err := do(o)
	if err != nil {
		is.Outcome, is.Reasons = "failed", []string{err.Error()}
		s.Audit.Add(r.Context(), is)
		s.answer(w, http.StatusConflict, PinOutcome{Error: err.Error()})
		return
	}
	for _, p := range pins {
		is.Summary = fmt.Sprintf("revision %d, proxies %q, %d of them connected", p.Revision, p.Proxies, len(p.Pinned))
		s.Audit.Add(r.Context(), is)
	}
	s.answer(w, http.StatusOK, PinOutcome{Pins: pins})
}
