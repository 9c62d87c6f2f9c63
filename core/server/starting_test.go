package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control"
)

// TestStarting: a start that takes long says what it waits for and how much has come, and one that
// is over says no more.
func TestStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		began := time.Now()
		starting(t.Context(), slog.New(slog.NewTextHandler(&out, nil)), func() []string {
			if time.Since(began) > 2*lookAtStart {
				return nil
			}
			return []string{"plugin files has not synced"}
		}, func() map[string]control.PluginRows {
			return map[string]control.PluginRows{"files": {Rows: 7}, "other": {Rows: 2}}
		})
		if n := strings.Count(out.String(), "msg=starting"); n != 2 || !strings.Contains(out.String(), `"plugin files has not synced" rows=9`) {
			t.Errorf("it says %d times: %s", n, out.String())
		}
	})
}
