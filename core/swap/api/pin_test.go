package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/mask"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// pinning has one pin.
type pinning struct{ done []string }

func (*pinning) Pins() []report.Pin { return []report.Pin{{Revision: 7}} }

func (p *pinning) Pin(revision uint64, proxies string, endpoints bool) (report.Pin, error) {
	if revision > 9 {
		return report.Pin{}, errors.New("there is no revision 10 yet")
	}
	p.done = append(p.done, fmt.Sprint("pin ", revision, proxies, endpoints))
	return report.Pin{Revision: revision, Proxies: proxies}, nil
}

func (p *pinning) Unpin(proxies string, all bool) ([]report.Pin, error) {
	p.done = append(p.done, fmt.Sprint("unpin ", proxies, all))
	return []report.Pin{{Revision: 7, Proxies: proxies}}, nil
}

// TestPins: proxies are pinned and unpinned, and who did is kept.
func TestPins(t *testing.T) {
	p := &pinning{}
	log := audit.New("", &mask.Secrets{}, slog.New(slog.DiscardHandler))
	s := &Server{Pins: p, Audit: log}
	mux := http.NewServeMux()
	s.pins(mux)
	for _, c := range []struct {
		method, body, want string
		code               int
	}{
		{"GET", "", `"revision":7`, 200},
		{"POST", `{"revision":8,"proxies":"id=a","endpoints":true}`, `"proxies":"id=a"`, 200},
		{"POST", `{"revision":10}`, "there is no revision 10 yet", 409},
		{"POST", `{"number":1}`, "unknown field", 400},
		{"DELETE", `{"all":true}`, `"revision":7`, 200},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(c.method, "/pins", strings.NewReader(c.body)))
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.body, w.Code, w.Body)
		}
	}
	if got := fmt.Sprint(p.done); got != "[pin 8id=atrue unpin true]" {
		t.Error(got)
	}
	var kept []string
	for _, e := range log.Kept("").Entries {
		kept = append(kept, e.What+" "+e.Outcome+" "+e.Summary)
	}
	if got, want := strings.Join(kept, "; "),
		`pin done revision 8, proxies "id=a", 0 of them connected; pin failed ; unpin done revision 7, proxies "", 0 of them connected`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
