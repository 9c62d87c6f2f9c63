package api

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/control"
)

// kept is a hold of one plugin.
type kept struct{ done []string }

func (k *kept) Holds() []control.Held { return nil }

func (k *kept) Hold(plugin string) (*control.Held, error) {
	if plugin != "files" {
		return nil, errors.New("nothing of " + plugin + " is held")
	}
	return &control.Held{Plugin: plugin}, nil
}

func (k *kept) ApplyHold(plugin string) error { k.done = append(k.done, "apply "+plugin); return nil }
func (k *kept) DropHold(string) error         { return errors.New("it went by itself") }

// TestHolds: a hold is shown and decided by name; of what is not held nothing is done.
func TestHolds(t *testing.T) {
	k := &kept{}
	s := &Server{Holds: k}
	mux := http.NewServeMux()
	s.holds(mux)
	for _, c := range []struct {
		method, path string
		code         int
		says         string
	}{
		{"GET", "/holds/files", http.StatusOK, `"files"`},
		{"GET", "/holds/nobody", http.StatusNotFound, "nothing of nobody is held"},
		{"POST", "/holds/nobody/apply", http.StatusNotFound, "nothing of nobody is held"},
		{"POST", "/holds/files/apply", http.StatusOK, `"files"`},
		{"POST", "/holds/files/drop", http.StatusNotFound, "it went by itself"},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
	}
	if got := strings.Join(k.done, ", "); got != "apply files" {
		t.Errorf("done: %s", got)
	}
}
