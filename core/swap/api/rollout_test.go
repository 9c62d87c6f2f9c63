package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/mask"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// staging has a stage that was aborted, and can't be again.
type staging struct{ why string }

func (*staging) Promote() (report.Stage, error) { return report.Stage{State: report.Idle}, nil }

func (s *staging) Abort(why string) (report.Stage, error) {
	if s.why != "" {
		return report.Stage{}, operations.ErrNoStage
	}
	s.why = why
	return report.Stage{State: report.Withdrawn, Why: why}, nil
}

// TestRollout: stages are ended, and who did is kept.
func TestRollout(t *testing.T) {
	log := audit.New("", &mask.Secrets{}, slog.New(slog.DiscardHandler))
	s := &Server{Rollout: &staging{}, Audit: log}
	mux := http.NewServeMux()
	s.rollout(mux)
	for _, c := range []struct {
		path, body, want string
		code             int
	}{
		{"abort", `{"why":"late"}`, `"why":"late"`, 200},
		{"abort", `{"why":"later"}`, "no stage is under way", 409},
		{"promote", `{}`, `"state":"idle"`, 200},
		{"promote", `{"proxies":"all"}`, "unknown field", 400},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/rollout/"+c.path, strings.NewReader(c.body)))
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s", c.path, c.body, w.Code, w.Body)
		}
	}
	var kept []string
	for _, e := range log.Kept("").Entries {
		kept = append(kept, fmt.Sprint(e.What, " ", e.Outcome, " ", e.Summary))
	}
	if got, want := strings.Join(kept, "; "), "rollout abort done late; rollout abort failed later; rollout promote done "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
