package api

import (
	"encoding/json"
	"net/http"

	"github.com/coxswain-mesh/coxswain/core/levels"
)

// LogLevels are the answer to requests about them. Error says why one was not set.
type LogLevels struct {
	Areas []levels.Area `json:"areas"`
	Error string        `json:"error,omitempty"`
}

func (s *Server) logs(mux *http.ServeMux) {
	mux.HandleFunc("GET /log", func(w http.ResponseWriter, _ *http.Request) {
		s.answer(w, http.StatusOK, LogLevels{Areas: s.Levels.List(s.names())})
	})
	mux.HandleFunc("POST /log", func(w http.ResponseWriter, r *http.Request) {
		var order levels.Area
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
		d.DisallowUnknownFields()
		err := d.Decode(&order)
		if err == nil {
			err = s.Levels.Set(order.Area, order.Level, s.names())
		}
		if err != nil {
			s.answer(w, http.StatusBadRequest, LogLevels{Error: err.Error()})
			return
		}
		s.Log.Warn("the level of the log was changed", "of", order.Area, "to", order.Level)
		s.answer(w, http.StatusOK, LogLevels{Areas: s.Levels.List(s.names())})
	})
}

// names are those of the plugins.
func (s *Server) names() (names []string) {
	for _, p := range s.Plugins() {
		names = append(names, p.Name)
	}
	return names
}
