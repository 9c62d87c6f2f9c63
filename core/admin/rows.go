package admin

import (
	"net/http"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk/redact"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Row is a row with its payload, without what is secret.
type Row struct {
	entry
	Payload []byte `json:"payload"`
}

// rowz shows the rows of a table: of config tables, which are named GROUP/KIND, and of the mesh's
// settings. Other tables may hold what is not to be shown.
func (s *Server) rowz(w http.ResponseWriter, r *http.Request) {
	table := r.URL.Query().Get("table")
	rows := s.rows(table) // before the question, as who publishes secrets has said so by then
	if s.cfg.Source.SecretTable(table) {
		http.Error(w, "the rows of "+table+" are secrets, which no page shows; /debug/configs lists them", http.StatusForbidden)
		return
	}
	if !strings.Contains(table, "/") && !slices.Contains([]string{state.Mesh, state.Networks}, table) {
		http.Error(w, "?table=GROUP/KIND, mesh or networks is wanted; /debug/tables lists what there is", http.StatusBadRequest)
		return
	}
	all := []Row{}
	for _, row := range rows {
		all = append(all, Row{newEntry(row), redact.Row(table, row.Payload)})
	}
	write(w, all)
}
